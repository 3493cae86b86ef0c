"""Rows into a Delta table: every write is one commit that carries its batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.contracts.context import no_doubt
from deltaworks.engines.commit_protocol import require_committer, require_committer_of
from deltaworks.engines.deltars.log.commits import check_log, refuse_disputed
from deltaworks.engines.deltars.snapshot import TableSnapshot
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.deltars.write.batches import Change
from deltaworks.engines.spark.delta.layout import (
    apply_layout,
    as_asked,
    check_layout,
    first_properties,
    refuse_names,
    refuse_other_partitions,
    size_settings,
    stamp_settings,
    verify_layout,
)
from deltaworks.engines.spark.delta.merge.diff import changed_rows, diffed, prunable, still_new
from deltaworks.engines.spark.delta.merge.merge_sql import (
    comparisons,
    first_rows,
    inserted_columns,
    merge_sql,
    written_columns,
)
from deltaworks.engines.spark.delta.merge.small_batches import MERGES, SmallBatches, spark_decides
from deltaworks.engines.spark.delta.merge.strategy import Strategy, choose, merge_settings
from deltaworks.engines.spark.delta.schema_fit import (
    fit,
    frame_schema,
    grows,
    refuse_append_only,
    refuse_outside,
    with_folders,
)
from deltaworks.engines.spark.delta.tables import SparkEngine, table_sql
from deltaworks.engines.spark.frames.audit_columns import unmarked, written_too
from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.engines.spark.frames.sizing import fitted as fitted_to
from deltaworks.engines.spark.frames.strings import plain_strings
from deltaworks.engines.spark.frames.temp_views import is_empty, shared_view
from deltaworks.engines.spark.session.conf import temporary_conf
from deltaworks.errors import (
    CommitConflict,
    CommitUnknown,
    EngineError,
)
from deltaworks.model.commit import CommitInfo
from deltaworks.model.merge_facts import (
    DUPLICATES,
    BatchFacts,
    DiffFacts,
    FilesUsed,
    KeyRange,
)
from deltaworks.model.schema import SchemaChange
from deltaworks.model.table_info import CommitRecord, TableInfo
from deltaworks.model.write import Append, Layout, Overwrite, Stamp, Upsert, Writer
from deltaworks.storage.durability import make_durable
from deltaworks.storage.table_path import claim, require_free

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

NOTHING_TO_DO = "nothing to change, so no commit"
EMPTY = "no rows, so no table was made"
UNMATCHED_DELETES = "delete_condition without a match"


@dataclass(frozen=True)
class Compared:
    """A batch with the table's types, what each of its rows would do, and the figures of both."""

    frame: DataFrame
    classified: DataFrame
    facts: BatchFacts
    diff: DiffFacts


