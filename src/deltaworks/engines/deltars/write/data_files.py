"""Data files of our own making, in a table's folder or at an object store's address."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.log.actions import DataFile
from deltaworks.engines.deltars.write.statistics import MAX_COLUMNS, file_statistics, write_parquet
from deltaworks.model.table_ref import is_url
from deltaworks.storage.listing import fsync_path

if TYPE_CHECKING:
    import pyarrow as pa

_COMMIT = re.compile(r"\d{20}\.json")
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint.*\.parquet")


class DataFolder:
    """The place where a table's files are."""

    def __init__(
        self,
        location: str,
        *,
        storage_options: Mapping[str, str] | None = None,
        max_columns: int = MAX_COLUMNS,
    ) -> None:
        self.location = location
        self._options = dict(storage_options or {})
        self._max_columns = max_columns

    def write(
        self, name: str, rows: pa.Table, *, partition: Mapping[str, str | None] | None = None
    ) -> DataFile:
        """Write one Parquet file; it is safe on disk when this returns."""
        statistics = self.statistics(rows)
        with translated(self.location):
            with self._files().open_output_stream(name) as handle:
                write_parquet(rows, handle)
                size = int(handle.tell())
            if not is_url(self.location):
                fsync_path(f"{self.location}/{name}")
                fsync_path(self.location)
        return DataFile(
            path=name,
            size_bytes=size,
            rows=rows.num_rows,
            partition=dict(partition or {}),
            modified_ms=int(time.time() * 1000),
            statistics=statistics,
        )

    def statistics(self, rows: pa.Table) -> str:
        """What the log tells of a file with these rows."""
        return file_statistics(rows, max_columns=self._max_columns)

    def read(self, name: str) -> pa.Table:
        """The rows of one file."""
        import pyarrow.parquet as pq

        with translated(self.location), self._files().open_input_file(name) as handle:
            return pq.ParquetFile(handle).read()

    def has_int96(self, name: str) -> bool:
        """Whether a file has INT96 timestamps; true of one that is in another folder."""
        import pyarrow.parquet as pq

        if is_url(name) or name.startswith("/"):
            return True
        with translated(self.location), self._files().open_input_file(name) as handle:
            columns = pq.ParquetFile(handle).schema
            return any(columns.column(n).physical_type == "INT96" for n in range(len(columns)))

    def notes(self, name: str) -> Mapping[bytes, bytes] | None:
        """What the writer of a file noted in it; None of one that is in another folder."""
        import pyarrow.parquet as pq

        if is_url(name) or name.startswith("/"):
            return None
        with translated(self.location), self._files().open_input_file(name) as handle:
            return dict(pq.ParquetFile(handle).metadata.metadata or {})

    def names(self, prefix: str) -> tuple[str, ...]:
        """The files right in the folder whose names begin so."""
        return tuple(sorted(name for name in self._listed("") if name.startswith(prefix)))

    def delete(self, names: Sequence[str]) -> None:
        """Remove files that no commit names."""
        with translated(self.location):
            for name in names:
                with suppress(FileNotFoundError):
                    self._files().delete_file(name)

    def committed_names(self) -> frozenset[str]:
        """Every file that a version still in the log could need."""
        found: set[str] = set()
        for name in self._listed("_delta_log"):
            with translated(self.location):
                if name.endswith(".json"):
                    found.update(self._named_by_commit(f"_delta_log/{name}"))
                elif ".checkpoint" in name and name.endswith(".parquet"):
                    found.update(self._named_by_checkpoint(f"_delta_log/{name}"))
        return frozenset(found)

    def app_ids(self, begins: str) -> frozenset[str]:
        """Who made transactions that the log remembers, of those whose names begin so."""
        names = self._listed("_delta_log")
        folded = max((_version(n) for n in names if _CHECKPOINT.fullmatch(n)), default=-1)
        found: set[str] = set()
        for name in names:
            with translated(self.location):
                if _COMMIT.fullmatch(name) and _version(name) > folded:
                    found.update(self._app_ids_of_commit(f"_delta_log/{name}"))
                elif _CHECKPOINT.fullmatch(name) and _version(name) == folded:
                    found.update(self._app_ids_of_checkpoint(f"_delta_log/{name}"))
        return frozenset(app_id for app_id in found if app_id.startswith(begins))

    def _app_ids_of_commit(self, path: str) -> Iterator[str]:
        for line in self._lines(path):
            if "txn" in (action := json.loads(line)):
                yield action["txn"]["appId"]

    def _app_ids_of_checkpoint(self, path: str) -> Iterator[str]:
        import pyarrow.parquet as pq

        with self._files().open_input_file(path) as handle:
            rows = pq.ParquetFile(handle).read(columns=["txn.appId"])
        for column in rows.columns:
            yield from (txn["appId"] for txn in column.to_pylist() if txn and txn["appId"])

    def stamp(self, version: int) -> tuple[int, int] | None:
        """What tells a commit's file from another of its name; None when there is none."""
        with translated(self.location):
            info = self._files().get_file_info(f"_delta_log/{version:020d}.json")
        return (info.size, info.mtime_ns) if info.is_file else None

    def commit_infos(self, first: int, last: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """What commits say about themselves, oldest first; those that are gone are left out."""
        for version in range(first, last + 1):
            with translated(self.location), suppress(FileNotFoundError):
                for line in self._lines(f"_delta_log/{version:020d}.json"):
                    if line.startswith('{"commitInfo"'):
                        yield version, dict(json.loads(line)["commitInfo"])

    def actions(self, version: int) -> list[dict[str, Any]]:
        """All that a commit says; nothing when it is gone."""
        with translated(self.location), suppress(FileNotFoundError):
            return [json.loads(line) for line in self._lines(f"_delta_log/{version:020d}.json")]
        return []

    def _lines(self, path: str) -> list[str]:
        with self._files().open_input_stream(path) as handle:
            text = str(handle.read().decode("utf-8"))
            return [line for line in text.split("\n") if line]  # other breaks stand within values

    def _named_by_commit(self, path: str) -> Iterator[str]:
        for line in self._lines(path):
            action = json.loads(line)
            for kind in ("add", "remove"):
                if kind in action:
                    yield unquote(action[kind]["path"])

    def _named_by_checkpoint(self, path: str) -> Iterator[str]:
        import pyarrow.parquet as pq

        with self._files().open_input_file(path) as handle:
            rows = pq.ParquetFile(handle).read(columns=["add.path", "remove.path"])
        for kind in rows.column_names:
            for action in rows.column(kind).to_pylist():
                if action is not None and action["path"] is not None:
                    yield unquote(action["path"])

    def _listed(self, folder: str) -> list[str]:
        from pyarrow.fs import FileSelector

        with translated(self.location):
            return [info.base_name for info in self._files().get_file_info(FileSelector(folder))]

    def _files(self) -> Any:
        from pyarrow.fs import LocalFileSystem, PyFileSystem, SubTreeFileSystem

        if not is_url(self.location):
            return SubTreeFileSystem(self.location, LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler

        return PyFileSystem(DeltaStorageHandler(self.location, self._options))


def _version(name: str) -> int:
    """The version that a file of the log is named after."""
    return int(name[:20])


def partition_text(value: Any) -> str | None:
    """A partition's value as the log spells it."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
