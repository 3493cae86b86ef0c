"""A table's log, looked at file by file.

Both engines read an empty commit file as a commit without rows, and take clock times from the
files' own; so the files are looked at before they are trusted.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.engines.deltars.checkpoints import check_checkpoint
from deltaworks.engines.deltars.errors import damaged, has_commit, translated
from deltaworks.engines.locations import read_text
from deltaworks.engines.objects.bucket import Bucket
from deltaworks.errors import CommitConflict, VersionNotFound
from deltaworks.model.table_ref import is_url

if TYPE_CHECKING:
    from deltalake import DeltaTable

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint.*\.parquet")
_TRIES = 20


@dataclass(frozen=True)
class LogFile:
    """One commit file."""

    version: int
    size_bytes: int
    modified_ms: int


def commit_files(
    location: str, stores: Stores = NO_STORES, *, after: int = -1
) -> tuple[LogFile, ...]:
    """The commit files after a version, oldest first."""
    if is_url(location):
        return _commit_objects(location, stores)
    log = Path(location) / "_delta_log"
    if not log.is_dir():
        return ()
    found = []
    for entry in os.scandir(log):
        match = _COMMIT.fullmatch(entry.name)
        if match and int(match[1]) > after:
            status = entry.stat()
            modified_ms = status.st_mtime_ns // 1_000_000
            found.append(LogFile(int(match[1]), status.st_size, modified_ms))
    return tuple(sorted(found, key=lambda file: file.version))


def _commit_objects(location: str, stores: Stores) -> tuple[LogFile, ...]:
    found = [
        LogFile(int(match[1]), one.size_bytes, one.modified_ns // 1_000_000)
        for one in Bucket(location, stores).listed(f"{location}/_delta_log")
        if (match := _COMMIT.fullmatch(one.address.rpartition("/")[2]))
    ]
    return tuple(sorted(found, key=lambda file: file.version))


def _last_checkpoint(location: str) -> int:
    log = Path(location) / "_delta_log"
    if is_url(location) or not log.is_dir():
        return -1
    found = (_CHECKPOINT.fullmatch(entry.name) for entry in os.scandir(log))
    return max((int(match[1]) for match in found if match), default=-1)


def check_log(location: str) -> None:
    """Refuse an empty commit, a gap or a wrong checkpoint: rows would silently be fewer.

    On an object store a commit is put there as a whole, and nobody looks twice.
    """
    if is_url(location):
        return
    checkpoint = _last_checkpoint(location)
    if checkpoint >= 0:
        check_checkpoint(location, checkpoint)
    live = commit_files(location, after=checkpoint)
    for file in live:
        if file.size_bytes == 0:
            raise damaged(location, f"commit {file.version} is an empty file")
    names = {file.version for file in live}
    for version in range(checkpoint + 1, max(names, default=checkpoint)):
        if version not in names and not has_commit(location, version):
            raise damaged(location, f"commit {version} is missing")


def open_table(location: str, version: int | None, options: Mapping[str, str]) -> DeltaTable:
    """The table itself, its log looked at first.

    Who lists a folder that grows meanwhile may be shown a later commit and not the one before it.
    """
    from deltalake import DeltaTable

    for _ in range(_TRIES):
        check_log(location)
        with suppress(CommitConflict), translated(location):
            return DeltaTable(location, version, storage_options=dict(options) or None)
    raise CommitConflict(f'"{location}" is written too quickly to be read')


def file_changes(
    location: str, version: int, stores: Stores = NO_STORES
) -> tuple[frozenset[str], frozenset[str]]:
    """The data files that a commit added and removed, as it spells them."""
    text = read_text(f"{location}/_delta_log/{version:020d}.json", stores)
    if text is None:
        raise VersionNotFound(
            f'commit {version} of "{location}" is no longer in its log',
            hint="the log was cleaned up; only commits that are still there can be looked into",
        )
    lines = text.split("\n")  # other breaks of lines stand within values
    actions = [json.loads(line) for line in lines if line]
    added, removed = (
        frozenset(action[kind]["path"] for action in actions if kind in action)
        for kind in ("add", "remove")
    )
    return added, removed


def commit_times(location: str, stores: Stores = NO_STORES) -> list[tuple[int, int]]:
    """Versions and the milliseconds they were made at, by the times Delta itself goes by."""
    times: list[tuple[int, int]] = []
    for file in commit_files(location, stores):
        # a later commit is never taken for older than an earlier one
        modified = max(file.modified_ms, times[-1][1] + 1) if times else file.modified_ms
        times.append((file.version, modified))
    return times


def version_at(location: str, moment: datetime, stores: Stores = NO_STORES) -> int:
    """The version that was current at a moment."""
    times, wanted_ms = commit_times(location, stores), int(moment.timestamp() * 1000)
    older = [version for version, modified in times if modified <= wanted_ms]
    if not older or wanted_ms > times[-1][1]:
        raise _no_version_at(location, moment, times)
    return older[-1]


def version_from(location: str, moment: datetime, stores: Stores = NO_STORES) -> int:
    """The first version that was made at a moment or after it."""
    times, wanted_ms = commit_times(location, stores), int(moment.timestamp() * 1000)
    newer = [version for version, modified in times if modified >= wanted_ms]
    if not newer:
        raise _no_version_at(location, moment, times)
    return newer[0]


def _no_version_at(
    location: str, moment: datetime, times: list[tuple[int, int]]
) -> VersionNotFound:
    return VersionNotFound(
        f'"{location}" has no version at {moment.isoformat()}',
        hint=f"its history goes from {_shown(times[0][1])} to {_shown(times[-1][1])}",
    )


def _shown(modified_ms: int) -> str:
    return datetime.fromtimestamp(modified_ms / 1000, UTC).isoformat(timespec="milliseconds")
