"""What a write would do to a table, and what is wrong with it, found without writing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.engines.spark.audit import written_too
from deltaworks.engines.spark.constraints import violations
from deltaworks.engines.spark.diff import diffed
from deltaworks.engines.spark.engine import table_sql
from deltaworks.engines.spark.fit import fit, frame_schema
from deltaworks.engines.spark.hybrid import MERGES, Hybrid
from deltaworks.engines.spark.keyed import Keyed, keyed
from deltaworks.engines.spark.layout import as_asked, check_layout, refuse_other_partitions
from deltaworks.engines.spark.merge import comparisons, merge_sql, written_columns
from deltaworks.engines.spark.strategy import Strategy, choose
from deltaworks.engines.spark.write import grows, merged_ranges, refuse_outside, without_deletes
from deltaworks.errors import ConstraintViolated
from deltaworks.model.merge_facts import DiffFacts, FilesUsed
from deltaworks.model.results import CheckResult, OutputPlan
from deltaworks.model.schema import SchemaChange, compare
from deltaworks.model.table_info import TableInfo
from deltaworks.model.table_ref import TableRef
from deltaworks.model.write import Append, Layout, Overwrite, Scd2, Upsert, Write, Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Forecast:
    """Looks at one table before a batch is written to it."""

    def __init__(
        self,
        spark: SparkSession,
        ref: TableRef,
        *,
        layout: Layout,
        now: datetime,
        stores: Stores = NO_STORES,
        writer: Writer = "spark",
    ) -> None:
        self.spark = spark
        self.ref = ref
        self.layout = layout
        self.now = now
        self._log = DeltaRsEngine(stores)
        self._writer = writer

    def plan(self, frame: DataFrame, write: Write, basis: OutputPlan) -> OutputPlan:
        """What the write would do, with its row counts and the MERGE."""
        table = self._table(frame, write)
        basis = replace(basis, exists=table is not None)
        if isinstance(write, Upsert | Scd2):
            with keyed(self.spark, frame, table, write, self.now) as batch:
                if table is None:
                    return _first_merge(batch, basis)
                return self._merge(batch, table, basis)
        return _plain(frame, table, write, basis)

    def check(self, frame: DataFrame) -> None:
        """Raise when the table cannot be laid out as asked."""
        self._table(frame, Append())

    def verify(self, frame: DataFrame, write: Write) -> None:
        """Raise what the write would find wrong with the rows."""
        table = self._table(frame, write)
        if isinstance(write, Upsert | Scd2):
            with keyed(self.spark, frame, table, write, self.now) as batch:
                if table is not None:
                    _fit_merge(batch, table)
        elif table is not None and not _replaces_schema(write):
            fit(frame, table, merge_schema=write.merge_schema)
        if broken := self.violations(frame):
            raise ConstraintViolated(
                f'a rule of table "{self.ref.label}" is broken: '
                f"{broken[0].name}: {broken[0].detail}",
                hint="correct the rows, or set them aside with a check and `on_fail: quarantine`",
                context={"violations": broken},
            )

    def violations(self, frame: DataFrame) -> tuple[CheckResult, ...]:
        """Rules of the table itself that rows would break."""
        table = self._log.info(self.ref.location)
        return () if table is None else violations(frame, table)

    def _table(self, frame: DataFrame, write: Write) -> TableInfo | None:
        """The table as it would be once it is laid out as asked."""
        table = self._log.info(self.ref.location)
        check_layout(frame, self.layout)
        if table is None:
            return None
        refuse_other_partitions(table, self.layout, may_change=_replaces_schema(write))
        return as_asked(table, self.layout)

    def _merge(self, batch: Keyed, table: TableInfo, basis: OutputPlan) -> OutputPlan:
        fitted, changes = _fit_merge(batch, table)
        write, facts = written_too(batch.frame, batch.write), batch.facts
        stores = self._log.stores
        with diffed(self.spark, fitted, table, write, facts, stores=stores) as (_, diff):
            strategy = choose(write, facts, diff, table, grows=grows(changes))
        small = not grows(changes) and self._small(fitted, table, write, diff)
        shown = replace(write, merge_schema=write.merge_schema or grows(changes))
        statement = merge_sql(
            shown,
            table=table_sql(table.location),
            source="batch",
            batch=fitted.columns,
            ways=comparisons(table.schema, frame_schema(fitted)),
            ranges=merged_ranges(strategy, write, facts, table),
        )
        return replace(
            basis,
            schema_changes=changes,
            sql=statement if strategy.write == "merge" else "",
            rows_to_insert=diff.insert,
            rows_to_update=diff.update,
            rows_to_delete=diff.delete + diff.missing,
            rows_unchanged=batch.rows_unchanged(diff.unchanged),
            rows_to_drop=batch.dropped,
            strategy=MERGES if small and strategy.write != "nothing" else strategy.text(),
            advice="" if small else strategy.advice,
            files=_files(strategy, diff),
        )

    def _small(self, frame: DataFrame, table: TableInfo, write: Upsert, diff: DiffFacts) -> bool:
        """Whether delta-rs would make the commit."""
        hybrid = Hybrid(
            spark=self.spark, location=table.location, layout=self.layout, writer=self._writer
        )
        return hybrid.takes(frame, table, write, touched_bytes=diff.scope.bytes)


def _files(strategy: Strategy, diff: DiffFacts) -> FilesUsed:
    rewritten = diff.files_matched if strategy.whole else diff.files_touched
    return FilesUsed(
        scanned=diff.scope.files,
        skipped=diff.scope.files_skipped,
        rewritten=rewritten if strategy.write == "merge" else 0,
    )


def _fit_merge(batch: Keyed, table: TableInfo) -> tuple[DataFrame, tuple[SchemaChange, ...]]:
    write = written_too(batch.frame, batch.write)
    columns = written_columns(write, batch.frame.columns)
    return fit(batch.frame, table, merge_schema=batch.write.merge_schema, columns=columns)


def _first_merge(batch: Keyed, basis: OutputPlan) -> OutputPlan:
    rows = without_deletes(batch.frame, batch.write).count()
    return replace(
        basis,
        rows_to_insert=rows,
        rows_to_update=0,
        rows_to_delete=0,
        rows_unchanged=0,
        rows_to_drop=batch.dropped + batch.facts.rows - rows,
    )


def _plain(
    frame: DataFrame, table: TableInfo | None, write: Append | Overwrite, basis: OutputPlan
) -> OutputPlan:
    """An append or an overwrite."""
    rows, covered = frame.count(), write.replace_where if isinstance(write, Overwrite) else ""
    refuse_outside(frame, covered)
    if table is None:
        return replace(basis, rows_to_insert=rows, rows_to_update=0, rows_to_delete=0)
    if _replaces_schema(write):
        changes = compare(table.schema, frame_schema(frame))
    else:
        changes = fit(frame, table, merge_schema=write.merge_schema)[1]
    deleted = 0 if isinstance(write, Append) else None if covered else table.rows
    return replace(
        basis,
        schema_changes=changes,
        rows_to_insert=rows,
        rows_to_update=0,
        rows_to_delete=deleted,
    )


def _replaces_schema(write: Write) -> bool:
    return isinstance(write, Overwrite) and write.overwrite_schema