class TableWriter:
    """Writes one batch to one table."""

    def __init__(
        self,
        spark: SparkSession,
        location: str,
        *,
        layout: Layout,
        stamp: Stamp,
        stores: Stores = NO_STORES,
        writer: Writer = "spark",
        few: bool = False,
        confirm: Callable[[], None] = no_doubt,
    ) -> None:
        self.spark = spark
        self.location = location
        self.layout = layout
        self.stamp = stamp
        self.log = DeltaRsEngine(stores)
        self.confirm = confirm
        self.hybrid = SmallBatches(
            spark=spark, location=location, layout=layout, writer=writer, few=few, confirm=confirm
        )

    def folders(self, table: TableInfo | None) -> tuple[str, ...]:
        """The columns that make the table's folders, or will."""
        return self.layout.partition_by if table is None else table.partition_columns

    def append(self, frame: DataFrame, write: Append) -> CommitInfo:
        """Add the rows."""
        table = self._standing(frame, may_repartition=False)
        if table is None:
            return self._create(frame, holds_rows=write.holds_rows)
        fitted, changes = fit(frame, as_asked(table, self.layout), merge_schema=write.merge_schema)
        if grows(changes):
            self.hybrid.leave_growth()
        table = self._set_up(table)
        if not grows(changes):
            small = self._by_deltars(lambda: self.hybrid.append(fitted, table, self.stamp), table)
            if small is not None:
                return self._small(small, table, rows=small.inserted)
        if not write.holds_rows and is_empty(fitted):
            return _nothing(table)
        writer = self._writer(with_folders(fitted, table)).mode("append")
        may_grow = write.merge_schema or grows(changes)
        self._save(writer.option("mergeSchema", str(may_grow).lower()))
        return self._landed(table, replaced=0)

    def overwrite(self, frame: DataFrame, write: Overwrite) -> CommitInfo:
        """Replace the table, or what a predicate covers."""
        table = self._standing(frame, may_repartition=write.overwrite_schema)
        may_grow = write.merge_schema
        if table is None:
            refuse_outside(frame, write.replace_where)
            return self._create(frame)
        if not write.overwrite_schema:
            asked = as_asked(table, self.layout)
            frame, changes = fit(frame, asked, merge_schema=write.merge_schema)
            frame, may_grow = with_folders(frame, table), may_grow or grows(changes)
        table = self._set_up(table)
        if not write.overwrite_schema and self._replaces_nothing(frame, write.replace_where):
            return _nothing(table)
        refuse_append_only(table)
        writer = self._writer(frame).mode("overwrite")
        if write.overwrite_schema:
            partitions = self.layout.partition_by or table.partition_columns
            writer = writer.option("overwriteSchema", "true").partitionBy(*partitions)
        elif may_grow:
            writer = writer.option("mergeSchema", "true")
        if write.replace_where:
            writer = writer.option("replaceWhere", write.replace_where)
        self._save(writer)
        return self._landed(table, replaced=None if write.replace_where else table.rows)

    def _replaces_nothing(self, frame: DataFrame, condition: str) -> bool:
        """Whether no rows come and none would go."""
        stands = SparkEngine(self.spark).read(self.location)
        covered = stands.filter(condition) if condition else stands
        return covered.isEmpty() and is_empty(frame)

    def upsert(
        self, frame: DataFrame, write: Upsert, *, facts: BatchFacts, table: TableInfo | None
    ) -> CommitInfo:
        """Merge rows by key into the table that was looked at; what changes nothing stays out."""
        require_committer(self.location, "spark", self.log.stores)
        if table is None:
            self._admit(frame, table, may_repartition=False, write=write)
            return self._first_upsert(frame, write, rows=facts.rows)
        small = self.upsert_small(frame, write, table)
        if small is not None:
            return small
        write = written_too(frame, write)
        asked = as_asked(table, self.layout)
        fitted, changes = self._fitted(frame, write, table)
        stores = self.log.stores
        with diffed(self.spark, fitted, table, write, facts, stores=stores) as (classified, diff):
            self.confirm()  # the rows were read when they were compared, and are kept
            self._refuse_moved(table)
            strategy = choose(write, facts, diff, asked, grows=grows(changes))
            if diff.takes_away:
                refuse_append_only(asked)
            merge = replace(write, merge_schema=write.merge_schema or grows(changes))
            found = Compared(fitted, classified, facts, diff)
            info = self._put(found, self._set_up(table), merge, strategy)
        return replace(
            info,
            rows_unchanged=diff.unchanged_of(facts.rows),
            rows_dropped=_ignored(diff.ignored),
            strategy=strategy.text(),
        )

    def upsert_small(self, frame: DataFrame, write: Upsert, table: TableInfo) -> CommitInfo | None:
        """The same by delta-rs, keys looked at in memory; None where Spark is to do it."""
        self._admit(frame, table, may_repartition=False, write=write)
        write = written_too(frame, write)
        fitted, changes = self._fitted(frame, write, table)
        if grows(changes):
            self.hybrid.leave_growth()
            return None
        land = partial(self.hybrid.upsert, fitted, table, write, self.stamp)
        small = self._by_deltars(land, table)
        if small is None:
            return None
        merged = self._small(small, table, rows=small.rows)
        dropped = {DUPLICATES: small.duplicates} if small.duplicates else {}
        return replace(
            merged,
            rows_dropped={**merged.rows_dropped, **dropped},
            strategy=MERGES,
            files=small.files,
        )

    def _fitted(
        self, frame: DataFrame, write: Upsert, table: TableInfo
    ) -> tuple[DataFrame, tuple[SchemaChange, ...]]:
        return fit(
            frame,
            as_asked(table, self.layout),
            merge_schema=write.merge_schema,
            columns=written_columns(write, frame.columns),
        )

    def _put(
        self, found: Compared, table: TableInfo, write: Upsert, strategy: Strategy
    ) -> CommitInfo:
        scope = found.diff.scope
        used = FilesUsed(scanned=scope.files, skipped=scope.files_skipped, rewritten=0)
        if strategy.write == "nothing":
            return replace(_nothing(table), files=used)
        if strategy.write == "append":
            return replace(self._insert(found, table, write), files=used)
        return self._merge(found, table, write, strategy)

    def _insert(self, found: Compared, table: TableInfo, write: Upsert) -> CommitInfo:
        """Append the rows of a batch that are all new, if they still are by then."""
        facts, names = found.facts, inserted_columns(write, found.frame.columns)
        with fitted_to(self.spark, facts.bytes):
            rows = still_new(found.classified, table, write, facts, found.diff.scope)
            rows = with_folders(rows.select(*[quoted(name) for name in names]), table)
            self._save(self._writer(rows).mode("append"))
        return self._landed(table, replaced=0)

    def replace_all(self, frame: DataFrame, write: Upsert, *, rows: int) -> CommitInfo:
        """Replace the table by what an upsert of an empty one would insert."""
        info = self.overwrite(first_rows(frame, write), Overwrite(merge_schema=write.merge_schema))
        return _without_ignored(info, write, rows)

    def _first_upsert(self, frame: DataFrame, write: Upsert, *, rows: int) -> CommitInfo:
        """Make the table from the rows that an upsert of an empty one would insert."""
        surely_some = rows > 0 and not write.delete_condition
        info = self._create(first_rows(frame, write), holds_rows=surely_some)
        return _without_ignored(info, write, rows)

    def _merge(
        self, found: Compared, table: TableInfo, write: Upsert, strategy: Strategy
    ) -> CommitInfo:
        rows = found.frame if strategy.whole else changed_rows(found.classified)
        settings = {
            **merge_settings(self.spark, strategy, found.facts, found.diff),
            **stamp_settings(self.stamp),
            **size_settings(self.layout),
        }
        with (
            shared_view(plain_strings(unmarked(rows))) as view,
            temporary_conf(self.spark, settings),
        ):
            statement = merge_sql(
                write,
                table=table_sql(self.location),
                source=view,
                batch=found.frame.columns,
                ways=comparisons(table.schema, frame_schema(found.frame)),
                ranges=merged_ranges(strategy, write, found.facts, table),
            )
            answer = self.spark.sql(statement).collect()
        look = self.log.look(self.location)
        commit = self._own_commit(look, after=table.version)
        info = CommitInfo(committed=False, version=table.version, note=NOTHING_TO_DO)
        if answer and commit is not None and look is not None:
            merged, scope = answer[0], found.diff.scope
            self._settle(commit.version, look.info())
            info = CommitInfo(
                committed=True,
                version=commit.version,
                rows_inserted=merged["num_inserted_rows"],
                rows_updated=merged["num_updated_rows"],
                rows_deleted=merged["num_deleted_rows"],
                files=FilesUsed(
                    scanned=scope.files,
                    skipped=scope.files_skipped,
                    rewritten=_number(commit.metrics.get("numTargetFilesRemoved", 0)) or 0,
                ),
            )
        return info

    def _standing(self, frame: DataFrame, *, may_repartition: bool) -> TableInfo | None:
        """The table as it stands; what it is asked to become is looked at, not yet done."""
        look = self.log.look(self.location)
        require_committer_of(look, "spark", self.log.stores)
        table = None if look is None else look.info()
        self._admit(frame, table, may_repartition=may_repartition)
        return table

    def _admit(
        self,
        frame: DataFrame,
        table: TableInfo | None,
        *,
        may_repartition: bool,
        write: Upsert | None = None,
    ) -> None:
        """Raise when the table cannot be laid out as asked, or cannot have the rows' columns."""
        columns = frame.columns if write is None else written_columns(write, frame.columns)
        refuse_names(frame, columns, table, self.layout)
        check_layout(frame, self.layout)
        if table is not None:
            refuse_other_partitions(table, self.layout, may_change=may_repartition)

    def _refuse_moved(self, table: TableInfo) -> None:
        """Raise when the table is not any more the one that the batch was compared with."""
        if self.log.identity(self.location) != (table.table_id, table.version):
            raise CommitConflict(
                f'another writer changed "{self.location}" while a batch was compared with it',
                hint="run it again",
            )

    def _set_up(self, table: TableInfo) -> TableInfo:
        """Bring the table to what is asked, once nothing is left to refuse."""
        return self._table() if apply_layout(self.spark, table, self.layout) else table

    def _create(self, frame: DataFrame, *, holds_rows: bool = False) -> CommitInfo:
        """Make the table with its first rows in one commit."""
        from deltaworks.engines.spark.delta.first_load import tidied

        before = require_free(self.location, self.log.stores)
        with tidied(self.location, self.log.stores, before=before):
            small = self._by_deltars(lambda: self.hybrid.create(frame, self.stamp), None)
            if small is None:
                if not holds_rows and is_empty(frame):
                    return CommitInfo(committed=False, rows_inserted=0, note=EMPTY)
                claim(self.location, self.log.stores)
                properties = first_properties(self.layout, frame_schema(frame))
                writer = self._writer(frame).mode("error").options(**properties)
                self._save(writer.partitionBy(*self.layout.partition_by))
        if small is not None:
            return self._small(small, None, rows=small.inserted)
        return self._landed(None)

    def _by_deltars(
        self, land: Callable[[], Change | None], table: TableInfo | None
    ) -> Change | None:
        """What delta-rs did; when that is not known, the log is asked before anything else.

        What delta-rs cannot do, for whatever reason of its own, Spark is to try.
        """
        try:
            refuse_disputed(self.location, check_log(self.location))
            return land()
        except EngineError as error:
            after = -1 if table is None else table.version
            commit = self._own_commit(self.log.look(self.location), after=after)
            if commit is None and (self.hybrid.forced or not spark_decides(error)):
                raise
            return None if commit is None else Change(version=commit.version, counted=False)

    def _small(self, change: Change, table: TableInfo | None, *, rows: int) -> CommitInfo:
        """How a batch that delta-rs committed landed."""
        if change.version is None:
            note = EMPTY if table is None else NOTHING_TO_DO
            unchanged = 0 if table is None else max(0, rows - change.ignored)
            return replace(
                _nothing(table),
                rows_unchanged=unchanged,
                rows_dropped=_ignored(change.ignored),
                note=note,
            )
        self._settle(change.version, self._table())
        if not change.counted:
            return CommitInfo(committed=True, version=change.version)
        done = change.inserted + change.updated + change.deleted + change.ignored
        return CommitInfo(
            committed=True,
            version=change.version,
            rows_inserted=change.inserted,
            rows_updated=change.updated,
            rows_deleted=change.deleted,
            rows_unchanged=max(0, rows - done),
            rows_dropped=_ignored(change.ignored),
        )

    def _writer(self, frame: DataFrame) -> DataFrameWriter:
        return (
            plain_strings(unmarked(frame))
            .write.format("delta")
            .options(
                txnAppId=self.stamp.txn.app_id,
                txnVersion=str(self.stamp.txn.version),
                userMetadata=self.stamp.user_metadata,
            )
        )

    def _save(self, writer: DataFrameWriter) -> None:
        self.confirm()  # rows that are kept have been read by now
        with temporary_conf(self.spark, size_settings(self.layout)):
            writer.save(self.location)

    def _landed(self, before: TableInfo | None, *, replaced: int | None = None) -> CommitInfo:
        look = self.log.look(self.location)
        commit = self._own_commit(look, after=-1 if before is None else before.version)
        if commit is None or look is None:
            if before is None:
                raise CommitUnknown(
                    f'"{self.location}" was written, but its commit cannot be found',
                    hint="run it again: a batch that landed is found and not written twice",
                )
            return _nothing(before)
        self._settle(commit.version, look.info())
        deleted = commit.metrics.get("numDeletedRows", replaced)
        return CommitInfo(
            committed=True,
            version=commit.version,
            rows_inserted=_rows_added(commit),
            rows_updated=0,
            rows_deleted=0 if before is None else _number(deleted),
            rows_unchanged=0,
        )

    def _own_commit(self, look: TableSnapshot | None, *, after: int = -1) -> CommitRecord | None:
        """The commit that holds this batch; None when there is none."""
        from deltaworks.engines.deltars.commit_proof import own_commit

        return own_commit(look, self.stamp, after=after)

    def _settle(self, version: int, table: TableInfo) -> None:
        """Make the commit durable, then see that the table is what was asked for."""
        make_durable(self.location, version)
        settled = self._set_up(table)
        if settled is not table:
            make_durable(self.location, version + 1)
        verify_layout(self.spark, settled, self.layout)

    def _table(self) -> TableInfo:
        table = self.log.info(self.location)
        assert table is not None
        return table


