"""What a table is and how it came to be; without a JVM wherever the table allows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypedDict, TypeVar, Unpack

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.contracts.engine import CanInspect, CanRead
from deltaworks.engines.deltars.log.commits import has_log, version_at
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import (
    DamagedTable,
    EngineError,
    StorageError,
    TableNotFound,
    UnsupportedTable,
)
from deltaworks.model.selection import Selection
from deltaworks.model.table_info import CommitRecord, TableInfo
from deltaworks.model.table_ref import TableRef
from deltaworks.suggest import did_you_mean
from deltaworks.tables.rows import RowsRead, read_rows

Answer = TypeVar("Answer")


class RowWords(TypedDict, total=False):
    """Which rows of a table are read: all columns and rows of the latest version, unless told."""

    columns: Sequence[str]
    where: str
    version: int | None
    timestamp: datetime | None
    limit: int | None


class TableManager:
    """Answers questions about one table."""

    def __init__(
        self,
        ref: TableRef,
        *,
        spark: Callable[[], CanRead],
        stores: Stores = NO_STORES,
        names: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.ref = ref
        self._spark = spark
        self._stores = stores
        self._names = names
        self._log = DeltaRsEngine(stores, only_sure=True)

    def show(self) -> TableInfo:
        """The table as it is now."""
        found = self._ask(lambda engine: engine.info(self.ref.location))
        if found is None:
            raise TableNotFound(
                f'"{self.ref.label}" is not a Delta table',
                hint=f"looked in {self.ref.location}",
            )
        if found.rows is None:
            return replace(found, rows=self._ask(lambda engine: engine.count(self.ref.location)))
        return found

    def history(self, *, limit: int | None = None) -> tuple[CommitRecord, ...]:
        """The table's commits, newest first."""
        self.show()
        return self._ask(lambda engine: engine.history(self.ref.location, limit=limit))

    def rows(self, **words: Unpack[RowWords]) -> RowsRead:
        """Rows of the table, with their version, the engine, and whether there are more."""
        timestamp = words.get("timestamp")
        version, columns = words.get("version"), words.get("columns", ())
        self.require()
        if timestamp is not None:
            version = version_at(self.ref.location, timestamp, self._stores)
        chosen = Selection(
            columns=tuple(columns),
            where=words.get("where", ""),
            version=version,
            limit=words.get("limit"),
        )
        return read_rows(self.ref, chosen, stores=self._stores, spark=self._spark)

    def require(self) -> None:
        """Refuse a table that is not there, with the name that was probably meant."""
        if not has_log(self.ref.location, self._stores):
            known = () if "/" in self.ref.label else self._names()
            raise TableNotFound(
                f'"{self.ref.label}" is not a Delta table',
                hint=did_you_mean(self.ref.label, known) or f"looked in {self.ref.location}",
            )

    def _ask(self, question: Callable[[CanInspect], Answer]) -> Answer:
        """Ask delta-rs; only a table it does not understand is worth starting Spark for."""
        try:
            return question(self._log)
        except (DamagedTable, StorageError, TableNotFound, UnsupportedTable):
            raise
        except EngineError:
            return question(self._spark())


def show_document(info: TableInfo) -> dict[str, Any]:
    """A table as programs read it."""
    return {
        "location": info.location,
        "version": info.version,
        "rows": info.rows,
        "files": info.files,
        "bytes": info.size_bytes,
        "schema": info.schema.to_json(),
        "partition_columns": list(info.partition_columns),
        "properties": dict(info.properties),
        "reader_version": info.reader_version,
        "writer_version": info.writer_version,
        "features": list(info.features),
        "isolation": info.isolation,
    }


def history_document(records: tuple[CommitRecord, ...]) -> dict[str, Any]:
    """A history as programs read it."""
    return {"commits": [_commit_document(record) for record in records]}


def _commit_document(record: CommitRecord) -> dict[str, Any]:
    moment = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
    return {
        "version": record.version,
        "timestamp": moment.isoformat(timespec="milliseconds"),
        "operation": record.operation,
        "run_id": record.user_metadata.get("run_id"),
        "pipeline": record.user_metadata.get("pipeline"),
        "batch": record.user_metadata.get("batch"),
        "metrics": dict(record.metrics),
    }
