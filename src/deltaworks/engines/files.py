"""Files on disk: which there are, and whether they are still the same."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path

from deltaworks.engines.folder_manifest import is_landed, landed_batches
from deltaworks.errors import DeltaworksError, InputError, StorageError, UnsupportedOperation
from deltaworks.model.batch import FILES, Bounds, FileStamp
from deltaworks.model.table_ref import is_url
from deltaworks.suggest import did_you_mean

_SPARK_GLOB = re.compile(r"([\\*?\[\]{}])")


def file_bounds(pattern: str, *, written: str) -> Bounds:
    """Every file at a path, folder or glob, as it is now."""
    if is_url(pattern):
        raise UnsupportedOperation(
            f'"{written}" is on an object store, which this release does not read',
            hint="copy the files to a local folder",
        )
    try:
        stamps = tuple(sorted(_stamp(path) for path in _landed_files(pattern, written)))
    except OSError as problem:
        raise StorageError(f'"{written}" cannot be read: {problem.strerror}') from problem
    return Bounds(kind=FILES, identity=pattern, files=stamps)


def _landed_files(pattern: str, written: str) -> list[str]:
    """All files but those of a batch that another pipeline is just moving in."""
    found = _files(pattern, written)
    landed = landed_batches(found)
    if landed:
        found = _files(pattern, written)  # anew, once the manifests are read: batches are whole
    kept = [path for path in found if is_landed(path, landed)]
    if not kept:
        raise InputError(
            f'"{written}" holds only files of a batch that is not finished',
            hint="run the pipeline that writes them, and then this one again",
        )
    return kept


def _files(pattern: str, written: str) -> list[str]:
    if glob.has_magic(pattern) and not os.path.lexists(pattern):
        hits = [hit for hit in glob.glob(pattern, recursive=True) if _visible(Path(hit).name)]
        found = [name for hit in hits for name in _below(hit)]
        if not found:
            raise InputError(
                f'no file matches "{written}"',
                hint=f"correct the path, or put files there; looked for {pattern}",
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


def _stamp(path: str) -> FileStamp:
    status = os.stat(path)
    return FileStamp(path, status.st_size, status.st_mtime_ns)


def newer_files(now: Bounds, since: Bounds) -> Bounds:
    """Of the files there are now, those that were not read before, or not as they are now."""
    if since.identity != now.identity:
        return now
    known = {stamp.path: stamp for stamp in since.files}
    new = tuple(stamp for stamp in now.files if known.get(stamp.path) != stamp)
    undone = set(since.position.get("undone", ()))
    changed = [stamp.path for stamp in new if stamp.path in known.keys() - undone]
    return Bounds(
        kind=now.kind,
        identity=now.identity,
        files=new,
        position={"changed": changed} if changed else {},
    )


def changed_file(bounds: Bounds) -> str:
    """The first file that is not what it was when the bounds were taken; empty if none."""
    for stamp in bounds.files:
        try:
            same = _stamp(stamp.path) == stamp
        except OSError:
            return f'file "{stamp.path}" is gone'
        if not same:
            return f'file "{stamp.path}" has changed'
    return ""


def found_files(bounds: Bounds) -> str:
    """How many files there are, the first of which can be opened."""
    first, count = bounds.files[0].path, len(bounds.files)
    try:
        with open(first, "rb") as handle:
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
        hint="give this user the right to read it, or look after the disk",
    )


def damaged_file(path: str, what: str = "cannot be read") -> InputError:
    """The error for a file that is not what it should be."""
    return InputError(
        f'file "{path}" {what}',
        hint="check that it was written completely, or leave it out of the path",
        context={"path": path},
    )


def refuse_other_files(bounds: Bounds, beginning: bytes, *, kind: str) -> None:
    """Every file begins as its format does; Spark takes an empty one for one without rows."""
    for stamp in bounds.files:
        try:
            with open(stamp.path, "rb") as handle:
                begins = handle.read(len(beginning))
        except OSError as problem:
            raise unreadable_file(stamp.path, problem) from problem
        if begins != beginning:
            raise damaged_file(stamp.path, f"is not {kind} file")


def spark_paths(bounds: Bounds) -> list[str]:
    """The files for Spark's reader, which takes names for patterns unless told otherwise."""
    return [_SPARK_GLOB.sub(r"\\\1", stamp.path) for stamp in bounds.files]


def fsync_commit(table: str, version: int) -> None:
    """Put a commit on the platter: its file, then the folder that names it."""
    log = os.path.join(table, "_delta_log")
    fsync_path(os.path.join(log, f"{version:020d}.json"))
    fsync_path(log)


def fsync_path(path: str) -> None:
    """Put a file, or the names in a folder, on the platter."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return  # an object store, or a commit already folded into a checkpoint
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
