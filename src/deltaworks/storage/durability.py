"""Onto stable storage: files, the names of files in their folders, and commits with all they name.

Neither Spark nor delta-rs ask the disk for that, so we do, after they wrote and before a run says
that a batch is done. On an object store its answer is all there is to wait for.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltaworks.errors import StorageError
from deltaworks.model.table_ref import is_url

_COMMIT = re.compile(r"(\d{20})\.json")
_OF_VERSION = re.compile(r"\.?(\d{20})\..+")
"""A file of the log that belongs to a version: the commit, its sums, a checkpoint."""
_WRITTEN_BACK_S = 120
"""By then the kernel has written on its own what nobody asked for."""
_LOOKED_BACK = 100
"""So many versions of others before ours may be as new as it is."""
_safe_until: dict[str, int] = {}
"""For each table, the version up to which this process has put its log on the disk."""
_AT_ONCE = 8
_FEW = 6
"""So many are synced one by one: that takes less time than to load what threads need."""
_CANNOT = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)
"""What filesystems say that know no such thing for a folder."""
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_ID_LENGTH = 20


def fsync_path(path: str) -> None:
    """Put a file, or the names in a folder, on stable storage."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return  # an object store, or a commit already folded into a checkpoint
    try:
        os.fsync(handle)
    except OSError as problem:
        if problem.errno not in _CANNOT:
            raise StorageError(
                f'"{path}" cannot be put on the disk: {problem.strerror}',
                hint="check the disk, then run it again",
            ) from problem
    finally:
        os.close(handle)


def fsync_paths(paths: Iterable[str]) -> None:
    """The same for many, several at once: the disk serves them together."""
    several = list(dict.fromkeys(paths))
    if len(several) <= _FEW:
        for path in several:
            fsync_path(path)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(fsync_path, several))


def fsync_tree(folder: str) -> None:
    """A folder with all that is in it; the files come first, then the folders that name them."""
    found = list(os.walk(folder))
    fsync_paths(str(Path(around, name)) for around, _, names in found for name in names)
    fsync_paths(around for around, _, _ in found)


def fsync_around(folder: str) -> None:
    """The folders around one that is new, as far as they are as new as it is."""
    fsync_paths(str(path) for path in Path(folder).parents if _is_young(path))


def make_durable(location: str, version: int) -> None:
    """Put a commit and all that it names on stable storage, and the log as far as it is new.

    Commits that followed it count too: automatic compaction, changed properties.
    """
    if is_url(location):
        return
    table = Path(location)
    log = table / "_delta_log"
    known = _safe_until.get(location, -1)
    since = known if known < version else -1  # or it is another table by now
    new = [path for path in log.iterdir() if _is_new(path, version, since)]
    commits = [path for path in new if _version(path) >= version]
    data = [path for commit in commits for path in _named(table, commit)]
    _sync(one for path in data for one in (path, _sum_of(path)))
    _sync({around for path in data for around in path.parents if table in around.parents})
    _sync(new)
    _sync((log, table))
    _safe_until[location] = max(map(_version, commits), default=since)
    if any(_version(path) == 0 for path in new):
        fsync_around(location)


def torn_files(location: str, version: int) -> tuple[str, ...]:
    """Files that a commit put into the table and that are not what it says, after a power cut.

    Those that a later commit took out again are left out: they may be gone by now.
    """
    if is_url(location):
        return ()
    table = Path(location)
    log = table / "_delta_log"
    later = [path for path in log.iterdir() if _version(path) > version]
    actions = [action for commit in later for action in _actions(commit)]
    removed = {action["remove"]["path"] for action in actions if "remove" in action}
    own = (action.get("add") for action in _actions(log / f"{version:020d}.json"))
    added = {add["path"]: add["size"] for add in own if add is not None}
    places = {_place(table, path): size for path, size in added.items() if path not in removed}
    return tuple(str(path) for path, size in places.items() if _size(path) != size)


def _sync(paths: Iterable[Path]) -> None:
    fsync_paths(map(str, paths))


def _version(path: Path) -> int:
    """The version that a file of the log commits; -1 for any other file."""
    match = _COMMIT.fullmatch(path.name)
    return -1 if match is None else int(match[1])


def _is_new(path: Path, version: int, since: int) -> bool:
    """Whether a file of the log may not be safe yet: of this version or later, or just written."""
    match = _OF_VERSION.fullmatch(path.name)
    if match is not None and not max(since, version - _LOOKED_BACK) < int(match[1]) < version:
        return int(match[1]) >= version
    return _is_young(path)


def _is_young(path: Path) -> bool:
    """Whether the kernel may not have written it on its own yet."""
    try:
        return time.time() - path.stat().st_mtime < _WRITTEN_BACK_S
    except FileNotFoundError:  # a draft of another writer
        return False


def _named(table: Path, commit: Path) -> Iterator[Path]:
    """The files that a commit put there: rows, records of changes, deletion vectors."""
    for action in _actions(commit):
        added = action.get("add") or action.get("cdc")
        if added is not None:
            yield _place(table, added["path"])
            vector = added.get("deletionVector") or {}
            if vector.get("storageType") == "u":
                yield vector_file(table, vector["pathOrInlineDv"])


def _actions(commit: Path) -> Iterator[dict[str, Any]]:
    """What a commit says, as far as it can be read: another writer's may be half there."""
    try:
        with commit.open(encoding="utf-8") as handle:
            for line in handle:
                yield json.loads(line)
    except (OSError, ValueError):
        return


def _place(table: Path, path: str) -> Path:
    return table / unquote(path).removeprefix("file:")


def vector_file(table: Path, told: str) -> Path:
    """Where a deletion vector is: a folder's name, and an id in letters that JSON likes."""
    folder, text = told[:-_ID_LENGTH], told[-_ID_LENGTH:]
    own = uuid.UUID(bytes=base64.b85decode(text.translate(str.maketrans(_Z85, _B85))))
    return table / folder / f"deletion_vector_{own}.bin"


def _sum_of(path: Path) -> Path:
    """Hadoop's sum of a file: one that is torn would make a whole file unreadable."""
    return path.with_name(f".{path.name}.crc")


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
