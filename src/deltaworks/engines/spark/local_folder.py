"""Batches in a folder of this machine.

Overwriting swaps the whole folder; a reader that opens the folder by name sees the old files or
the new ones. Appending moves files in one by one, and the manifest last.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from deltaworks.engines.folder_manifest import (
    MANIFEST,
    batch_mark,
    batch_of,
    read_manifest,
    short_name,
)
from deltaworks.engines.locations import write_text
from deltaworks.engines.spark.folder import FolderWriter, Manifest, a_file, foreign
from deltaworks.model.commit import Txn


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

    def refuse_foreign(self, *, replace: bool) -> None:
        here = Path(self.folder)
        if here.exists() and not here.is_dir():
            raise a_file(self.folder)
        holds_some = replace and here.is_dir() and any(here.iterdir())
        if holds_some and not (here / MANIFEST).exists():
            raise foreign(self.folder)

    def clear_staging(self) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)

    def swap(self, txn: Txn, document: Manifest) -> None:
        here, staging = Path(self.folder), Path(self.staging)
        _write_json(staging / MANIFEST, document)
        if here.exists():
            here.rename(self._old)
        staging.rename(here)
        shutil.rmtree(self._old, ignore_errors=True)

    def recover(self) -> None:
        here = Path(self.folder)
        if not self._old.exists():
            return
        if here.exists():
            shutil.rmtree(self._old, ignore_errors=True)
        else:
            self._old.rename(here)

    def move_in(self, txn: Txn, document: Manifest, *, landed: int) -> None:
        here, staging = Path(self.folder), Path(self.staging)
        mark = batch_mark(txn.version, txn.app_id)
        here.mkdir(parents=True, exist_ok=True)
        if not (here / MANIFEST).exists():  # before the first file, or it would count
            _write_json(here / MANIFEST, {**document, "writers": {}})
        for leftover in _after(landed, here, short_name(txn.app_id)):
            leftover.unlink()
        for path in _data_files(staging):
            target = here / path.relative_to(staging).parent / f"{mark}{path.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
        _write_json(here / MANIFEST, document)


def _after(landed: int, folder: Path, writer: str) -> list[Path]:
    """Files of a writer's batches after the last one that landed: moved in, never finished."""
    files = [(path, batch_of(path.name)) for path in folder.rglob(f"batch*-{writer}-*")]
    return [path for path, told in files if told and told[0] == writer and told[1] > landed]


def _data_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(("_", ".")):
            yield path


def _write_json(path: Path, document: Manifest) -> None:
    write_text(str(path), json.dumps(document))
