"""Batches in a folder of this machine.

Overwriting swaps the whole folder; a reader that opens the folder by name sees the old files or
the new ones. Appending moves files in one by one, and the manifest last.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from deltaworks.engines.spark.write.folder import (
    FolderWriter,
    Manifest,
    a_file,
    foreign,
    refuse_files,
)
from deltaworks.model.commit import Txn
from deltaworks.model.table_ref import is_lock
from deltaworks.storage.durability import fsync_around, fsync_paths, fsync_tree
from deltaworks.storage.folder_manifest import (
    MANIFEST,
    batch_mark,
    batch_of,
    is_ours,
    read_manifest,
    short_name,
)
from deltaworks.storage.paths import write_text


class LocalFolder(FolderWriter):
    """Stages beside the folder, and renames."""

    @property
    def staging(self) -> str:
        return str(self._beside("staging"))

    def _beside(self, what: str) -> Path:
        here = Path(self.folder)
        return here.with_name(f".{here.name}.deltaworks-{what}")

    @property
    def _old(self) -> Path:
        return self._beside("old")

    def _standing(self) -> Path:
        """Where the files are: the folder, or the place a swap that was cut in two moved it to."""
        here = Path(self.folder)
        return self._old if self._old.exists() and not here.exists() else here

    def exists(self) -> bool:
        return self._standing().exists()

    def manifest(self) -> Manifest:
        return read_manifest(str(self._standing()))

    def refuse_foreign(self, manifest: Manifest, *, replace: bool) -> None:
        here = Path(self.folder)
        if here.exists() and not here.is_dir():
            raise a_file(self.folder)
        if not replace or not here.is_dir():
            return
        others = (path for path in here.iterdir() if not is_lock(path.name))
        if any(others) and not (here / MANIFEST).exists():
            raise foreign(self.folder)
        refuse_files(self.folder, _files_in(here), manifest)

    def clear_staging(self) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)

    def swap(self, txn: Txn, document: Manifest) -> None:
        here, staging = Path(self.folder), Path(self.staging)
        fsync_tree(self.staging)
        _write_json(staging / MANIFEST, {**document, "files": list(_files_in(staging))})
        if here.exists():
            here.rename(self._old)
        staging.rename(here)
        fsync_around(self.folder)
        self._remove_old()

    def recover(self) -> None:
        here = Path(self.folder)
        if not self._old.exists():
            return
        if here.exists():
            self._remove_old()
        else:
            self._old.rename(here)

    def _remove_old(self) -> None:
        """Remove what was replaced; what others put there, hidden or just now, moves on with us."""
        if not self._old.exists():
            return
        manifest = read_manifest(str(self._old))
        # the manifest goes last: without it nobody could tell the rest from files of others
        for path in sorted(_files_in(self._old), key=lambda path: path == MANIFEST):
            target = Path(self.folder, path)
            if is_ours(path, manifest):
                (self._old / path).unlink()
            elif not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                (self._old / path).rename(target)
        if not any(_files_in(self._old)):
            shutil.rmtree(self._old, ignore_errors=True)

    def move_in(self, txn: Txn, document: Manifest, *, landed: int) -> None:
        here, staging = Path(self.folder), Path(self.staging)
        mark = batch_mark(txn.version, txn.app_id)
        here.mkdir(parents=True, exist_ok=True)
        if not (here / MANIFEST).exists():  # before the first file, or it would count
            _write_json(here / MANIFEST, {**document, "writers": {}})
        for leftover in _after(landed, here, short_name(txn.app_id)):
            leftover.unlink()
        fsync_tree(self.staging)
        folders = {self.folder}
        for path in _data_files(staging):
            target = here / path.relative_to(staging).parent / f"{mark}{path.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
            folders |= {str(around) for around in target.parents if here in around.parents}
        fsync_paths(folders)
        _write_json(here / MANIFEST, document)
        fsync_around(self.folder)


def _after(landed: int, folder: Path, writer: str) -> list[Path]:
    """Files of a writer's batches after the last one that landed: moved in, never finished."""
    files = [(path, batch_of(path.name)) for path in folder.rglob(f"batch*-{writer}-*")]
    return [path for path, told in files if told and told[0] == writer and told[1] > landed]


def _files_in(folder: Path) -> Iterator[str]:
    """All that is no folder, below a folder; links count, wherever they lead."""
    for around, folders, names in os.walk(folder):
        links = [name for name in folders if Path(around, name).is_symlink()]
        for name in sorted([*names, *links]):
            yield Path(around, name).relative_to(folder).as_posix()


def _data_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(("_", ".")):
            yield path


def _write_json(path: Path, document: Manifest) -> None:
    write_text(str(path), json.dumps(document))
