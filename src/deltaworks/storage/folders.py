"""Folders on disk: made, writable, with room left."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from deltaworks.errors import StorageError
from deltaworks.model.table_ref import is_url

_MIN_FREE_BYTES = 256 * 1024


def refuse_unwritable(location: str) -> None:
    """delta-rs panics, on the user's screen, where a disk is full or a folder is not ours."""
    if not has_room(location, _MIN_FREE_BYTES):
        raise StorageError(
            f'no space left on the disk of "{location}"', hint="free some space and run it again"
        )
    for folder in () if is_url(location) else (Path(location), Path(location, "_delta_log")):
        if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
            raise StorageError(
                f'permission denied: "{folder}"',
                hint="give this user the right to write there; nothing was committed",
            )


def has_room(location: str, size_bytes: int) -> bool:
    """Whether so much can be written there; nobody can tell of an object store."""
    if is_url(location):
        return True
    place = next((p for p in (Path(location), *Path(location).parents) if p.exists()), None)
    return place is None or bool(shutil.disk_usage(place).free >= size_bytes)


def make_folder(location: str) -> None:
    """Make a table's folder, or say why it cannot be made."""
    try:
        Path(location).mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StorageError(
            f'"{location}" cannot be made: {problem.strerror}',
            hint="give this user the right to write in the warehouse, or choose another one",
        ) from problem
