"""Write a Delta table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from deltaworks.contracts.context import BatchWrite, ProjectContext, RunContext, no_doubt
from deltaworks.contracts.credentials import NeedsCredential
from deltaworks.contracts.expression import SqlExpression, columns_of
from deltaworks.contracts.plugin import Example, Names, TextMap
from deltaworks.contracts.sink import Beside, Sink
from deltaworks.contracts.size import FileSize, size_bytes
from deltaworks.errors import InputError
from deltaworks.model.commit import CommitInfo, SinkState, UndoInfo
from deltaworks.model.results import CheckResult, MaintenanceResult, OutputPlan
from deltaworks.model.table_info import ISOLATION, SERIALIZABLE
from deltaworks.model.table_properties import maps_columns
from deltaworks.model.table_ref import TableRef, table_place_problems
from deltaworks.model.write import (
    Append,
    DuplicatePolicy,
    Layout,
    MergeStrategy,
    Overwrite,
    Scd2,
    Stamp,
    Upsert,
    Write,
    Writer,
    bloom_properties,
)
from deltaworks.redact import holds_secret

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaworks.engines.spark.delta.plan import Forecast
    from deltaworks.engines.spark.delta.writer import TableWriter

_KEYED = ("upsert", "scd2", "changelog")
_PLAIN = re.compile(r"\w+")
_MODES_OF_FIELDS = {
    "update_condition": ("upsert", "changelog"),
    "delete_condition": ("upsert",),
    "update_columns": ("upsert",),
    "insert_columns": ("upsert",),
    "not_matched_by_source": ("upsert",),
    "duplicates": ("upsert",),
    "strategy": ("upsert",),
    "replace_where": ("overwrite",),
    "overwrite_schema": ("overwrite",),
    "sequence_by": ("scd2", "changelog"),
    "track_columns": ("scd2",),
    "op_column": ("changelog",),
}


class Duplicates(BaseModel):
    """Which of several rows with the same key wins."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    keep: Literal["newest", "oldest"]
    """The row with the highest or the lowest value of `by`."""
    by: str
    """The column that tells which row is newer."""


