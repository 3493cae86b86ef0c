"""Rows into a folder of files: staged beside it, then moved in, so that nothing is half there.

A small manifest in the folder (hidden from Spark, as its name starts with `_`) says which batch
of which writer landed last. Overwriting swaps the whole folder; a reader that opens the folder by
name sees the old files or the new ones. Appending moves files in one by one, and the manifest
last; what a batch that died left half moved is removed before the next one of its writer.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from deltaworks.engines.folder_manifest import (
    MANIFEST,
    batch_mark,
    batch_of,
    read_manifest,
    short_name,
)
from deltaworks.engines.spark.measure import RowCounter
from deltaworks.errors import InputError, StorageError
from deltaworks.model.commit import LANDED_BEFORE, CommitInfo, SinkState, Txn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FolderWriter:
    """Lands batches in one folder."""

    def __init__(
        self, folder: str, *, file_format: str, options: dict[str, str], by_place: bool = False
    ) -> None:
        self.folder = Path(folder)
        self.file_format = file_format
        self.options = options
        self.by_place = by_place
        """Whether readers know columns by their place, so that all files must have the same."""
        self._old = self.folder.with_name(f".{self.folder.name}.deltaworks-old")

    def state(self, app_id: str) -> SinkState:
        """Who the folder is, and the last batch of a writer in it."""
        manifest = self._manifest()
        return SinkState(
            identity=manifest["id"],
            exists=self._standing().exists(),
            txn_version=manifest["writers"].get(app_id),
            writers=tuple(manifest["writers"]),
        )

    def write(
        self, frame: DataFrame, txn: Txn, *, replace: bool, partition_by: tuple[str, ...]
    ) -> CommitInfo:
        """Land a batch; the same batch again changes nothing."""
        self._recover()
        manifest = self._manifest()
        if manifest["writers"].get(txn.app_id) == txn.version:
            return CommitInfo(committed=False, note=LANDED_BEFORE)
        counter = RowCounter()
        staging = self.folder.with_name(f".{self.folder.name}.deltaworks-staging")
        try:
            self._refuse_foreign(replace=replace)
            if not replace:
                self._refuse_mixture(manifest, frame.columns)
            shutil.rmtree(staging, ignore_errors=True)
            writer = counter.watch(frame).write.format(self.file_format).options(**self.options)
            writer.partitionBy(*partition_by).save(str(staging))
            rows = counter.rows()
            writers = {**manifest["writers"], txn.app_id: txn.version}
            document = {
                "id": manifest["id"] or uuid4().hex,
                "format": self.file_format,
                "columns": frame.columns,
                "writers": writers,
            }
            if replace:
                self._swap(staging, document)
            else:
                landed = manifest["writers"].get(txn.app_id, 0)
                self._move_in(staging, txn, document, landed=landed)
        except OSError as problem:
            raise StorageError(
                f'"{self.folder}" cannot be written: {problem.strerror or problem}',
                hint="free some space or give this user the right to write there",
            ) from problem
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return CommitInfo(committed=True, rows_inserted=rows, rows_updated=0)

    def _standing(self) -> Path:
        """Where the files are: the folder, or the place a swap that was cut in two moved it to."""
        return self._old if self._old.exists() and not self.folder.exists() else self.folder

    def _manifest(self) -> dict[str, Any]:
        return read_manifest(self._standing())

    def _refuse_foreign(self, *, replace: bool) -> None:
        """A file, or a folder that we did not make, is never replaced: it may be anybody's."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(
                f'"{self.folder}" is a file, and a folder of files is written',
                hint="choose another path, or move it away first",
            )
        foreign = replace and self.folder.is_dir() and any(self.folder.iterdir())
        if foreign and not (self.folder / MANIFEST).exists():
            raise InputError(
                f'folder "{self.folder}" holds files that Deltaworks did not write',
                hint="choose another path, or move them away first",
            )

    def _refuse_mixture(self, manifest: dict[str, Any], columns: list[str]) -> None:
        """Files that one reader could not read together are not put side by side."""
        known = manifest.get("format", self.file_format)
        if known != self.file_format:
            raise InputError(
                f'folder "{self.folder}" holds {known} files',
                hint="choose another path, or replace them with mode overwrite",
            )
        before = manifest.get("columns", columns)
        if self.by_place and before != columns:
            raise InputError(
                f"the rows have the columns {', '.join(columns)}; "
                f'those in folder "{self.folder}" have {", ".join(before)}',
                hint="select the same columns in the same order, or use mode overwrite",
            )

    def _swap(self, staging: Path, document: dict[str, Any]) -> None:
        _write_json(staging / MANIFEST, document)
        if self.folder.exists():
            self.folder.rename(self._old)
        staging.rename(self.folder)
        shutil.rmtree(self._old, ignore_errors=True)

    def _recover(self) -> None:
        """Finish or undo a swap that a crash cut in two."""
        if not self._old.exists():
            return
        if self.folder.exists():
            shutil.rmtree(self._old, ignore_errors=True)
        else:
            self._old.rename(self.folder)

    def _move_in(self, staging: Path, txn: Txn, document: dict[str, Any], *, landed: int) -> None:
        mark = batch_mark(txn.version, txn.app_id)
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / MANIFEST).exists():  # before the first file, or it would count
            _write_json(self.folder / MANIFEST, {**document, "writers": {}})
        for leftover in _after(landed, self.folder, short_name(txn.app_id)):
            leftover.unlink()
        for path in _data_files(staging):
            target = self.folder / path.relative_to(staging).parent / f"{mark}{path.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
        _write_json(self.folder / MANIFEST, document)


def _after(landed: int, folder: Path, writer: str) -> list[Path]:
    """Files of a writer's batches after the last one that landed: moved in, never finished."""
    files = [(path, batch_of(path.name)) for path in folder.rglob(f"batch*-{writer}-*")]
    return [path for path, told in files if told and told[0] == writer and told[1] > landed]


def _data_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(("_", ".")):
            yield path


def _write_json(path: Path, document: dict[str, Any]) -> None:
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("w", encoding="utf-8") as handle:
        json.dump(document, handle)
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(path)
