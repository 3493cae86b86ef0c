"""What a write would do to a table, and what is wrong with it, found without writing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.commit_protocol import require_committer_of
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.spark.delta.constraints import filled, lacks, violations
from deltaworks.engines.spark.delta.layout import (
    as_asked,
    check_layout,
    layout_changes,
    refuse_names,
    refuse_other_partitions,
)
from deltaworks.engines.spark.delta.merge.batch_rows import Keyed, keyed
from deltaworks.engines.spark.delta.merge.diff import ACTION, INSERT, changed_rows, diffed
from deltaworks.engines.spark.delta.merge.merge_sql import (
    comparisons,
    first_rows,
    merge_sql,
    without_deletes,
    written_columns,
)
from deltaworks.engines.spark.delta.merge.small_batches import MERGES, SmallBatches, spark_decides
from deltaworks.engines.spark.delta.merge.strategy import Strategy, choose
from deltaworks.engines.spark.delta.schema_fit import (
    fit,
    frame_schema,
    grows,
    refuse_append_only,
    refuse_outside,
)
from deltaworks.engines.spark.delta.stored_values import as_stored, refuse_padded_keys, unpadded
from deltaworks.engines.spark.delta.tables import table_sql
from deltaworks.engines.spark.delta.writer import merged_ranges
from deltaworks.engines.spark.frames.audit_columns import written_too
from deltaworks.errors import ConstraintViolated, EngineError
from deltaworks.model.merge_facts import DiffFacts, FilesUsed
from deltaworks.model.results import CheckResult, OutputPlan
from deltaworks.model.schema import KEPT, MISSING, SchemaChange, replaced
from deltaworks.model.table_info import TableInfo
from deltaworks.model.table_ref import TableRef
from deltaworks.model.write import Append, Layout, Overwrite, Scd2, Upsert, Write, Writer
from deltaworks.storage.table_path import require_free

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
        """What the write would do, with its row counts and the MERGE; or why it is refused."""
        stands = self._standing()
        table = self._as_asked(stands, frame, write)
        basis = replace(basis, exists=table is not None)
        if isinstance(write, Upsert | Scd2):
            with self._keyed(frame, table, write) as batch:
                if table is None:
                    first = first_rows(batch.frame, batch.write)
                    self._by_deltars(lambda hybrid: hybrid.takes_first(first))
                    return _first_merge(batch, basis)
                planned = self._merge(batch, table, basis)
        else:
            planned = self._plain(frame, table, write, basis)
        if stands is None:
            return planned
        changes = layout_changes(
            self.spark, stands, self.layout, may_repartition=_replaces_schema(write)
        )
        return replace(planned, schema_changes=(*planned.schema_changes, *changes))

    def check(self, frame: DataFrame) -> None:
        """Raise when the table cannot be laid out as asked."""
        self._table(frame, Append())

    def verify(self, frame: DataFrame, write: Write) -> None:
        """Raise what the write would find wrong with the rows."""
        table = self._table(frame, write)
        if isinstance(write, Upsert | Scd2):
            with self._keyed(frame, table, write) as batch:
                if table is not None:
                    _fit_merge(batch, table)
        elif table is not None and not _replaces_schema(write):
            fit(frame, table, merge_schema=write.merge_schema)
        if broken := self.violations(frame, write):
            raise ConstraintViolated(
                f'a rule of table "{self.ref.label}" is broken: '
                f"{broken[0].name}: {broken[0].detail}",
                hint="correct the rows, or set them aside with a check and `on_fail: quarantine`",
                context={"violations": broken},
            )

    @contextmanager
    def _keyed(
        self, frame: DataFrame, table: TableInfo | None, write: Upsert | Scd2
    ) -> Iterator[Keyed]:
        """The batch as it would be merged."""
        folders = self.layout.partition_by if table is None else table.partition_columns
        if table is not None:
            refuse_padded_keys(table, write.keys)
        rows = as_stored(frame, folders)
        with (
            unpadded(self.spark, table),
            keyed(self.spark, rows, table, write, self.now) as batch,
        ):
            yield batch

    def violations(self, frame: DataFrame, write: Write) -> tuple[CheckResult, ...]:
        """Rules of the table itself that rows would break; those that only delete break none."""
        table = self._log.info(self.ref.location)
        if table is None:
            return ()
        if not isinstance(write, Upsert):
            leaves = isinstance(write, Scd2) or _replaces_schema(write)
            return violations(frame if leaves else filled(frame, table), table)
        kept = without_deletes(frame, write)
        lacking = lacks(kept, table)
        more = self._of_new_rows(kept, table, write, lacking) if lacking else ()
        return (*violations(kept, table), *more)

    def _of_new_rows(
        self, frame: DataFrame, table: TableInfo, write: Upsert, lacking: Sequence[str]
    ) -> tuple[CheckResult, ...]:
        """Rules that only rows break which are new, because they lack a column."""
        with self._keyed(frame, table, write) as batch:
            fitted, _ = _fit_merge(batch, as_asked(table, self.layout))
            stores = self._log.stores
            with diffed(self.spark, fitted, table, write, batch.facts, stores=stores) as (rows, _):
                new = changed_rows(rows.filter(f"{ACTION} = '{INSERT}'"))
                return violations(filled(new, table), table, about=lacking)

    def _standing(self) -> TableInfo | None:
        """The table as it stands, or nothing where one can be made; raises where neither is."""
        look = self._log.look(self.ref.location)
        if look is None:
            require_free(self.ref.location, self._log.stores)
            return None
        look.refuse_writing()
        require_committer_of(look, "spark", self._log.stores)
        return look.info()

    def _table(self, frame: DataFrame, write: Write) -> TableInfo | None:
        """The table as it would be once it is laid out as asked."""
        return self._as_asked(self._log.info(self.ref.location), frame, write)

    def _as_asked(
        self, table: TableInfo | None, frame: DataFrame, write: Write
    ) -> TableInfo | None:
        columns = frame.columns
        if isinstance(write, Upsert):
            columns = written_columns(write, columns)
        refuse_names(frame, columns, table, self.layout)
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
        if diff.takes_away:
            refuse_append_only(table)
        small = self._takes_shape(changes) and self._small(fitted, table, write, diff)
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
            schema_changes=_kept(changes),
            sql=statement if strategy.write == "merge" else "",
            rows_to_insert=diff.insert,
            rows_to_update=diff.update,
            rows_to_delete=diff.delete + diff.missing,
            rows_unchanged=batch.rows_unchanged(diff.unchanged_of(facts.rows)),
            rows_to_drop=batch.dropped,
            strategy=MERGES if small and strategy.write != "nothing" else strategy.text(),
            advice="" if small else strategy.advice,
            files=_files(strategy, diff),
        )

    def _takes_shape(self, changes: tuple[SchemaChange, ...]) -> bool:
        """Whether delta-rs would leave the table's columns as they are."""
        return not grows(changes) or self._by_deltars(SmallBatches.leave_growth)

    def _small(self, frame: DataFrame, table: TableInfo, write: Upsert, diff: DiffFacts) -> bool:
        """Whether delta-rs would make the commit."""
        touched = diff.scope.bytes
        return self._by_deltars(lambda one: one.takes(frame, table, write, touched_bytes=touched))

    def _by_deltars(self, takes: Callable[[SmallBatches], bool]) -> bool:
        """Whether delta-rs would write the batch; raises where only it may and it cannot."""
        hybrid = SmallBatches(
            spark=self.spark, location=self.ref.location, layout=self.layout, writer=self._writer
        )
        try:
            return takes(hybrid)
        except EngineError as error:
            if hybrid.forced or not spark_decides(error):
                raise
            return False

    def _plain(
        self,
        frame: DataFrame,
        table: TableInfo | None,
        write: Append | Overwrite,
        basis: OutputPlan,
    ) -> OutputPlan:
        """An append or an overwrite."""
        rows, covered = frame.count(), write.replace_where if isinstance(write, Overwrite) else ""
        refuse_outside(frame, covered)
        if table is None:
            self._by_deltars(lambda hybrid: hybrid.takes_first(frame))
            return replace(basis, rows_to_insert=rows, rows_to_update=0, rows_to_delete=0)
        if _replaces_schema(write):
            changes = replaced(table.schema, frame_schema(frame))
        else:
            fitted, changes = fit(frame, table, merge_schema=write.merge_schema)
            if isinstance(write, Append) and self._takes_shape(changes):
                self._by_deltars(lambda hybrid: hybrid.accepts_late_rows(fitted, table))
        if isinstance(write, Overwrite) and (rows or table.rows != 0):
            refuse_append_only(table)
        deleted = 0 if isinstance(write, Append) else None if covered else table.rows
        return replace(
            basis,
            schema_changes=changes,
            rows_to_insert=rows,
            rows_to_update=0,
            rows_to_delete=deleted,
        )


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


def _kept(changes: tuple[SchemaChange, ...]) -> tuple[SchemaChange, ...]:
    """The same for a merge, which leaves alone what the rows do not have."""
    return tuple(
        replace(change, kind=KEPT) if change.kind == MISSING else change for change in changes
    )


def _replaces_schema(write: Write) -> bool:
    return isinstance(write, Overwrite) and write.overwrite_schema
