"""Rows that another writer replaced while their files were joined: they must not come back.

Joining removes files and adds one with their rows, and says that no row changed. Some writers, such
as delta-rs itself, do not count that as a conflict with what they do to those files: they commit
the removal of files that are gone already, and the joined one stays, with rows that they replaced.

Such a commit can be recognised: it removes what a joining had removed before. Then the joining is
undone: its file goes, and those come back that nobody else removed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.log.actions import DataFile, add_action, commit_info, remove_action
from deltaworks.engines.deltars.log.history import parse_user_metadata
from deltaworks.engines.deltars.log.local_tail import LogTail
from deltaworks.engines.deltars.write.commit_options import ALONE, commit_properties, no_hooks
from deltaworks.engines.deltars.write.data_files import DataFolder

if TYPE_CHECKING:
    from deltalake import DeltaTable

JOINING: Mapping[str, str] = {"upkeep": "compact"}
"""What the note of a commit says that joined files."""
_FIRST_LOOK = 200
"""So many commits are looked at when a session begins."""
_MAX_JOININGS = 100


@dataclass
class CompactionCommit:
    """A commit that joined files, and what became of them."""

    version: int
    old: dict[str, Mapping[str, Any]]
    """The files that went, each as the commit says it."""
    new: dict[str, Mapping[str, Any]]
    replaced: set[str] = field(default_factory=set)
    """Those of the files that went which somebody else removed later."""
    by: int = 0
    """The version that did so."""

    def read(self, version: int, actions: Sequence[Mapping[str, Any]]) -> bool:
        """Look at a later commit; False when files that went are back, as after a restore."""
        again = {one["remove"]["path"] for one in actions if "remove" in one} & set(self.old)
        if again:
            self.replaced |= again
            self.by = version
        return not any(one["add"]["path"] in self.old for one in actions if "add" in one)


class JoinWatch:
    """Follows a log, and knows whose joined files were overtaken."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._next = -1
        self._known: list[CompactionCommit] = []

    def overtaken(self, version: int) -> tuple[CompactionCommit, ...]:
        """The joinings up to a version whose files somebody else removed as well."""
        if self._next < 0:
            self._next = max(0, version + 1 - _FIRST_LOOK)
        for number in range(self._next, version + 1):
            self._read(number)
        self._next = max(self._next, version + 1)
        self._known = self._known[-_MAX_JOININGS:]
        return tuple(joined for joined in self._known if joined.replaced)

    def forget(self, joined: CompactionCommit) -> None:
        """Look at a joining no more."""
        self._known = [one for one in self._known if one is not joined]

    def _read(self, version: int) -> None:
        actions = self._folder.actions(version)
        self._known = [one for one in self._known if one.read(version, actions)]
        if any(_joins(one) for one in actions):
            removed = [one["remove"] for one in actions if "remove" in one]
            added = [one["add"] for one in actions if "add" in one]
            old, new = ({one["path"]: one for one in side} for side in (removed, added))
            self._known.append(CompactionCommit(version, old, new))


def _joins(action: Mapping[str, Any]) -> bool:
    info = action.get("commitInfo", {})
    note = parse_user_metadata(info.get("userMetadata"))
    return info.get("operation") == "OPTIMIZE" and JOINING.items() <= note.items()


def undo(joined: CompactionCommit, folder: DataFolder, tail: LogTail) -> int:
    """Take the joined files out again, and put back those that nobody replaced; the version."""
    gone, back = _exchanged(joined, folder)
    actions = [
        commit_info("WRITE", {"mode": "Overwrite"}, json.dumps(undoing(joined))),
        *(remove_action(file, is_new=True) for file in gone),
        *(add_action(file, is_new=True) for file in back),
    ]
    return tail.commit(actions, (), needs=frozenset(joined.new))


def undo_by_deltars(joined: CompactionCommit, folder: DataFolder, table: DeltaTable) -> None:
    """The same where no commit can be linked; fails when anybody else commits meanwhile."""
    from deltalake.transaction import AddAction, RemoveAction

    gone, back = _exchanged(joined, folder)
    removes: list[AddAction | RemoveAction] = [
        RemoveAction(
            one.path,
            True,  # noqa: FBT003 - delta-rs takes it by place
            one.modified_ms,
            one.size_bytes,
            dict(one.partition),
        )
        for one in gone
    ]
    adds = [
        AddAction(
            one.path,
            one.size_bytes,
            dict(one.partition),
            one.modified_ms,
            True,  # noqa: FBT003 - the rows are back
            one.statistics,
        )
        for one in back
    ]
    table.create_write_transaction(
        [*removes, *adds],
        "append",
        table.schema(),
        partition_by=table.metadata().partition_columns,
        commit_properties=commit_properties((), undoing(joined), retries=ALONE),
        post_commithook_properties=no_hooks(),
    )


def undoing(joined: CompactionCommit) -> dict[str, int]:
    """What the note of a commit says that undoes a joining."""
    return {"undoes": joined.version}


def _exchanged(
    joined: CompactionCommit, folder: DataFolder
) -> tuple[list[DataFile], list[DataFile]]:
    """The files that go, and those that come back."""
    kept = [one for path, one in joined.old.items() if path not in joined.replaced]
    with translated(folder.location):
        back = [_file(one, _statistics(folder, one)) for one in kept]
    return [_file(one, "") for one in joined.new.values()], back


def _statistics(folder: DataFolder, removed: Mapping[str, Any]) -> str:
    return folder.statistics(folder.read(unquote(removed["path"])))


def _file(action: Mapping[str, Any], statistics: str) -> DataFile:
    return DataFile(
        path=unquote(action["path"]),
        size_bytes=int(action["size"]),
        rows=0,
        partition=dict(action.get("partitionValues") or {}),
        modified_ms=int(action.get("modificationTime") or action["deletionTimestamp"]),
        statistics=statistics,
    )
