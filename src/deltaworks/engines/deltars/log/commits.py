"""A table's log, looked at file by file.

Both engines read an empty commit file as a commit without rows, and take clock times from the
files' own; so the files are looked at before they are trusted (`soundness.py`).
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
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.errors import translated
from deltaworks.errors import CommitConflict, UnsupportedOperation, VersionNotFound
from deltaworks.model.table_ref import is_url
from deltaworks.storage.objects import Bucket
from deltaworks.storage.paths import folders_in, read_text

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from deltaworks.engines.deltars.log.soundness import SoundLog

_COMMIT = re.compile(r"([0-9]{20})\.json")
_TRIES = 20
_MAX_VERSION = 2**63 - 1  # delta-rs counts versions in 64 bits


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
        if match and int(match[1]) > after and entry.is_file():
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


def check_log(location: str, version: int | None = None) -> SoundLog | None:
    """What a log says; refused when it cannot be believed, for rows would silently be fewer.

    On an object store a commit is put there as a whole, and nobody looks twice.
    """
    if is_url(location) or not os.path.lexists(f"{location}/_delta_log"):
        return None
    from deltaworks.engines.deltars.log.soundness import sound_log

    return sound_log(location, version)


def has_log(location: str, stores: Stores = NO_STORES) -> bool:
    """Whether a table may be at a place: whether it has a log at all."""
    return "_delta_log" in folders_in(location, stores)


def refuse_disputed(location: str, log: SoundLog | None) -> None:
    """Leave a table to Spark where delta-rs may read other rows of it."""
    if log is not None and log.disputed:
        raise UnsupportedOperation(
            f'"{location}" has compacted commits that say something else than its commits',
            hint=f"let Spark read it, or remove {log.disputed[0]} from its log",
        )


def open_table(location: str, version: int | None, options: Mapping[str, str]) -> DeltaTable:
    """The table itself, its log looked at first."""
    return opened(location, version, options)[0]


def opened(
    location: str, version: int | None, options: Mapping[str, str]
) -> tuple[DeltaTable, SoundLog | None]:
    """The table itself and what its log says.

    Who lists a folder that grows meanwhile may be shown a later commit and not the one before it.
    """
    from deltalake import DeltaTable

    if not is_url(location) and unquote(location) != location:
        raise UnsupportedOperation(
            f'"{location}" has a "%" in its path, which delta-rs takes for something else',
            hint="rename the folder, or let Spark read it",
        )
    for _ in range(_TRIES):
        with suppress(CommitConflict), translated(location):
            log = check_log(location, version)
            if version is not None and not _may_hold(log, version):
                raise VersionNotFound(f'"{location}" has no version {version}')
            return DeltaTable(location, version, storage_options=dict(options) or None), log
    raise CommitConflict(f'"{location}" is written too quickly to be read')


def _may_hold(log: SoundLog | None, version: int) -> bool:
    """Whether a version may be there; a log in a bucket is not listed here."""
    return version <= _MAX_VERSION and (log is None or log.has(version))


def commit_actions(
    location: str, version: int, stores: Stores = NO_STORES
) -> tuple[Mapping[str, Any], ...]:
    """All that a commit says, in its own order."""
    text = read_text(f"{location}/_delta_log/{version:020d}.json", stores)
    if text is None:
        raise VersionNotFound(
            f'commit {version} of "{location}" is no longer in its log',
            hint="the log was cleaned up; only commits that are still there can be looked into",
        )
    lines = text.split("\n")  # other breaks of lines stand within values
    return tuple(json.loads(line) for line in lines if line)


def file_changes(
    location: str, version: int, stores: Stores = NO_STORES
) -> tuple[frozenset[str], frozenset[str]]:
    """The data files that a commit added and removed, as it spells them."""
    actions = commit_actions(location, version, stores)
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
    """The version that was current at a timestamp."""
    times, wanted_ms = commit_times(location, stores), int(moment.timestamp() * 1000)
    older = [version for version, modified in times if modified <= wanted_ms]
    if not older or wanted_ms > times[-1][1]:
        raise _no_version_at(location, moment, times)
    return older[-1]


def version_from(location: str, moment: datetime, stores: Stores = NO_STORES) -> int:
    """The first version committed at a timestamp or later."""
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
