"""Files that say at their end how many rows they hold."""

from __future__ import annotations

from collections.abc import Callable

from deltaworks.engines.files import damaged_file, unreadable_file
from deltaworks.model.batch import Bounds

_MOST_FOOTERS = 1_000


def rows_in_footers(bounds: Bounds, count: Callable[[str], int], *, kind: str) -> int | None:
    """The rows of all files, told by their footers; None when there are too many to ask."""
    import pyarrow as pa

    if len(bounds.files) > _MOST_FOOTERS:
        return None
    rows = 0
    for stamp in bounds.files:
        try:
            rows += count(stamp.path)
        except (pa.ArrowException, OSError) as problem:
            if isinstance(problem, OSError) and problem.strerror:
                raise unreadable_file(stamp.path, problem) from problem
            raise damaged_file(stamp.path, f"is not {kind} file") from problem
    return rows
