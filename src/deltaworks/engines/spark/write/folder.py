"""Rows into a folder of files: staged first, then put in, so that nothing is half there.

A small manifest in the folder (hidden from Spark, as its name starts with `_`) says which batch
of which writer landed last, and comes last itself. What a batch that died left half put in is
removed before the next one of its writer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from deltaworks.contracts.context import no_doubt
from deltaworks.engines.spark.frames.row_counter import RowCounter
from deltaworks.errors import InputError, StorageError
from deltaworks.model.commit import LANDED_BEFORE, CommitInfo, SinkState, Txn
from deltaworks.storage.folder_manifest import is_ours, is_seen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Manifest = Mapping[str, Any]


class FolderWriter(ABC):
    """Lands batches in one folder."""

    def __init__(
        self, folder: str, *, file_format: str, options: dict[str, str], by_place: bool = False
    ) -> None:
        self.folder = folder
        self.file_format = file_format
        self.options = options
        self.by_place = by_place
        """Whether readers know columns by their place, so that all files must have the same."""

    @property
    @abstractmethod
    def staging(self) -> str:
        """Where files are written first, out of sight."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is anything in the folder's place."""

    @abstractmethod
    def manifest(self) -> Manifest:
        """What has landed so far."""

    @abstractmethod
    def recover(self) -> None:
        """Finish or undo what a crash cut in two."""

    @abstractmethod
    def refuse_foreign(self, manifest: Manifest, *, replace: bool) -> None:
        """A file, or a folder with files of others, is never replaced: they may be anybody's."""

    @abstractmethod
    def clear_staging(self) -> None:
        """Remove what was staged."""

    @abstractmethod
    def swap(self, txn: Txn, document: Manifest) -> None:
        """Put what is staged in the place of all that stands."""

    @abstractmethod
    def move_in(self, txn: Txn, document: Manifest, *, landed: int) -> None:
        """Put what is staged beside what stands."""

    def state(self, app_id: str) -> SinkState:
        """Who the folder is, and the last batch of a writer in it."""
        manifest = self.manifest()
        return SinkState(
            identity=manifest["id"],
            exists=self.exists(),
            txn_version=manifest["writers"].get(app_id),
            writers=tuple(manifest["writers"]),
        )

    def write(
        self,
        frame: DataFrame,
        txn: Txn,
        *,
        replace: bool,
        partition_by: tuple[str, ...],
        confirm: Callable[[], None] = no_doubt,
    ) -> CommitInfo:
        """Land a batch; the same batch again changes nothing."""
        self.recover()
        manifest = self.manifest()
        if manifest["writers"].get(txn.app_id) == txn.version:
            return CommitInfo(committed=False, note=LANDED_BEFORE)
        counter = RowCounter()
        try:
            self.refuse_foreign(manifest, replace=replace)
            if not replace:
                self._refuse_mixture(manifest, frame.columns)
            self.clear_staging()
            writer = counter.watch(frame).write.format(self.file_format).options(**self.options)
            # Overwritten, as what is left of a folder on S3 may be a mark that only Spark sees.
            writer.mode("overwrite").partitionBy(*partition_by).save(self.staging)
            rows = counter.rows()
            confirm()
            document = {
                **manifest,
                "id": manifest["id"] or uuid4().hex,
                "format": self.file_format,
                "columns": frame.columns,
                "writers": {**manifest["writers"], txn.app_id: txn.version},
            }
            if replace:
                self.swap(txn, document)
            else:
                self.move_in(txn, document, landed=manifest["writers"].get(txn.app_id, 0))
        except OSError as problem:
            raise StorageError(
                f'"{self.folder}" cannot be written: {problem.strerror or problem}',
                hint="free some space or give this user the right to write there",
            ) from problem
        finally:
            with suppress(StorageError):  # what is left there is out of sight
                self.clear_staging()
        return CommitInfo(committed=True, rows_inserted=rows, rows_updated=0)

    def _refuse_mixture(self, manifest: Manifest, columns: list[str]) -> None:
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


def a_file(folder: str) -> InputError:
    """The error for a file in a folder's place."""
    return InputError(
        f'"{folder}" is a file, and a folder of files is written',
        hint="choose another path, or move it away first",
    )


def refuse_files(folder: str, files: Iterable[str], manifest: Manifest) -> None:
    """Refuse to replace a folder with files of others, which its readers would miss."""
    theirs = next((path for path in files if is_seen(path) and not is_ours(path, manifest)), None)
    if theirs is not None:
        raise foreign(folder, such_as=theirs)


def foreign(folder: str, *, such_as: str = "") -> InputError:
    """The error for a folder that is not ours to replace."""
    example = f', such as "{such_as}"' if such_as else ""
    return InputError(
        f'folder "{folder}" holds files that Deltaworks did not write{example}',
        hint="choose another path, or move them away first; nothing was replaced",
    )
