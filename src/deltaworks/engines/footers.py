"""Files that say at their end how many rows they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.engines.files import damaged_file, unreadable_file
from deltaworks.engines.locations import open_bytes
from deltaworks.model.batch import Bounds
from deltaworks.model.table_ref import is_url

_MOST_FOOTERS = 1_000


def rows_in_footers(
    bounds: Bounds,
    count: Callable[[str | IO[bytes]], int],
    *,
    kind: str,
    stores: Stores = NO_STORES,
) -> int | None:
    """The rows of all files, told by their footers; None when there are too many to ask."""
    import pyarrow as pa

    if len(bounds.files) > _MOST_FOOTERS:
        return None
    rows = 0
    for stamp in bounds.files:
        try:
            rows += _asked(stamp.path, count, stores)
        except (pa.ArrowException, OSError) as problem:
            if isinstance(problem, OSError) and problem.strerror:
                raise unreadable_file(stamp.path, problem) from problem
            raise damaged_file(stamp.path, f"is not {kind} file") from problem
    return rows


def _asked(path: str, count: Callable[[str | IO[bytes]], int], stores: Stores) -> int:
    if not is_url(path):
        return count(path)
    with open_bytes(path, stores) as handle:
        return count(handle)
