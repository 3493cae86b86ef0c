"""Files of a source: which there are, which are new, and whether they are still the same.

A file inside the project is known by its path below the project's folder, any other by its
absolute path, however its pattern is spelled. Ledgers of older versions know absolute paths only.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.errors import DeltaworksError, InputError, StorageError
from deltaworks.model.batch import FILES, Bounds, FileStamp
from deltaworks.model.table_ref import is_url
from deltaworks.storage.durability import fsync_around, fsync_path
from deltaworks.storage.folder_manifest import is_landed, landed_batches
from deltaworks.storage.paths import fixed_part, objects_at, open_bytes
from deltaworks.suggest import did_you_mean

__all__ = [
    "MissingColumns",
    "UnknownColumns",
    "changed_file",
    "damaged_file",
    "file_bounds",
    "found_files",
    "fsync_commit",
    "fsync_path",
    "newer_files",
    "refuse_other_files",
    "spark_paths",
    "unreadable_file",
]

UnknownColumns = Literal["refuse", "warn", "keep", "ignore"]
"""What may happen to a column that a file has and its source does not expect."""
MissingColumns = Literal["refuse", "warn", "fill"]
"""What may happen when a file lacks a column that its source expects."""
_SPARK_GLOB = re.compile(r"([\\*?\[\]{}])")
_END_BYTES = 65_536
_EMPTY = "empty"
"""In the context of the error for a place that may be right, and has no files yet."""
_TICK_NS = 50_000_000
"""A file that changed less than this ago may change again, and its times stay as they are."""


@dataclass(frozen=True)
class Names:
    """Names of the files that one pattern finds, as seen from a project's folder.

    Links are followed up to where the pattern begins to look. Below that, every path that leads to
    a file counts for itself, because its folders may be columns.
    """

    root: Path | None
    pattern: str

    @cached_property
    def _bases(self) -> tuple[str, str]:
        """The folder that the pattern looks in, as it is spelled and as it really is."""
        base = fixed_part(self.pattern)
        if base == self.pattern and not os.path.isdir(base):
            base = base.rpartition("/")[0]
        return base, os.path.realpath(base or "/").rstrip("/")

    @cached_property
    def _home(self) -> str:
        return "" if self.root is None else os.path.realpath(self.root).rstrip("/") + "/"

    def of(self, path: str) -> str:
        """What a file is known by."""
        if is_url(path):
            return path
        spelled, real = self._bases
        full = f"{real}{path[len(spelled) :]}" if path.startswith(f"{spelled}/") else path
        return full.removeprefix(self._home)


def file_bounds(
    pattern: str,
    *,
    written: str,
    stores: Stores = NO_STORES,
    root: Path | None = None,
    may_be_empty: bool = False,
) -> Bounds:
    """Every file at a path, folder or glob, as it is now; known by names below a root.

    Where it may be empty, a folder without files has none to read; one that is not there is wrong.
    """
    try:
        stamps = tuple(sorted(_landed_files(pattern, written, stores, Names(root, pattern))))
    except InputError as problem:
        is_empty = _EMPTY in problem.context
        is_there = is_url(pattern) or os.path.isdir(fixed_part(pattern))
        if not (may_be_empty and is_empty and is_there):
            raise
        stamps = ()
    except OSError as problem:
        raise StorageError(f'"{written}" cannot be read: {problem.strerror}') from problem
    return Bounds(kind=FILES, identity=pattern, files=stamps)


def _landed_files(pattern: str, written: str, stores: Stores, names: Names) -> list[FileStamp]:
    """All files but those of a batch that another pipeline is just moving in."""
    found = _found(pattern, written, stores, names)
    landed = landed_batches((stamp.path for stamp in found), stores)
    if landed:  # anew, once the manifests are read: batches are whole
        found = _found(pattern, written, stores, names)
    kept = [stamp for stamp in found if is_landed(stamp.path, landed)]
    if not kept:
        raise InputError(
            f'"{written}" holds only files of a batch that is not finished',
            hint="run the pipeline that writes them, and then this one again",
            context={_EMPTY: True},
        )
    return kept


def _found(pattern: str, written: str, stores: Stores, names: Names) -> list[FileStamp]:
    if is_url(pattern):
        return _objects(pattern, written, stores)
    return [stamp_of(path, names) for path in _files(pattern, written)]


def _objects(pattern: str, written: str, stores: Stores) -> list[FileStamp]:
    base = fixed_part(pattern)
    found = [
        FileStamp(one.address, one.size_bytes, one.modified_ns, one.tag, name=one.address)
        for one in objects_at(pattern, stores)
        if all(map(_visible, one.address[len(base) + 1 :].split("/"))) or one.address == pattern
    ]
    if not found:
        what = "no file matches" if base != pattern else "there is no file at"
        raise InputError(
            f'{what} "{written}"',
            hint=f"correct the path, or put files there; looked for {pattern}",
            context={_EMPTY: True},
        )
    return found


def _files(pattern: str, written: str) -> list[str]:
    if glob.has_magic(pattern) and not os.path.lexists(pattern):
        hits = [hit for hit in glob.glob(pattern, recursive=True) if _visible(Path(hit).name)]
        found = [name for hit in hits for name in _below(hit)]
        if not found:
            raise InputError(
                f'no file matches "{written}"',
                hint=f"correct the path, or put files there; looked for {pattern}",
                context={_EMPTY: True},
            )
        return list(dict.fromkeys(found))
    if not os.path.lexists(pattern):
        raise InputError(f'"{written}" does not exist', hint=_nearby(pattern))
    if not _visible(Path(pattern).name):
        raise InputError(
            f'"{written}" begins with "_" or ".", and Spark passes over such names',
            hint="give it another name",
        )
    found = list(_below(pattern))
    if not found:
        raise InputError(
            f'folder "{written}" holds no files',
            hint=f"correct the path, or put files there; looked in {pattern}",
            context={_EMPTY: True},
        )
    return found


def _nearby(path: str) -> str:
    parent = Path(path).parent
    if not parent.is_dir():
        return f'folder "{parent}" does not exist'
    names = sorted(entry.name for entry in parent.iterdir() if not entry.name.startswith("."))
    return did_you_mean(Path(path).name, names) or f'folder "{parent}" is empty'


def _below(path: str) -> Iterable[str]:
    """The file itself, or all files below a folder but those that Spark takes for hidden."""
    if not os.path.isdir(path):
        return [path]
    found: list[str] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if _visible(name))
        found.extend(os.path.join(folder, name) for name in sorted(names) if _visible(name))
    return found


def _visible(name: str) -> bool:
    return not name.startswith(".") and (not name.startswith("_") or "=" in name)


def stamp_of(path: str, names: Names) -> FileStamp:
    """A file on this machine as it is now; what its content is, is told when somebody asks."""
    status = os.stat(path)
    settled = time.time_ns() - status.st_ctime_ns > _TICK_NS
    seen = f"{status.st_dev}:{status.st_ino}:{status.st_ctime_ns}" if settled else ""
    return FileStamp(path, status.st_size, status.st_mtime_ns, name=names.of(path), seen=seen)


def tagged(stamp: FileStamp) -> FileStamp:
    """The stamp with the tag of its content; objects have theirs from the store."""
    if stamp.tag or is_url(stamp.path):
        return stamp
    if not stamp.seen:
        return replace(stamp, tag=_ends(stamp.path, stamp.size_bytes))
    return replace(stamp, tag=_kept_ends(stamp.path, stamp.size_bytes, stamp.seen))


@lru_cache(maxsize=200_000)
def _kept_ends(path: str, size_bytes: int, *_seen: str) -> str:
    return _ends(path, size_bytes)


def _ends(path: str, size_bytes: int) -> str:
    """A hash of the size and of both ends of a file."""
    with Path(path).open("rb") as handle:
        ends = handle.read(_END_BYTES)
        if size_bytes > _END_BYTES:
            handle.seek(max(_END_BYTES, size_bytes - _END_BYTES))
            ends += handle.read(_END_BYTES)
    return hashlib.sha256(b"%d:%b" % (size_bytes, ends)).hexdigest()[:32]


def is_same(known: FileStamp, found: FileStamp) -> bool:
    """Whether a file is what it was: untouched since, or with the same ends, size and time."""
    if not known.same_content(found):
        return False
    untouched = bool(known.seen) and known.seen == found.seen
    if not known.tag or is_url(found.path) or untouched:
        return True
    return known.tag == tagged(found).tag


def newer_files(now: Bounds, since: Bounds, root: Path | None = None) -> Bounds:
    """Of the files there are now, those that were not read before, or not as they are now."""
    there = {stamp.key: stamp for stamp in now.files}
    known = _known_here(since, now, there, root)
    new = tuple(
        tagged(stamp)
        for stamp in now.files
        if stamp.key not in known or not is_same(known[stamp.key], stamp)
    )
    changed = [stamp.key for stamp in new if stamp.key in known and not known[stamp.key].unread]
    fresh = {stamp.key for stamp in new}
    return Bounds(
        kind=now.kind,
        identity=now.identity,
        files=new,
        passed=tuple(tagged(stamp) for stamp in since.passed if stamp.key not in fresh),
        position={"changed": changed} if changed else {},
    )


def _known_here(
    since: Bounds, now: Bounds, there: Mapping[str, FileStamp], root: Path | None
) -> dict[str, FileStamp]:
    """What was read, by the names that the files have now."""
    names, by_path = Names(root, since.identity), {stamp.path: stamp for stamp in now.files}
    known = {}
    passed = (replace(stamp, unread=True) for stamp in since.passed)
    for stamp in (*passed, *since.files):
        key = stamp.name or names.of(stamp.path)
        if key not in there and not is_url(stamp.path) and not os.path.lexists(stamp.path):
            place = _rebased(stamp.path, since.identity, now.identity)
            key = _moved(stamp, key, there, by_path.get(place)) or key
        known[key] = stamp
    return known


def _moved(
    stamp: FileStamp, key: str, there: Mapping[str, FileStamp], below: FileStamp | None
) -> str:
    """The name that a file has got by a move of its folder; empty when there is none."""
    if not stamp.name and key.startswith("/"):  # of an older version, in a project that moved
        ends = [name for name in _endings(stamp.path) if name in there]
        if ends:
            return ends[0]
    return below.key if below is not None and is_same(stamp, below) else ""


def _endings(path: str) -> Iterable[str]:
    """The ends of a path that may be a name in a project, the longest first."""
    parts = path.split("/")
    return ("/".join(parts[start:]) for start in range(2, len(parts)))


def _rebased(path: str, before: str, after: str) -> str:
    """A path below the folder of one pattern, below that of another."""
    old, new = fixed_part(before), fixed_part(after)
    return f"{new}{path[len(old) :]}" if path.startswith(f"{old}/") or path == old else path


def here(bounds: Bounds, pattern: str, root: Path | None = None) -> Bounds:
    """Recorded bounds with the paths under which their files are found now."""
    if is_url(pattern):
        return replace(bounds, identity=pattern)
    names = Names(root, pattern)
    files = tuple(_found_here(stamp, bounds.identity, names) for stamp in bounds.files)
    return replace(bounds, identity=pattern, files=files)


def _found_here(stamp: FileStamp, before: str, names: Names) -> FileStamp:
    """The file where it is now: below the pattern, or below the project; else where it was."""
    below = os.path.join(names.root or "/", stamp.name or stamp.path)
    for place in (_rebased(stamp.path, before, names.pattern), below):
        with suppress(OSError):
            found = stamp_of(place, names)
            if is_same(stamp, found):
                return replace(stamp, path=place, seen=found.seen)
    return stamp


def changed_file(bounds: Bounds, stores: Stores = NO_STORES) -> str:
    """The first file that is not what it was when the bounds were taken; empty if none."""
    if is_url(bounds.identity):
        return _changed_object(bounds, stores)
    names = Names(None, bounds.identity)
    for stamp in bounds.files:
        try:
            same = is_same(stamp, stamp_of(stamp.path, names))
        except OSError:
            return f'file "{stamp.path}" is gone'
        if not same:
            return f'file "{stamp.path}" has changed'
    return ""


def _changed_object(bounds: Bounds, stores: Stores) -> str:
    there = {one.address: one for one in objects_at(bounds.identity, stores)}
    for stamp in bounds.files:
        found = there.get(stamp.path)
        if found is None:
            return f'file "{stamp.path}" is gone'
        if (found.size_bytes, found.tag) != (stamp.size_bytes, stamp.tag):
            return f'file "{stamp.path}" has changed'
    return ""


def found_files(bounds: Bounds, stores: Stores = NO_STORES) -> str:
    """How many files there are, the first of which can be opened."""
    if not bounds.files:
        return "the folder is there, and no file is in it yet"
    first, count = bounds.files[0].path, len(bounds.files)
    try:
        with open_bytes(first, stores) as handle:
            handle.read(1)
    except OSError as problem:
        raise unreadable_file(first, problem) from problem
    return f'file "{first}"' + (f" and {count - 1:,} more" if count > 1 else "")


def unreadable_file(path: str, problem: OSError) -> DeltaworksError:
    """The error for a file that cannot be read: what the disk says, or that it is damaged."""
    if problem.strerror is None:
        return damaged_file(path)
    return StorageError(
        f'file "{path}" cannot be read: {problem.strerror}',
        hint="give this user the right to read it, or check the disk",
    )


def damaged_file(path: str, what: str = "cannot be read") -> InputError:
    """The error for a file that is not what it should be."""
    return InputError(
        f'file "{path}" {what}',
        hint="check that it was written completely, or leave it out of the path",
        context={"path": path},
    )


def refuse_other_files(
    bounds: Bounds, beginning: bytes, *, kind: str, stores: Stores = NO_STORES
) -> None:
    """Every file begins as its format does; Spark takes an empty one for one without rows."""
    for stamp in bounds.files:
        try:
            with open_bytes(stamp.path, stores) as handle:
                begins = handle.read(len(beginning))
        except OSError as problem:
            raise unreadable_file(stamp.path, problem) from problem
        if begins != beginning:
            raise damaged_file(stamp.path, f"is not {kind} file")


def spark_paths(bounds: Bounds) -> list[str]:
    """The files for Spark's reader, which takes names for patterns unless told otherwise."""
    return [_for_spark(stamp.path) for stamp in bounds.files]


def _for_spark(path: str) -> str:
    spelled = _SPARK_GLOB.sub(r"\\\1", path)
    if spelled != path and "://" not in path and ":" in path:
        raise InputError(
            f'"{path}" has a ":" and one of \\ * ? [ ] {{ }} in it, and Spark can read no file '
            "whose path has both",
            hint="give its folder another name",
        )
    return spelled


def fsync_commit(table: str, version: int) -> None:
    """Put a commit on the disk: its file, then the folder that names it; of a new table, more."""
    log = os.path.join(table, "_delta_log")
    fsync_path(os.path.join(log, f"{version:020d}.json"))
    fsync_path(log)
    if version == 0 and not is_url(table):
        fsync_path(table)
        fsync_around(table)
