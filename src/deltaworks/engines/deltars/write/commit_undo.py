"""One commit taken back by another that names its files the other way round.

The files that the commit added are removed, and those that it removed are added again. No row is
written, and the log decides who came first: what another writer commits meanwhile stays, or the
swap is a conflict. (A Spark that is not ours looks for the next commit first and renames its own to
there then; on a local disk nothing can keep it from doing so within that instant.)

No checkpoint is made here when one is due: the next writer makes the next.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.log.actions import commit_info, txn_action
from deltaworks.engines.deltars.log.commits import commit_actions
from deltaworks.engines.deltars.log.local_tail import remove_drafts, tail_of
from deltaworks.engines.deltars.log.object_tail import object_log
from deltaworks.engines.deltars.schemas import arrow_table
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import CommitConflict, GuardError, VersionNotFound
from deltaworks.model.table_info import TableInfo
from deltaworks.model.table_ref import is_url
from deltaworks.model.write import Stamp
from deltaworks.storage.listing import fsync_commit
from deltaworks.storage.objects import Bucket

Action = Mapping[str, Any]
RESTORE = "set the whole table back with `deltaworks table restore`"
_OPERATION = "UNDO"
_FEATURES = frozenset(
    {
        *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
        *("columnMapping", "identityColumns", "allowColumnDefaults", "timestampNtz"),
        *("deletionVectors", "domainMetadata", "clustering", "v2Checkpoint", "variantType"),
        "vacuumProtocolCheck",
    }
)
"""What asks nothing of a commit that only names files which other commits have named before."""
_KEPT_IN_REMOVE = ("path", "partitionValues", "size", "stats", "tags", "deletionVector")


@dataclass(frozen=True, kw_only=True)
class FileSwap:
    """What takes one commit back, found at one version of the table."""

    table: TableInfo
    version: int
    """The commit that is taken back."""
    goes: Mapping[str, Action]
    """The files that it added, by name, as the log has them now."""
    returns: Mapping[str, Action] | None
    """The files that it removed, as they were; None when the log no longer shows."""
    replaced: bool
    """Whether it removed files."""

    @property
    def names(self) -> frozenset[str]:
        """The names of the files that go, without their folders."""
        return frozenset(name.rpartition("/")[2] for name in self.goes)

    def obstacle(self, stores: Stores = NO_STORES) -> str:
        """Why Spark has to write the rows instead; empty when naming files is enough."""
        return next(self._obstacles(stores), "")

    def _obstacles(self, stores: Stores) -> Iterator[str]:
        table, returns = self.table, self.returns
        for feature in sorted(set(table.features) - _FEATURES):
            yield f"the table has the feature {feature}"
        if returns is None:
            yield "the log no longer shows what the removed files contained"
        for name in (*self.goes, *(returns or ())):
            if _is_outside(name):
                yield f"{name} is outside of the table"
        for name, file in (returns or {}).items():
            if file.get("deletionVector"):
                yield f"{name} comes back with a deletion vector"
        if is_url(table.location):
            if object_log(table.location, stores) is None:
                yield "the store has another way to commit"
        elif tail_of(table.location, writer="", version=0, settings=table.properties) is None:
            yield "the log is soon forgotten"


def file_swap(table: TableInfo, version: int, stores: Stores = NO_STORES) -> FileSwap:
    """How a commit is taken back; raises where later versions stand upon it."""
    _refuse_append_only(table)
    actions = commit_actions(table.location, version, stores)
    added, removed = _named(actions, "add"), _named(actions, "remove")
    if not removed:
        goes = _as_they_stand(table, version, added, stores)
        return FileSwap(table=table, version=version, goes=goes, returns={}, replaced=False)
    if version != table.version:
        raise GuardError(
            f"version {version} replaced rows, and {table.version - version} later versions "
            "build upon it",
            hint=RESTORE,
        )
    if any("metaData" in action for action in actions):
        _refuse_other_shape(table, version, stores)
    returns = _as_they_were(table.location, version, removed, stores)
    _refuse_missing(table.location, removed, stores)
    return FileSwap(table=table, version=version, goes=added, returns=returns, replaced=True)


def file_names(table: TableInfo, stores: Stores = NO_STORES) -> frozenset[str]:
    """The names of all files of a table at its version, without their folders."""
    opened = DeltaRsEngine(stores).open(table.location, table.version)
    with translated(table.location):
        paths = arrow_table(opened.get_add_actions()).column("path").to_pylist()
    return frozenset(unquote(path).rpartition("/")[2] for path in paths)


def commit_swap(swap: FileSwap, stamp: Stamp, stores: Stores = NO_STORES) -> int:
    """Take the commit back in one commit of its own; answers the version of that."""
    table, engine = swap.table, DeltaRsEngine(stores)
    found = engine.identity(table.location)
    if found is None or found[0] != table.table_id:
        raise _moved(table.location)
    if is_url(table.location):
        return _put(swap, stamp, stores, latest=found[1])
    return _linked(swap, stamp, latest=found[1])


def _linked(swap: FileSwap, stamp: Stamp, *, latest: int) -> int:
    """The commit on a local disk: behind what others only added, and before nobody."""
    table, writer = swap.table, f"undo.{secrets.token_hex(8)}"
    tail = tail_of(table.location, writer=writer, version=table.version, settings=table.properties)
    assert tail is not None
    try:
        with translated(table.location):
            followed = tail.follow() and tail.version >= latest
            stands_last = tail.version == table.version or not swap.replaced
            if not (followed and stands_last) or tail.knows(stamp.txn.app_id):
                raise _moved(table.location)
            made = tail.commit(
                _actions(swap, stamp),
                (stamp.txn,),
                needs=frozenset(path for file in swap.goes.values() for path in _spellings(file)),
                only_next=swap.replaced,
            )
    finally:
        remove_drafts(table.location, [writer])
    fsync_commit(table.location, made)
    return made


def _put(swap: FileSwap, stamp: Stamp, stores: Stores, *, latest: int) -> int:
    """The commit in a bucket: the very next one after the version that was looked at.

    A put whose answer was lost is recognised by its content.
    """
    table, made = swap.table, swap.table.version + 1
    log = object_log(table.location, stores)
    actions = (*_actions(swap, stamp), txn_action(stamp.txn))
    if log is None or latest != table.version:
        raise _moved(table.location)
    if log.put(made, actions) is None:
        stands = log.read(made)
        if stands is None or stands.actions != actions:
            raise _moved(table.location)
    return made


def _actions(swap: FileSwap, stamp: Stamp) -> tuple[Action, ...]:
    returns = swap.returns or {}
    info = commit_info(_OPERATION, {"version": str(swap.version)}, stamp.user_metadata)
    more = {
        "readVersion": swap.table.version,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {
            "numRemovedFiles": str(len(swap.goes)),
            "numAddedFiles": str(len(returns)),
        },
    }
    return (
        {"commitInfo": {**info["commitInfo"], **more}},
        *({"remove": _removed(file)} for file in swap.goes.values()),
        *({"add": {**file, "dataChange": True}} for file in returns.values()),
    )


def _removed(file: Action) -> Action:
    """A file that goes, with the deletion vector it has: both together are its name."""
    kept = {name: file[name] for name in _KEPT_IN_REMOVE if file.get(name) is not None}
    return {
        **kept,
        "deletionTimestamp": int(time.time() * 1000),
        "dataChange": True,
        "extendedFileMetadata": True,
    }


def _named(actions: tuple[Action, ...], kind: str) -> dict[str, Action]:
    """The files that actions of a kind are about, by the names they have on disk."""
    return {unquote(a[kind]["path"]): a[kind] for a in actions if kind in a}


def _spellings(file: Action) -> tuple[str, ...]:
    """How writers may spell the path of a file."""
    name = unquote(file["path"])
    return (file["path"], name, quote(name))


def _as_they_stand(
    table: TableInfo, version: int, added: Mapping[str, Action], stores: Stores
) -> dict[str, Action]:
    """The files that a commit added, as the newest version has them; all must be there still."""
    stands = dict(added)
    for later in range(version + 1, table.version + 1):
        actions = commit_actions(table.location, later, stores)
        if stands.keys() & _named(actions, "remove").keys():
            raise GuardError(
                f"version {later} rewrote files that version {version} had added", hint=RESTORE
            )
        again = _named(actions, "add")  # such as with other statistics
        stands.update({name: again[name] for name in stands.keys() & again.keys()})
    return stands


def _as_they_were(
    location: str, version: int, removed: Mapping[str, Action], stores: Stores
) -> dict[str, Action] | None:
    """The files that a commit removed, as commits before it had added them."""
    found: dict[str, Action] = {}
    earlier = version
    while earlier > 0 and len(found) < len(removed):
        earlier -= 1
        try:
            added = _named(commit_actions(location, earlier, stores), "add")
        except VersionNotFound:
            return None
        found.update({n: added[n] for n in removed.keys() & added.keys() if n not in found})
    return found if len(found) == len(removed) else None


def _refuse_append_only(table: TableInfo) -> None:
    if table.properties.get("delta.appendOnly", "").strip().lower() == "true":
        raise GuardError(
            f'"{table.location}" is append-only, so nothing can be taken out of it',
            hint="set its property delta.appendOnly to false first",
        )


def _refuse_other_shape(table: TableInfo, version: int, stores: Stores) -> None:
    """Files fit only the columns and the partitions that they were written for."""
    before = DeltaRsEngine(stores).info(table.location, version=version - 1)
    shape = (table.schema, table.partition_columns)
    if before is None or (before.schema, before.partition_columns) != shape:
        raise GuardError(f"version {version} replaced the schema too", hint=RESTORE)


def _refuse_missing(location: str, files: Mapping[str, Action], stores: Stores) -> None:
    """What comes back must still be there: VACUUM removes files that no version names."""
    sizes = dict(_sizes(location, files, stores))
    for name, file in files.items():
        found = sizes.get(name)
        if not _is_outside(name) and (found is None or found != (file.get("size") or found)):
            raise GuardError(
                f'the file "{name}" that was replaced is gone or has another size',
                hint="such rows can be had from a backup only",
            )


def _sizes(location: str, files: Mapping[str, Action], stores: Stores) -> Iterator[tuple[str, int]]:
    if is_url(location):
        for one in Bucket(location, stores).listed(location):
            yield one.address.removeprefix(f"{location}/"), one.size_bytes
        return
    for name in files:
        path = Path(location, name)
        if path.is_file():
            yield name, path.stat().st_size


def _is_outside(name: str) -> bool:
    """Whether a file is named by its whole address, as in a shallow clone."""
    return name.startswith("/") or ":/" in name


def _moved(location: str) -> CommitConflict:
    return CommitConflict(
        f'another writer changed "{location}" while a batch was taken out of it',
        hint="run it again",
    )
