"""The end of a log on local disk, read and written commit by commit.

To learn what is new delta-rs lists the whole log, and for each commit it does so again: an epoch
would take longer the more there were. But the next commit's name is known, and who links it first
has made it, which is how delta-rs commits on a disk too. So nothing is listed here.

A log is trusted so for a while only. A commit whose file was cleaned up would look like one that
nobody made yet, and files stay for the table's retention; where that is short there is no tail.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltaworks.engines.deltars.log.actions import txn_action
from deltaworks.engines.deltars.text import read_json
from deltaworks.errors import CommitConflict
from deltaworks.model.commit import Txn
from deltaworks.model.table_ref import is_url
from deltaworks.storage.listing import fsync_path

_TRUSTED_S = 600.0
_HOURS = re.compile(r"(interval )?[1-9]\d* (hour|day|week|month|year)s?", re.IGNORECASE)
_RETRIES = 100
Stamp = tuple[int, int, int]
"""What tells a commit's file from another one of its name: its place on disk, size and time."""


@dataclass(frozen=True)
class _Commit:
    """What matters of a commit to those who only add files."""

    txns: Mapping[str, int]
    removed: frozenset[str]
    reshapes: bool
    """Whether it changed the table's columns, properties or features, or set the table back."""


@dataclass
class LogTail:
    """The commits after one that delta-rs has read."""

    location: str
    writer: str
    """A name that nobody else commits under meanwhile."""
    version: int
    _txns: dict[str, int | None] = field(default_factory=dict)
    _removed: set[str] = field(default_factory=set)
    _since: float = field(default_factory=time.time)
    _stamp: Stamp | None = None

    def __post_init__(self) -> None:
        self._stamp = self._stamped(self.version)

    def follow(self) -> bool:
        """Read what others committed; False when only delta-rs can tell where the table stands."""
        if not 0 <= time.time() - self._since <= _TRUSTED_S or not self.is_same_log():
            return False
        while (found := self._read(self.version + 1)) is not None:
            if found.reshapes:
                return False
            self._txns.update(found.txns)
            self._removed.update(found.removed)
            self._at(self.version + 1)
        return self.is_same_log()

    def is_same_log(self) -> bool:
        """Whether the last commit known is there; of a table recreated its file is another."""
        return self._stamp is not None and self._stamped(self.version) == self._stamp

    def _at(self, version: int) -> None:
        self.version, self._stamp = version, self._stamped(version)

    def _stamped(self, version: int) -> Stamp | None:
        try:
            status = self._path(version).stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def knows(self, app_id: str) -> bool:
        """Whether a writer's last transaction was learned here."""
        return app_id in self._txns

    def transaction(self, app_id: str) -> int | None:
        """A writer's last transaction."""
        return self._txns[app_id]

    def learn(self, app_id: str, version: int | None) -> None:
        """Keep what delta-rs knew of the commits before these."""
        self._txns[app_id] = version

    def commit(
        self,
        actions: Sequence[Mapping[str, Any]],
        txns: Sequence[Txn],
        *,
        needs: frozenset[str] = frozenset(),
        only_next: bool = False,
    ) -> int:
        """Make the next commit after what others add meanwhile, unless it removes what is needed.

        With `only_next` any commit in between is a conflict. Answers the commit's version.
        """
        draft = self._draft([*actions, *(txn_action(txn) for txn in txns)])
        own = {txn.app_id: self._txns.get(txn.app_id) for txn in txns}
        for _ in range(_RETRIES):
            if needs & self._removed or own != {name: self._txns.get(name) for name in own}:
                break
            try:
                os.link(draft, self._path(self.version + 1))
            except FileExistsError:
                if not only_next and self.follow():
                    continue
                break
            Path(draft).unlink()
            self._at(self.version + 1)
            self._txns.update({txn.app_id: txn.version for txn in txns})
            self._removed.clear()
            return self.version
        raise CommitConflict(f'another writer was faster in "{self.location}"')

    def _path(self, version: int) -> Path:
        return Path(self.location, "_delta_log", f"{version:020d}.json")

    def _draft(self, actions: Sequence[Mapping[str, Any]]) -> str:
        """The commit under another name, safe on disk: it is whole from the moment it is there."""
        path = _draft_path(self.location, self.writer)
        lines = (json.dumps(action, ensure_ascii=False, allow_nan=False) for action in actions)
        Path(path).unlink(missing_ok=True)  # a crash may have left it, linked as a commit
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
        fsync_path(path)
        return path

    def _read(self, version: int) -> _Commit | None:
        try:
            text = self._path(version).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            return _parsed([read_json(line) for line in text.split("\n") if line])
        except ValueError:
            return _Commit(
                txns={}, removed=frozenset(), reshapes=True
            )  # delta-rs says what is wrong with it


def _parsed(actions: Sequence[Mapping[str, Any]]) -> _Commit:
    operations = {action.get("commitInfo", {}).get("operation") for action in actions}
    shapes = any("metaData" in action or "protocol" in action for action in actions)
    return _Commit(
        txns={a["txn"]["appId"]: int(a["txn"]["version"]) for a in actions if "txn" in a},
        removed=frozenset(a["remove"]["path"] for a in actions if "remove" in a),
        reshapes=shapes or "RESTORE" in operations or not actions,
    )


def tail_of(
    location: str, *, writer: str, version: int, settings: Mapping[str, str]
) -> LogTail | None:
    """The end of a table's log; None for an object store, and for a log that is soon forgotten."""
    kept = settings.get("delta.logRetentionDuration", "interval 30 days")
    if is_url(location) or _HOURS.fullmatch(kept.strip()) is None:
        return None
    return LogTail(location, writer, version)


def remove_drafts(location: str, writers: Sequence[str]) -> None:
    """Remove what a crash left of commits under these names."""
    for writer in writers if not is_url(location) else ():
        Path(_draft_path(location, writer)).unlink(missing_ok=True)


def _draft_path(location: str, writer: str) -> str:
    return f"{location}/_delta_log/_commit_{writer}.json.tmp"
