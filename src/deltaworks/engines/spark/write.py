"""Rows into a Delta table: every write is one commit that carries its batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from deltaworks.contracts.expression import without_target
from deltaworks.engines.clearance import require_free
from deltaworks.engines.deltars.engine import DeltaRsEngine, parse_user_metadata
from deltaworks.engines.files import fsync_commit
from deltaworks.engines.spark.diff import DiffCounts, changed_rows, classify, count_actions
from deltaworks.engines.spark.engine import SparkEngine, table_sql
from deltaworks.engines.spark.fit import fit, frame_schema
from deltaworks.engines.spark.layout import (
    apply_layout,
    check_layout,
    create_sql,
    refuse_other_partitions,
    stamped_session,
    verify_layout,
)
from deltaworks.engines.spark.merge import comparisons, merge_sql
from deltaworks.engines.spark.samples import sample_rows
from deltaworks.errors import CommitUnknown, ConstraintViolated
from deltaworks.model.commit import CommitInfo
from deltaworks.model.schema import ADDED, WIDENED, SchemaChange
from deltaworks.model.table_info import CommitRecord, TableInfo
from deltaworks.model.write import Append, Layout, Overwrite, Stamp, Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOTHING_TO_DO = "nothing to change, so no commit"
EMPTY = "no rows, so no table was made"


class TableWriter:
    """Writes one batch to one table."""

    def __init__(self, spark: SparkSession, location: str, *, layout: Layout, stamp: Stamp) -> None:
        self.spark = spark
        self.location = location
        self.layout = layout
        self.stamp = stamp
        self.log = DeltaRsEngine()

    def append(self, frame: DataFrame, write: Append) -> CommitInfo:
        """Add the rows."""
        table = self._prepare(frame, may_repartition=False)
        if table is None:
            return self._create(frame)
        fitted, _ = fit(frame, table, merge_schema=write.merge_schema)
        writer = fitted.write.format("delta").mode("append").options(**self._options())
        writer.option("mergeSchema", str(write.merge_schema).lower()).save(self.location)
        return self._landed(table)

    def overwrite(self, frame: DataFrame, write: Overwrite) -> CommitInfo:
        """Replace the table, or what a predicate covers."""
        table = self._prepare(frame, may_repartition=write.overwrite_schema)
        if table is None:
            refuse_outside(frame, write.replace_where)
            return self._create(frame)
        if not write.overwrite_schema:
            frame, _ = fit(frame, table, merge_schema=write.merge_schema)
        writer = frame.write.format("delta").mode("overwrite").options(**self._options())
        if write.overwrite_schema:
            partitions = self.layout.partition_by or table.partition_columns
            writer = writer.option("overwriteSchema", "true").partitionBy(*partitions)
        elif write.merge_schema:
            writer = writer.option("mergeSchema", "true")
        if write.replace_where:
            writer = writer.option("replaceWhere", write.replace_where)
        writer.save(self.location)
        return self._landed(table, replaced=None if write.replace_where else table.rows)

    def upsert(self, frame: DataFrame, write: Upsert, *, rows: int) -> CommitInfo:
        """Merge so many rows by key; what would change nothing is not written."""
        table = self._prepare(frame, may_repartition=False)
        if table is None:
            return self._create(without_deletes(frame, write))
        fitted, changes = fit(frame, table, merge_schema=write.merge_schema)
        with diffed(self.spark, fitted, table, write) as (classified, counts):
            if not counts.changes and not grows(changes):
                return CommitInfo(
                    committed=False,
                    version=table.version,
                    rows_inserted=0,
                    rows_updated=0,
                    rows_deleted=0,
                    rows_unchanged=counts.unchanged,
                    rows_dropped=_ignored(counts),
                    note=NOTHING_TO_DO,
                )
            # a row that joins twice, a new column and rows to be deleted by their absence
            # each need the whole batch in the MERGE; otherwise only rows with work to do go in
            whole = counts.rows != rows or grows(changes) or write.delete_missing
            source = fitted if whole else changed_rows(classified)
            return self._merge(source, fitted, table, write, counts)

    def _merge(
        self,
        rows: DataFrame,
        fitted: DataFrame,
        table: TableInfo,
        write: Upsert,
        counts: DiffCounts,
    ) -> CommitInfo:
        ways = comparisons(table.schema, frame_schema(fitted))
        with shared_view(rows) as view:
            statement = merge_sql(
                write,
                table=table_sql(self.location),
                source=view,
                batch=fitted.columns,
                ways=ways,
            )
            answer = stamped_session(self.spark, self.stamp).sql(statement).collect()
        commit = self._own_commit()
        if not answer or commit is None:
            return CommitInfo(committed=False, version=table.version, note=NOTHING_TO_DO)
        merged = answer[0]
        self._settle(commit.version)
        return CommitInfo(
            committed=True,
            version=commit.version,
            rows_inserted=merged["num_inserted_rows"],
            rows_updated=merged["num_updated_rows"],
            rows_deleted=merged["num_deleted_rows"],
            rows_unchanged=counts.unchanged,
            rows_dropped=_ignored(counts),
        )

    def _prepare(self, frame: DataFrame, *, may_repartition: bool) -> TableInfo | None:
        """The table as it stands, its layout brought to what is asked."""
        check_layout(frame, self.layout)
        table = self.log.info(self.location)
        if table is None:
            return None
        refuse_other_partitions(table, self.layout, may_change=may_repartition)
        if apply_layout(self.spark, table, self.layout):
            return self.log.info(self.location)
        return table

    def _create(self, frame: DataFrame) -> CommitInfo:
        """Make the table with its first rows in one commit."""
        require_free(self.location)
        if frame.isEmpty():
            return CommitInfo(committed=False, rows_inserted=0, note=EMPTY)
        with shared_view(frame) as view:
            statement = create_sql(self.location, source=view, layout=self.layout)
            stamped_session(self.spark, self.stamp).sql(statement)
        return self._landed(None)

    def _options(self) -> dict[str, str]:
        return {
            "txnAppId": self.stamp.txn.app_id,
            "txnVersion": str(self.stamp.txn.version),
            "userMetadata": self.stamp.user_metadata,
        }

    def _landed(self, before: TableInfo | None, *, replaced: int | None = None) -> CommitInfo:
        commit = self._own_commit()
        if commit is None:
            if before is None:
                raise CommitUnknown(
                    f'"{self.location}" was written, but its commit cannot be found',
                    hint="run it again: a batch that landed is found and not written twice",
                )
            return CommitInfo(
                committed=False, version=before.version, rows_inserted=0, note=NOTHING_TO_DO
            )
        self._settle(commit.version)
        deleted = commit.metrics.get("numDeletedRows", replaced)
        return CommitInfo(
            committed=True,
            version=commit.version,
            rows_inserted=_number(commit.metrics.get("numOutputRows")),
            rows_updated=0,
            rows_deleted=0 if before is None else _number(deleted),
            rows_unchanged=0,
        )

    def _own_commit(self) -> CommitRecord | None:
        """The commit that carries this batch's transaction and note; None when there is none."""
        if self.log.transaction(self.location, self.stamp.txn.app_id) != self.stamp.txn.version:
            return None
        wanted = parse_user_metadata(self.stamp.user_metadata)
        for record in self.log.history(self.location, limit=20):
            if record.user_metadata == wanted:
                return record
        return None

    def _settle(self, version: int) -> None:
        """Make the commit durable, then see that the table is what was asked for."""
        fsync_commit(self.location, version)
        table = self.log.info(self.location)
        if table is not None:
            verify_layout(self.spark, table, self.layout)


