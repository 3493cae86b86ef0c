"""What is left of a table whose first load failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.log.commits import commit_files
from deltaworks.errors import EngineError
from deltaworks.model.table_ref import is_lock, is_url
from deltaworks.storage.objects import Bucket
from deltaworks.storage.table_path import all_below


@contextmanager
def tidied(
    location: str, stores: Stores = NO_STORES, *, before: frozenset[str] = frozenset()
) -> Iterator[None]:
    """Remove what a table's first load left behind that failed: no commit names any of it.

    Only once an engine said so itself. Where it was cut off it may still be at work; what is left
    then is passed over by the next load. What was there before stays, whoever put it there.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (EngineError, PySparkException, Py4JJavaError):
        with suppress(EngineError):  # what failed is told, not that its traces are left
            _remove_new(location, stores, before)
        raise


def _remove_new(location: str, stores: Stores, before: frozenset[str]) -> None:
    if commit_files(location, stores):
        return
    if is_url(location):
        bucket = Bucket(location, stores)
        left = (one.address for one in bucket.listed(location))
        bucket.delete(one for one in left if one not in before and not is_lock(one))
        return
    for path in map(Path, all_below(location)):
        if str(path) not in before:
            with suppress(OSError):  # a folder that holds what was there before
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
