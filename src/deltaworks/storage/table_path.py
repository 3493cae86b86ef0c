"""Whether a place is free for a new table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.errors import GuardError, InputError
from deltaworks.model.table_ref import is_lock, is_url
from deltaworks.storage.objects import Bucket

_LOG = "_delta_log"


def require_free(location: str, stores: Stores = NO_STORES) -> frozenset[str]:
    """Raise before a table is made where something else is.

    Answers what is there all the same: what a run that died left behind, and locks.
    """
    if is_url(location):
        return _require_free_objects(location, stores)
    here = Path(location)
    _refuse_nested(here)
    begun = (here / _LOG).is_dir()  # what a run that died left behind; no commit names its files
    if here.is_dir() and any(here.iterdir()) and not begun:
        raise _occupied(location)
    return frozenset(all_below(location))


def all_below(location: str) -> Iterator[str]:
    """Files, links and folders at a place on this machine; folders come after what is in them."""
    for around, folders, files in os.walk(location, topdown=False):
        yield from (f"{around}/{name}" for name in files)
        yield from (path for name in folders if Path(path := f"{around}/{name}").is_symlink())
        yield around


def claim(location: str, stores: Stores) -> None:
    """Leave a mark where a table is about to be made.

    A bucket has no empty folders. Without the mark, what a run that died left behind would look
    like files of somebody else; readers of Delta's log pass over it.
    """
    if is_url(location):
        Bucket(location, stores).put(f"{location}/{_LOG}/_begun", b"")


def _require_free_objects(location: str, stores: Stores) -> frozenset[str]:
    found = frozenset(one.address for one in Bucket(location, stores).listed(location))
    below = [address for address in found if not is_lock(address)]
    logs = {address.partition(f"/{_LOG}")[0] for address in below if f"/{_LOG}" in address}
    if below and not logs:
        raise _occupied(location)
    other = min(logs - {location}, default=None)
    if other is not None:
        raise GuardError(
            f'table "{location}" would lie around table "{other}"',
            hint="rename one of them, so that no table is in another one's folder",
        )
    return found


def _occupied(location: str) -> InputError:
    return InputError(
        f'folder "{location}" holds files and is not a Delta table',
        hint="choose another table or path, or move the files away",
    )


def _refuse_nested(here: Path) -> None:
    """A table inside another table's folder would be eaten by that one's vacuum."""
    outer = next((parent for parent in here.parents if (parent / _LOG).is_dir()), None)
    inner = next((log.parent for log in here.glob(f"*/{_LOG}")), None)
    other = outer or inner
    if other is not None:
        where = "lies inside" if outer else "would lie around"
        raise GuardError(
            f'table "{here}" {where} table "{other}"',
            hint="rename one of them, so that no table is in another one's folder",
        )