def merged_ranges(
    strategy: Strategy, write: Upsert, facts: BatchFacts, table: TableInfo
) -> tuple[KeyRange, ...]:
    """The ranges of keys that a MERGE states."""
    return () if strategy.plain else prunable(write, facts.ranges, table.schema)


def _nothing(table: TableInfo | None) -> CommitInfo:
    return CommitInfo(
        committed=False,
        version=None if table is None else table.version,
        rows_inserted=0,
        rows_updated=0,
        rows_deleted=0,
        rows_unchanged=0,
        note=NOTHING_TO_DO,
    )


def _without_ignored(info: CommitInfo, write: Upsert, rows: int) -> CommitInfo:
    """A first load has nothing to delete: rows that only would are counted as left out."""
    if not write.delete_condition or info.rows_inserted is None:
        return info
    return replace(info, rows_dropped=_ignored(rows - info.rows_inserted))


def _ignored(rows: int) -> dict[str, int]:
    return {UNMATCHED_DELETES: rows} if rows else {}


def _rows_added(commit: CommitRecord) -> int | None:
    """Rows the commit wrote, but for those it only carried over from files it had to rewrite."""
    no_files = 0 if commit.metrics.get("numFiles") == "0" else None
    written = _number(commit.metrics.get("numOutputRows", no_files))
    copied = _number(commit.metrics.get("numCopiedRows", 0))
    return None if written is None or copied is None else written - copied


def _number(value: object) -> int | None:
    return None if value is None else int(str(value))
