"""Files by their address, wherever they are: on this machine, or on an object store."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.model.table_ref import is_url
from deltaworks.storage.durability import fsync_path
from deltaworks.storage.objects import Bucket, StoredObject

_ANY_DEPTH = "**"


def open_bytes(path: str, stores: Stores = NO_STORES) -> IO[bytes]:
    """A file to read from its beginning."""
    if is_url(path):
        return Bucket(path, stores).open(path)
    return Path(path).open("rb")


def read_text(path: str, stores: Stores = NO_STORES) -> str | None:
    """What a small file says; None when it is not there."""
    if is_url(path):
        found = Bucket(path, stores).read(path)
        return None if found is None else found[0].decode("utf-8")
    try:
        return Path(path).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_text(path: str, text: str, stores: Stores = NO_STORES) -> None:
    """Put a small file there as a whole; it is safe when this returns."""
    if is_url(path):
        Bucket(path, stores).put(path, text.encode())
        return
    draft = Path(path).with_name(f".{Path(path).name}.draft")
    with draft.open("w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(path)
    fsync_path(str(draft.parent))


def remove_folder(path: str, stores: Stores = NO_STORES) -> None:
    """Remove a folder and what is in it, if it is there."""
    if is_url(path):
        bucket = Bucket(path, stores)
        bucket.delete(one.address for one in bucket.listed(path))
    else:
        shutil.rmtree(path, ignore_errors=True)


def folders_in(path: str, stores: Stores = NO_STORES) -> tuple[str, ...]:
    """The names of the folders right in a folder; none when it is not there."""
    if is_url(path):
        return Bucket(path, stores).folders(path)
    try:
        return tuple(sorted(entry.name for entry in os.scandir(path) if entry.is_dir()))
    except (FileNotFoundError, NotADirectoryError):
        return ()


def folders_around(path: str) -> tuple[str, ...]:
    """The folders that a file lies in, the nearest first."""
    start = path.index("://") + 3 if is_url(path) else 0
    found = []
    end = path.rfind("/", start)
    while end > start:
        found.append(path[:end])
        end = path.rfind("/", start, end)
    return tuple(found)


def objects_at(pattern: str, stores: Stores) -> list[StoredObject]:
    """Every object at an address, below a folder, or of a glob; hidden ones as well."""
    bucket = Bucket(pattern, stores)
    if not glob.has_magic(pattern) and (found := bucket.look(pattern)) is not None:
        return [found]
    base = fixed_part(pattern)
    below = [one for one in bucket.listed(base) if one.size_bytes or one.address[-1:] != "/"]
    if base == pattern:
        return below
    wanted = pattern[len(base) + 1 :].split("/")
    return [one for one in below if _matches(one.address[len(base) + 1 :].split("/"), wanted)]


def fixed_part(pattern: str) -> str:
    """The folder that a glob looks in: the address up to its first part with a wildcard."""
    parts = pattern.split("/")
    fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return "/".join(parts[:fixed])


def _matches(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a path, or a folder above it, is what a glob asks for."""
    if not wanted:
        return True
    if wanted[0] == _ANY_DEPTH:
        return any(_matches(parts[i:], wanted[1:]) for i in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _matches(parts[1:], wanted[1:])
