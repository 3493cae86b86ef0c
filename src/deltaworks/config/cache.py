"""Where downloaded and generated files that can be made again are kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import platformdirs

CACHE_VARIABLE = "DELTAWORKS_CACHE"


def cache_dir(environ: Mapping[str, str]) -> Path:
    """The cache folder: `DELTAWORKS_CACHE`, or the platform's own place for caches."""
    chosen = environ.get(CACHE_VARIABLE, "").strip()
    if chosen:
        return Path(chosen).expanduser().absolute()
    return platformdirs.user_cache_path("deltaworks")


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file that others see whole or not at all, after a power cut too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