def grows(changes: tuple[SchemaChange, ...]) -> bool:
    """Whether the write would change the table's schema."""
    return any(change.kind in (ADDED, WIDENED) for change in changes)


def without_deletes(frame: DataFrame, write: Upsert) -> DataFrame:
    """The rows a first batch inserts: those that would only delete a match are left out."""
    if not write.delete_condition:
        return frame
    condition = without_target(write.delete_condition)
    return frame.alias("source").filter(f"NOT coalesce({condition}, false)")


@contextmanager
def diffed(
    spark: SparkSession, frame: DataFrame, table: TableInfo, write: Upsert
) -> Iterator[tuple[DataFrame, DiffCounts]]:
    """The batch with what each row would do, kept while it is used."""
    target = SparkEngine(spark).read(table.location, version=table.version)
    ways = comparisons(table.schema, frame_schema(frame))
    classified = classify(frame, target, write, ways).persist()
    try:
        yield classified, count_actions(classified, frame, target, write)
    finally:
        classified.unpersist()


@contextmanager
def shared_view(frame: DataFrame) -> Iterator[str]:
    """A name under which other sessions of this JVM see the frame, cache included."""
    name = f"deltaworks_{uuid4().hex}"
    frame.createGlobalTempView(name)
    try:
        yield f"global_temp.{name}"
    finally:
        frame.sparkSession.catalog.dropGlobalTempView(name)


def refuse_outside(frame: DataFrame, condition: str) -> None:
    """A table is made by rows that its own replace_where covers."""
    if not condition:
        return
    outside = sample_rows(frame.filter(f"NOT coalesce(({condition}\n), false)"), most=1)
    if outside:
        raise ConstraintViolated(
            f"a row lies outside replace_where ({condition}): {outside[0]}",
            hint="filter the rows first, or widen replace_where",
        )


def _ignored(counts: DiffCounts) -> dict[str, int]:
    return {"delete_condition without a match": counts.ignored} if counts.ignored else {}


def _number(value: object) -> int | None:
    return None if value is None else int(str(value))
