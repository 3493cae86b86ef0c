"""A power cut, as unkind as one can be: what nobody asked the disk to keep is gone."""

from __future__ import annotations

import os
import shutil
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

Identity = tuple[int, int]
"""A file or folder, whatever it is called by now."""


class Platter:
    """What is on stable storage: each file and folder as it was when it was last synced.

    Neither Java nor Rust sync anything here, so all calls that count go through Python. What was
    there before counts as safe.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.safe_since: dict[Identity, int] = {}
        self.names: dict[Identity, dict[str, int]] = {}
        for path in (root, *root.rglob("*")):
            self._remember(os.open(path, os.O_RDONLY))
        real = os.fsync

        def fsync(handle: int) -> None:
            real(handle)
            self._remember(os.dup(handle))

        monkeypatch.setattr(os, "fsync", fsync)

    def _remember(self, handle: int) -> None:
        status = os.fstat(handle)
        identity = (status.st_dev, status.st_ino)
        if stat.S_ISDIR(status.st_mode):
            with os.scandir(handle) as entries:
                self.names[identity] = {entry.name: entry.inode() for entry in entries}
        self.safe_since[identity] = time.time_ns()
        os.close(handle)

    def cut(self) -> list[str]:
        """Take away what is not safe: names that folders may not know, and what files may lack.

        Answers what was lost.
        """
        lost: list[str] = []
        self._cut(self.root, lost)
        return lost

    def _cut(self, folder: Path, lost: list[str]) -> None:
        names = self.names.get(_identity(folder), {})
        for path in sorted(folder.iterdir()):
            if names.get(path.name) != path.stat().st_ino:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            elif path.is_dir():
                self._cut(path, lost)
                continue
            elif path.stat().st_mtime_ns > self.safe_since.get(_identity(path), 0):
                path.write_bytes(b"")
            else:
                continue
            lost.append(path.relative_to(self.root).as_posix())


def _identity(path: Path) -> Identity:
    status = path.stat()
    return status.st_dev, status.st_ino
