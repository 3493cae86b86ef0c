"""The names of a log's files: which commits, checkpoints and compacted commits there are.

Spark takes any number for a version and delta-rs only one of twenty digits. So a name that could
be a commit's and is not spelled like one is refused: one of the two would pass it over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from deltaworks.engines.deltars.errors import damaged

_COMMIT = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(
    r"([0-9]{20})\.checkpoint\.(?:(?:([0-9]{10})\.([0-9]{10})|[\w-]+)\.)?(?:parquet|json)"
)
_COMPACTED = re.compile(r"([0-9]{20})\.([0-9]{20})\.compacted\.json")
_LAST = 2**63 - 1
_NUMBER = re.compile(r"[\d\s]*")


@dataclass(frozen=True)
class CheckpointFiles:
    """The files of one checkpoint."""

    version: int
    sets: tuple[tuple[str, ...], ...]
    """Files that make a checkpoint together, one set for each time it was made."""
    parts_missing: tuple[int, ...] = ()


@dataclass(frozen=True)
class Compacted:
    """One file in place of several commits."""

    name: str
    first: int
    last: int


@dataclass(frozen=True)
class LogNames:
    """What lies in the folder of a log."""

    commits: tuple[int, ...]
    """Versions that are there as files, oldest first."""
    no_files: Mapping[int, str]
    """Versions whose names are there and stand for something else than a file."""
    checkpoints: tuple[CheckpointFiles, ...]
    """Those with all their parts, oldest first."""
    unfinished: tuple[CheckpointFiles, ...]
    compacted: tuple[Compacted, ...]
    odd: tuple[str, ...]
    """Names that only look like a commit's."""

    def checkpoint_for(self, version: int | None) -> CheckpointFiles | None:
        """The checkpoint that engines begin at to read a version, or the latest one."""
        found = [one for one in self.checkpoints if version is None or one.version <= version]
        return found[-1] if found else None


def log_names(location: str) -> LogNames | None:
    """The files of a log on this machine; None when there is no log."""
    folder = Path(location) / "_delta_log"
    if not folder.is_dir():
        if os.path.lexists(folder):
            raise damaged(location, "_delta_log is not a folder")
        return None
    return _sorted_out(os.scandir(folder))


def _sorted_out(entries: Iterable[os.DirEntry[str]]) -> LogNames:
    commits, no_files, odd = [], {}, []
    checkpoints: dict[int, list[re.Match[str]]] = {}
    compacted = []
    for entry in entries:
        name = entry.name
        if match := _COMMIT.fullmatch(name):
            what = _no_file(entry)
            if what:
                no_files[int(match[1])] = what
            commits.append(int(match[1]))
        elif match := _CHECKPOINT.fullmatch(name):
            checkpoints.setdefault(int(match[1]), []).append(match)
        elif match := _COMPACTED.fullmatch(name):
            compacted.append(Compacted(name, int(match[1]), int(match[2])))
        elif name.endswith(".json") and _looks_like_a_number(name[: -len(".json")]):
            odd.append(name)
    odd += [f"{version:020d}.json" for version in commits if version > _LAST]
    files = [_files(version, found) for version, found in sorted(checkpoints.items())]
    return LogNames(
        commits=tuple(sorted(version for version in commits if version <= _LAST)),
        no_files=no_files,
        checkpoints=tuple(one for one in files if not one.parts_missing),
        unfinished=tuple(one for one in files if one.parts_missing),
        compacted=tuple(sorted(compacted, key=lambda one: one.name)),
        odd=tuple(sorted(odd)),
    )


def _no_file(entry: os.DirEntry[str]) -> str:
    """What stands in place of a file; empty for a file."""
    if entry.is_symlink():
        return "" if Path(entry.path).is_file() else "a link to nothing"
    return "" if entry.is_file() else "a folder, not a file"


def _looks_like_a_number(text: str) -> bool:
    """Whether a text is a number once what cannot be seen is left out; nothing is one too."""
    seen = "".join(sign for sign in text if sign.isprintable())
    return bool(_NUMBER.fullmatch(seen))


def _files(version: int, found: list[re.Match[str]]) -> CheckpointFiles:
    """A checkpoint's files: single ones, and as many parts as each of them says there are."""
    sets: list[tuple[str, ...]] = [(match.string,) for match in found if match[2] is None]
    parts: dict[int, dict[int, str]] = {}
    for match in (match for match in found if match[2] is not None):
        parts.setdefault(int(match[3]), {})[int(match[2])] = match.string
    missing: tuple[int, ...] = ()
    for count, names in sorted(parts.items()):
        absent = tuple(part for part in range(1, count + 1) if part not in names)
        missing = missing or absent
        if not absent:
            sets.append(tuple(names[part] for part in sorted(names)))
    return CheckpointFiles(version, tuple(sorted(sets)), () if sets else missing)
