"""Looks at tables of object stores, kept by the process that had them.

One listing tells whether a look still holds. Commits that came since are read by themselves as
long as they only add files; all else is left to delta-rs (`engines/deltars/log/object_tail.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from deltaworks.engines.deltars.errors import damaged
from deltaworks.engines.deltars.log.object_tail import Commit, ObjectLog
from deltaworks.engines.deltars.snapshot import OpenAt, TableSnapshot, the_same

_MAX_KEPT = 16
_KNOWN: dict[object, tuple[TableSnapshot, str] | None] = {}
"""Tables as this process saw them, each with the tag of its last commit; None for no table."""


def bucket_snapshot(log: ObjectLog, open_at: OpenAt) -> TableSnapshot | None:
    """A table of an object store as it is now; None when no table is there."""
    key = (log.location, log.bucket.reached)
    known = _KNOWN.get(key)
    if known is None:
        if key in _KNOWN and log.is_empty():
            return None
        return _kept(key, *_opened(log, open_at))
    look, tag = known
    commits = log.since(look.version, tag)
    if commits is None:
        return _kept(key, *_opened(log, open_at))
    if not commits:
        return look
    _refuse_damaged(log, commits)
    later = look.after(commits, open_at)
    if later is None:
        return _kept(key, *_opened(log, open_at))
    return _kept(key, later, commits[-1].tag)


def _opened(log: ObjectLog, open_at: OpenAt) -> tuple[TableSnapshot | None, str]:
    table = open_at(None)
    if table is None:
        return None, ""
    look = TableSnapshot.at(log.location, table)
    look.reopened = lambda: the_same(look, open_at(look.version))
    last = log.read(look.version)
    _refuse_damaged(log, () if last is None else (last,))
    if last is None or any(m["id"] != look.table_id for m in last.actions_of("metaData")):
        return look, ""  # nothing that could be recognised later
    look.learn(last)
    return look, last.tag


def _refuse_damaged(log: ObjectLog, commits: Iterable[Commit]) -> None:
    """Raise when a commit that was read is not as a commit must be; all others cost a request."""
    for commit in commits:
        if commit.problem:
            raise damaged(log.location, commit.problem)


def _kept(key: object, look: TableSnapshot | None, tag: str) -> TableSnapshot | None:
    if len(_KNOWN) >= _MAX_KEPT:
        _KNOWN.clear()
    _KNOWN[key] = None if look is None else (look, tag)
    return look