class AfterLoad(BaseModel):
    """How a table is looked after once a batch is in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    optimize: bool = False
    """Join small files."""
    z_order: Names = ()
    """Columns whose like values are brought together while files are joined."""
    vacuum: bool = False
    """Remove files that no version needs within `delta.deletedFileRetentionDuration`."""

    def problems(self) -> Iterator[str]:
        """What is wrong between the fields."""
        if not (self.optimize or self.z_order or self.vacuum):
            yield '"after_load" says nothing: say "optimize", "z_order" or "vacuum"'


class DeltaSink(NeedsCredential, Sink):
    """A Delta table, by name in the warehouse or by path."""

    example: ClassVar[Example] = {"table": "orders", "partition_by": ["name"]}
    writes_to: ClassVar[Literal["table", "files", "external"]] = "table"

    table: str = ""
    """The table's name in the warehouse."""
    path: str = ""
    """The table's folder, instead of a name."""
    mode: Literal["append", "overwrite", "upsert", "ignore", "error", "scd2", "changelog"] = (
        "append"
    )
    """Add, replace, merge by key, keep every version, apply changes, or write a new table only."""
    merge_keys: Names = ()
    """Columns that identify a row, for upsert, scd2 and changelog."""
    sequence_by: str = ""
    """The column that says since when a row holds, or which change is newer."""
    op_column: str = ""
    """The column that says what happened, for changelog; left out for a change feed or Debezium."""
    track_columns: Names = ()
    """Columns whose change makes a new version, for scd2; all but the keys when left out."""
    update_condition: SqlExpression | None = None
    """A matched row is updated only where this is true, such as `source.ts > target.ts`."""
    delete_condition: SqlExpression | None = None
    """A matched row is deleted where this is true; without a match the row is ignored."""
    update_columns: Names = ()
    """Columns an update sets; all but the keys when left out."""
    insert_columns: Names = ()
    """Columns an insert fills besides the keys; all when left out."""
    not_matched_by_source: Literal["keep", "delete"] = "keep"
    """What happens to rows of the table that the batch does not have."""
    duplicates: Duplicates | None = None
    """Which of several rows with one key wins; such rows are refused when left out."""
    strategy: MergeStrategy = "auto"
    """How an upsert goes in: chosen by sizes, or forced. `plain` is the MERGE written by hand."""
    replace_where: SqlExpression | None = None
    """Overwrite only the rows this covers."""
    merge_schema: bool = False
    """Add columns the table does not have yet."""
    overwrite_schema: bool = False
    """Let an overwrite replace the schema and the partitions too."""
    partition_by: Names = ()
    """Columns whose values become folders."""
    cluster_by: Names = ()
    """Columns the table is clustered by."""
    change_feed: bool | None = None
    """Whether the table keeps a feed of its changes."""
    target_file_size: FileSize | None = None
    """The size that optimised writes and compaction aim at, such as `128mb`."""
    stats_columns: Names = ()
    """Columns whose minimum and maximum are kept for skipping files."""
    writer: Writer = "auto"
    """Who commits: `auto` lets delta-rs land small batches on one machine, which is quicker."""
    bloom: Names = ()
    """Columns that single rows are looked up by: files keep a Bloom filter of their values."""
    optimize_write: bool | None = None
    """Whether rows are shuffled before a write so that files have a good size."""
    auto_compact: bool | None = None
    """Whether small files are joined after a write."""
    after_load: AfterLoad | None = None
    """How the table is looked after once a batch is in it."""
    properties: TextMap = Field(default_factory=dict)
    """Any other table property."""

    def problems(self) -> tuple[str, ...]:
        found = table_place_problems(table=self.table, path=self.path)
        if self.partition_by and self.cluster_by:
            found.append('"partition_by" and "cluster_by" exclude each other')
        folders = set(self.bloom) & set(self.partition_by)
        found.extend(f'"bloom" is not for "{name}": it makes folders' for name in folders)
        if self.bloom and maps_columns(self.properties):
            found.append('"bloom" is not for tables with delta.columnMapping.mode')
        if self.after_load:
            found.extend(self.after_load.problems())
            if self.after_load.z_order and self.cluster_by:
                found.append('a table with "cluster_by" needs no "z_order": say "optimize"')
            folders = set(self.after_load.z_order) & set(self.partition_by)
            found.extend(f'"z_order" is not for "{name}": it makes folders' for name in folders)
        isolation = self.properties.get(ISOLATION, SERIALIZABLE)
        if isolation != SERIALIZABLE:
            found.append(f'"{ISOLATION}: {isolation}": open-source Delta knows only {SERIALIZABLE}')
        if holds_secret(json.dumps(self.document())):
            found.append("an option holds a secret, and every commit would show it")
        return (*found, *self._mode_problems(), *self._condition_problems())

    def _mode_problems(self) -> Iterator[str]:
        if self.mode in _KEYED and not self.merge_keys:
            yield f'mode "{self.mode}" needs "merge_keys"'
        if self.mode not in _KEYED and self.merge_keys:
            yield f'"merge_keys" belongs to mode "upsert", not "{self.mode}"'
        for name, modes in _MODES_OF_FIELDS.items():
            if self.mode not in modes and self._says(name):
                yield f'"{name}" belongs to mode "{modes[0]}", not "{self.mode}"'
        if self.writer == "deltars" and self.mode == "overwrite":
            yield '"writer: deltars" is not for mode "overwrite": Spark replaces rows'
        if self.replace_where and self.overwrite_schema:
            yield '"replace_where" and "overwrite_schema" exclude each other'

    def _says(self, name: str) -> bool:
        return bool(getattr(self, name) != type(self).model_fields[name].default)

    def _condition_problems(self) -> Iterator[str]:
        for name in ("update_condition", "delete_condition"):
            text = getattr(self, name)
            for qualifier, column in columns_of(text) if text else ():
                if qualifier.lower() not in ("source", "target"):
                    yield f'"{name}": write "source.{column}" or "target.{column}"'

    def own_name(self) -> str:
        return self.table or self.path

    def target(self, project_ctx: ProjectContext) -> TableRef:
        return project_ctx.table(table=self.table, path=self.path)

    def lock_path(self, project_ctx: ProjectContext) -> str:
        return self.target(project_ctx).location

    def needs_cached_input(self) -> bool:
        return self.mode in _KEYED

    def may_read_once(self) -> bool:
        return self.mode == "upsert" and self.writer != "spark"

    def is_append(self) -> bool:
        return self.mode == "append"

    def adds_each_row(self) -> bool:
        return self.mode == "append"

    def accepts_late_rows(self) -> bool:
        is_keyed = self.mode in _KEYED and self.not_matched_by_source == "keep"
        return self.mode == "append" or is_keyed

    def why_not_beside(self, columns: Sequence[str]) -> str:
        if self.mode == "scd2":
            return "keeps every version of a row"
        if self.mode == "changelog":
            return "applies changes, which are no rows yet"
        if self.on_failure == "park":
            return "may park batches, whose rows are not in the table yet"
        compared = _bare(columns) - _bare(self.merge_keys)
        updated, inserted = _bare(self.update_columns), _bare(self.insert_columns)
        if updated & compared and not compared <= updated:
            return "updates only some of its columns"
        if inserted and not compared <= inserted:
            return "does not insert all of its columns"
        return ""

    def beside(self, ctx: RunContext, frame: DataFrame, columns: Sequence[str]) -> Beside:
        from deltaworks.engines.spark.delta.lookup import standing_rows
        from deltaworks.engines.spark.delta.merge.retained_rows import beside_merge

        place, covered = self.target(ctx.project_ctx).location, self.replace_where or ""
        if self.update_condition or self.delete_condition or self.update_columns or self.duplicates:
            compared, updated = _bare(columns), _bare(self.update_columns)
            sets_them = not updated or bool(updated & compared)
            return beside_merge(
                ctx.spark,
                place,
                frame,
                self._upsert(),
                sets_them=sets_them,
                stores=ctx.project_ctx.stores,
            )
        is_whole = self.mode == "overwrite" and not covered
        if is_whole or self.mode in ("ignore", "error") or self.not_matched_by_source == "delete":
            return Beside()
        keys, stores = self.merge_keys, ctx.project_ctx.stores
        rows = standing_rows(ctx.spark, place, frame, keys=keys, replaced=covered, stores=stores)
        return Beside(stays=rows)

    def state(self, project_ctx: ProjectContext, app_id: str) -> SinkState:
        from deltaworks.engines.deltars.tables import DeltaRsEngine

        found = DeltaRsEngine(project_ctx.stores).look(self.target(project_ctx).location)
        if found is None:
            return SinkState(identity="", exists=False)
        found.refuse_writing()
        return SinkState(
            identity=found.table_id,
            exists=True,
            version=found.version,
            txn_version=found.transaction(app_id),
        )

    def write(self, ctx: RunContext, frame: DataFrame, batch: BatchWrite) -> CommitInfo:
        from deltaworks.engines.deltars.commit_proof import landed_before
        from deltaworks.engines.deltars.tables import DeltaRsEngine
        from deltaworks.engines.spark.delta.upsert import land_by_key, replace_by_key

        ref = self.target(ctx.project_ctx)
        state = self.state(ctx.project_ctx, batch.txn.app_id)
        stamp = Stamp(txn=batch.txn, user_metadata=batch.user_metadata)
        if state.txn_version is not None and state.txn_version >= batch.txn.version:
            look = DeltaRsEngine(ctx.project_ctx.stores).look(ref.location)
            return landed_before(look, stamp, label=ref.label)
        if state.exists and self.mode in ("ignore", "error") and not batch.replace:
            return self._refused(ref, state)
        writer = self._writer(ctx, stamp, self._layout(frame.columns), confirm=batch.confirm)
        rows, asked = self._taken(frame)
        if isinstance(asked, Upsert | Scd2):
            land = replace_by_key if batch.replace else land_by_key
            info = land(writer, rows, asked, now=ctx.now, keep=batch.keep)
            return self._without_old_changes(info, frame, rows)
        if batch.replace:
            asked = asked.of_everything()
        if isinstance(asked, Overwrite):
            return writer.overwrite(frame, asked)
        return writer.append(frame, replace(asked, holds_rows=batch.holds_rows))

    def _writer(
        self,
        ctx: RunContext,
        stamp: Stamp,
        layout: Layout,
        confirm: Callable[[], None] = no_doubt,
    ) -> TableWriter:
        from deltaworks.engines.spark.delta.writer import TableWriter

        return TableWriter(
            ctx.spark,
            self.target(ctx.project_ctx).location,
            layout=layout,
            stamp=stamp,
            stores=ctx.project_ctx.stores,
            writer=self.writer,
            confirm=confirm,
        )

    def undo(self, ctx: RunContext, version: int, batch: BatchWrite, *, apply: bool) -> UndoInfo:
        from deltaworks.engines.deltars.commit_proof import landed_before
        from deltaworks.engines.deltars.tables import DeltaRsEngine
        from deltaworks.engines.spark.delta.merge.scd2 import VALID_FROM
        from deltaworks.engines.spark.delta.undo import revert_files, revert_merge

        ref = self.target(ctx.project_ctx)
        state = self.state(ctx.project_ctx, batch.txn.app_id)
        engine = DeltaRsEngine(ctx.project_ctx.stores)
        table = engine.info(ref.location)
        stamp = Stamp(txn=batch.txn, user_metadata=batch.user_metadata)
        if state.txn_version == batch.txn.version:
            landed_before(engine.look(ref.location), stamp, label=ref.label)  # raises for another
        if table is None or state.txn_version == batch.txn.version:
            return UndoInfo(committed=False, version=None, rows_removed=0, rows_put_back=0)
        if self.mode in _KEYED:
            more = (VALID_FROM,) if self.mode == "scd2" else ()
            found = revert_merge(ctx.spark, table, version, (*self.merge_keys, *more))
        else:
            found = revert_files(ctx.spark, table, version, stores=ctx.project_ctx.stores)
        made = None
        if apply:
            made = found.commit(self._writer(ctx, stamp, Layout()))
        return UndoInfo(
            committed=made is not None,
            version=made,
            rows_removed=found.rows_removed,
            rows_put_back=found.rows_put_back,
        )

    def maintain(self, ctx: RunContext, user_metadata: str) -> Iterator[MaintenanceResult]:
        from deltaworks.engines.spark.delta.maintenance import optimize, vacuum

        asked, location = self.after_load, self.target(ctx.project_ctx).location
        how: Any = {"user_metadata": user_metadata, "stores": ctx.project_ctx.stores}
        if asked and (asked.optimize or asked.z_order):
            columns = asked.z_order
            yield optimize(ctx.spark, location, z_order=columns, **how)
        if asked and asked.vacuum:
            yield vacuum(ctx.spark, location, **how)

    def _refused(self, ref: TableRef, state: SinkState) -> CommitInfo:
        if self.mode == "ignore":
            note = "the table exists, so nothing was written (mode ignore)"
            return CommitInfo(committed=False, version=state.version, rows_inserted=0, note=note)
        raise InputError(
            f'table "{ref.label}" exists already, and the mode is "error"',
            hint="use mode append, overwrite or upsert, or another table",
        )

    def _taken(self, frame: DataFrame) -> tuple[DataFrame, Write]:
        """The rows of the table that a batch has, and what the mode asks to be done with them."""
        from deltaworks.engines.spark.delta.merge.change_records import opened_changes

        if self.mode != "changelog":
            return frame, self._asked()
        changes = opened_changes(frame, op_column=self.op_column, sequence_by=self.sequence_by)
        merge = changes.merge(self.merge_keys, newer=self.update_condition or "")
        return changes.frame, replace(merge, merge_schema=self.merge_schema)

    def _without_old_changes(
        self, info: CommitInfo, frame: DataFrame, rows: DataFrame
    ) -> CommitInfo:
        """Records that only tell how a row was before are left out by name."""
        if self.mode != "changelog" or not (passed := frame.count() - rows.count()):
            return info
        return replace(info, rows_dropped={**info.rows_dropped, "preimages": passed})

    def _asked(self) -> Write:
        """What the mode asks of the table."""
        if self.mode == "upsert":
            return self._upsert()
        if self.mode == "scd2":
            return Scd2(
                keys=self.merge_keys,
                sequence_by=self.sequence_by,
                tracked=self.track_columns,
                merge_schema=self.merge_schema,
            )
        if self.mode == "overwrite":
            return Overwrite(
                replace_where=self.replace_where or "",
                overwrite_schema=self.overwrite_schema,
                merge_schema=self.merge_schema,
            )
        return Append(merge_schema=self.merge_schema)

    def _upsert(self) -> Upsert:
        wins = self.duplicates
        return Upsert(
            keys=self.merge_keys,
            update_condition=self.update_condition or "",
            delete_condition=self.delete_condition or "",
            update_columns=self.update_columns,
            insert_columns=self.insert_columns,
            delete_missing=self.not_matched_by_source == "delete",
            duplicates=None if wins is None else DuplicatePolicy(keep=wins.keep, by=wins.by),
            merge_schema=self.merge_schema,
            strategy=self.strategy,
        )

    def _layout(self, columns: Sequence[str]) -> Layout:
        asked = {
            "delta.enableChangeDataFeed": self.change_feed,
            "delta.autoOptimize.optimizeWrite": self.optimize_write,
            "delta.autoOptimize.autoCompact": self.auto_compact,
            "delta.dataSkippingStatsColumns": _listed(self.stats_columns, columns) or None,
        }
        set_ones = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in asked.items()
            if value is not None
        }
        return Layout(
            partition_by=self.partition_by,
            cluster_by=self.cluster_by,
            z_order=self.after_load.z_order if self.after_load else (),
            bloom=self.bloom,
            sought=self.merge_keys,
            properties={**set_ones, **bloom_properties(self.bloom), **self.properties},
            target_file_bytes=size_bytes(self.target_file_size) if self.target_file_size else None,
        )

    def plan_offline(self, project_ctx: ProjectContext) -> OutputPlan:
        from deltaworks.engines.spark.delta.merge.merge_sql import outline_sql

        ref, sql = self.target(project_ctx), ""
        if self.mode == "upsert":
            sql = outline_sql(self._upsert(), location=ref.location)
        return OutputPlan(
            sink=self.name or self.own_name(),
            table=ref.label,
            sql=sql,
            note=f"mode {self.mode}",
        )

    def plan(self, ctx: RunContext, frame: DataFrame) -> OutputPlan:
        ref = self.target(ctx.project_ctx)
        basis = OutputPlan(sink=self.name or self.own_name(), table=ref.label)
        forecast = self._forecast(ctx, frame)
        if self.mode in ("ignore", "error"):
            state = self.state(ctx.project_ctx, "")
            if state.exists:
                forecast.check(frame)
                info = self._refused(ref, state)
                return replace(basis, exists=True, rows_to_insert=0, note=info.note)
        return forecast.plan(*self._taken(frame), basis)

    def verify(self, ctx: RunContext, frame: DataFrame) -> None:
        self._forecast(ctx, frame).verify(*self._taken(frame))

    def violations(self, ctx: RunContext, frame: DataFrame) -> tuple[CheckResult, ...]:
        return self._forecast(ctx, frame).violations(*self._taken(frame))

    def _forecast(self, ctx: RunContext, frame: DataFrame) -> Forecast:
        from deltaworks.engines.spark.delta.plan import Forecast

        project_ctx, layout = ctx.project_ctx, self._layout(frame.columns)
        ref, stores, writer = self.target(project_ctx), project_ctx.stores, self.writer
        return Forecast(ctx.spark, ref, layout=layout, now=ctx.now, stores=stores, writer=writer)


def _listed(names: Sequence[str], columns: Sequence[str]) -> str:
    """Names in one text for Delta; one with a dot is a column's own if there is such a column."""
    from deltaworks.engines.spark.frames.columns import quoted

    own = {name.lower() for name in columns}
    return ",".join(
        name
        if _PLAIN.fullmatch(name) or ("." in name and name.lower() not in own)
        else quoted(name)
        for name in names
    )


def _bare(columns: Sequence[str]) -> set[str]:
    """The columns that names begin with, in any case."""
    return {name.split(".")[0].lower() for name in columns}
