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
from urllib.parse import quote

from deltaworks.engines.deltars.data_files import DataFile
from deltaworks.engines.files import fsync_path
from deltaworks.errors import CommitConflict
from deltaworks.model.commit import Txn
from deltaworks.model.table_ref import is_url

_TRUSTED_S = 600.0
_HOURS = re.compile(r"(interval )?[1-9]\d* (hour|day|week|month|year)s?", re.IGNORECASE)
_RETRIES = 100
_ENGINE = "deltaworks"


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

    def follow(self) -> bool:
        """Read what others committed; False when only delta-rs can tell where the table stands."""
        if not 0 <= time.time() - self._since <= _TRUSTED_S:
            return False
        while (found := self._read(self.version + 1)) is not None:
            if found.reshapes:
                return False
            self._txns.update(found.txns)
            self._removed.update(found.removed)
            self.version += 1
        return self._path(self.version).exists()

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
    ) -> int:
        """Make the next commit after what others add meanwhile, unless it removes what is needed.

        Answers its version.
        """
        draft = self._draft([*actions, *(txn_action(txn) for txn in txns)])
        own = {txn.app_id: self._txns.get(txn.app_id) for txn in txns}
        for _ in range(_RETRIES):
            if needs & self._removed or own != {name: self._txns.get(name) for name in own}:
                break
            try:
                os.link(draft, self._path(self.version + 1))
            except FileExistsError:
                if self.follow():
                    continue
                break
            Path(draft).unlink()
            self.version += 1
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
            return _parsed([json.loads(line) for line in text.split("\n") if line])
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


def commit_info(operation: str, parameters: Mapping[str, str], note: str) -> dict[str, Any]:
    """What a commit says about itself."""
    return {
        "commitInfo": {
            "timestamp": int(time.time() * 1000),
            "operation": operation,
            "operationParameters": dict(parameters),
            "engineInfo": _ENGINE,
            "userMetadata": note,
        }
    }


def txn_action(txn: Txn) -> dict[str, Any]:
    """A transaction, which a commit carries."""
    return {"txn": {"appId": txn.app_id, "version": txn.version}}


def add_action(file: DataFile, *, is_new: bool) -> dict[str, Any]:
    """A file becomes part of the table, with rows that are new or were in other files before."""
    return {
        "add": {
            "path": quote(file.path),
            "partitionValues": dict(file.partition),
            "size": file.size_bytes,
            "modificationTime": file.modified_ms,
            "dataChange": is_new,
            "stats": file.statistics,
        }
    }


def remove_drafts(location: str, writers: Sequence[str]) -> None:
    """Remove what a crash left of commits under these names."""
    for writer in writers if not is_url(location) else ():
        Path(_draft_path(location, writer)).unlink(missing_ok=True)


def _draft_path(location: str, writer: str) -> str:
    return f"{location}/_delta_log/_commit_{writer}.json.tmp"
