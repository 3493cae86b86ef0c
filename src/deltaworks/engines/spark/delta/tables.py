"""Tables through Spark, for what delta-rs does not read; satisfies `CanRead`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.engines.deltars.log.commits import check_log
from deltaworks.engines.deltars.log.history import parse_user_metadata
from deltaworks.engines.spark.errors.translate import told
from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.errors import TableNotFound
from deltaworks.model.schema import Schema
from deltaworks.model.table_info import CommitRecord, TableInfo

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

    from deltaworks.model.selection import Selection


def table_sql(location: str) -> str:
    """A table by path, as SQL names it."""
    return f"delta.{quoted(location)}"


class SparkEngine:
    """Reads logs with a session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def info(self, location: str) -> TableInfo | None:
        """The table as it is now; None when no table is there."""
        check_log(location)
        try:
            detail = self._rows(f"DESCRIBE DETAIL {table_sql(location)}")[0]
            frame = self.read(location)
            latest = self.history(location, limit=1)[0].version
        except TableNotFound:
            return None
        return TableInfo(
            location=location,
            table_id=detail["id"],
            version=latest,
            schema=Schema.from_json(frame.schema.json()),
            partition_columns=tuple(detail["partitionColumns"]),
            clustering_columns=tuple(detail["clusteringColumns"] or ()),
            properties=dict(detail["properties"]),
            reader_version=detail["minReaderVersion"],
            writer_version=detail["minWriterVersion"],
            features=tuple(sorted(detail["tableFeatures"])),
            rows=None,
            files=detail["numFiles"],
            size_bytes=detail["sizeInBytes"],
        )

    def history(self, location: str, *, limit: int | None = None) -> tuple[CommitRecord, ...]:
        """Commits, newest first."""
        most = "" if limit is None else f" LIMIT {limit}"
        rows = self._rows(f"DESCRIBE HISTORY {table_sql(location)}{most}")
        return tuple(_record(row) for row in rows)

    def count(self, location: str) -> int:
        """The rows of a table, counted by reading it."""
        frame = self.read(location)
        with told():
            return frame.count()

    def read(self, location: str, *, version: int | None = None) -> DataFrame:
        """The rows of a table, lazily."""
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        with told():
            return reader.load(location)

    def rows(self, location: str, selection: Selection) -> pa.Table:
        """The chosen rows of a table."""
        frame = self.read(location, version=selection.version)
        with told():
            if selection.where:
                frame = frame.where(selection.where)
            if selection.columns:
                frame = frame.select(*[quoted(name) for name in selection.columns])
            return _arrow(frame if selection.limit is None else frame.limit(selection.limit))

    def query(self, text: str, *, limit: int | None) -> pa.Table:
        """What Spark answers to a query that names tables by path."""
        with told():
            frame = self.spark.sql(text)
            return _arrow(frame if limit is None else frame.limit(limit))

    def _rows(self, text: str) -> list[Row]:
        with told():
            return self.spark.sql(text).collect()


def _arrow(frame: DataFrame) -> pa.Table:
    from deltaworks.engines.arrow.plain_types import plain_table

    return plain_table(frame.toArrow())


def _record(row: Row) -> CommitRecord:
    return CommitRecord(
        version=row["version"],
        timestamp_ms=int(row["timestamp"].timestamp() * 1000),
        operation=row["operation"],
        metrics=dict(row["operationMetrics"] or {}),
        user_metadata=parse_user_metadata(row["userMetadata"]),
    )
