"""Whether delta-rs commits what Spark computed, and the rows on their way there.

On one machine delta-rs lands a small batch in a fraction of the time. It is asked only where both
writers surely give the same rows; everything else is Spark's.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltaworks.contracts.context import no_doubt
from deltaworks.contracts.expression import columns_of
from deltaworks.engines.deltars.write.batches import (
    GONE,
    BatchTable,
    Change,
    KeyedChange,
    create_table,
)
from deltaworks.engines.deltars.write.dedupe import one_per_key
from deltaworks.engines.deltars.write.spark_parity import (
    column_problem,
    has_own_note,
    key_problem,
    value_problem,
)
from deltaworks.engines.deltars.write.sql_conditions import Sides, portable
from deltaworks.engines.spark.delta.layout import changed_properties
from deltaworks.engines.spark.delta.merge.merge_sql import (
    NOT_AT_ALL,
    comparisons,
    inserted_columns,
    updated_columns,
)
from deltaworks.engines.spark.delta.schema_fit import frame_schema
from deltaworks.engines.spark.frames.audit_columns import unmarked
from deltaworks.engines.spark.frames.sizing import estimated_bytes, is_local
from deltaworks.engines.spark.session.connect import has_jvm
from deltaworks.errors import EngineError, UnsupportedOperation
from deltaworks.model.schema import Schema
from deltaworks.model.table_info import TableInfo
from deltaworks.model.table_ref import is_url
from deltaworks.model.write import Layout, Stamp, Upsert, Writer
from deltaworks.storage.folders import has_room

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger(__name__)
MERGES = "merge by delta-rs"
MAX_BATCH_BYTES = 32 * 1024**2
MAX_TOUCHED_BYTES = 512 * 1024**2
_SPARE_BYTES = 64 * 1024**2
# What may make many rows of one, so that the size of its input says nothing.
_MULTIPLIES = ("Generate", "Expand", "MapIn", "FlatMap", "Python", "Join", "Script")


@dataclass(frozen=True, kw_only=True)
class SmallBatches:
    """Lands one batch in one table by delta-rs, or leaves it to Spark by answering None."""

    spark: SparkSession
    location: str
    layout: Layout
    writer: Writer
    few: bool = False
    """Whether the rows are known to be few, and the table is one of our own."""
    confirm: Callable[[], None] = no_doubt
    """Raises when the rows that were read are not those that were meant."""

    @property
    def forced(self) -> bool:
        """Whether Spark must not take over what delta-rs cannot do."""
        return self.writer == "deltars"

    def create(self, frame: DataFrame, stamp: Stamp) -> Change | None:
        """Make the table with its first rows, if asked: what Spark makes, every engine knows."""
        if not (self.few or self.writer == "deltars") or not self._may_try():
            return None
        rows = self._rows(frame, self._first_problem(frame))
        if rows is None or not rows.num_rows:
            return None if rows is None else Change(version=None)
        partitions = self.layout.partition_by
        if not self._fits(rows, value_problem(rows, partitions)):
            return None
        version = create_table(self.location, rows, stamp, partition_by=partitions)
        return Change(version=version, inserted=rows.num_rows)

    def append(self, frame: DataFrame, table: TableInfo, stamp: Stamp) -> Change | None:
        """Add the rows."""
        if not self._may_try():
            return None
        target = BatchTable(table.location)
        rows = self._rows(frame, self._more_problem(target, table))
        if rows is None:
            return None
        if not rows.num_rows:
            return Change(version=None)
        target.refuse_landed(stamp)
        rows = _spelled(rows, table)
        if not self._fits(rows, target.value_problem(rows)):
            return None
        return target.add(rows, stamp)

    def upsert(
        self, frame: DataFrame, table: TableInfo, write: Upsert, stamp: Stamp
    ) -> Change | None:
        """Merge the rows by key."""
        if not self._may_try():
            return None
        target = BatchTable(table.location)
        change, problem = self._keyed_change(target, frame, table, write)
        rows = self._rows(frame if problem else _flagged(frame, write), problem)
        if rows is None:
            return None
        came = _spelled(rows, table)
        if not self._fits(came, target.value_problem(came)):
            return None
        rows = one_per_key(came, change.keys, write.duplicates)
        if rows is None or not self._may_rewrite(target, rows, change):
            return None
        target.refuse_landed(stamp)
        done = target.merge(rows, change, stamp)
        return replace(done, duplicates=came.num_rows - rows.num_rows)

    def leave_growth(self) -> bool:
        """Leave a batch that adds or widens columns to Spark."""
        self._leave("the batch changes the table's columns")
        return False

    def _may_rewrite(self, target: BatchTable, rows: pa.Table, change: KeyedChange) -> bool:
        touched = target.touched_bytes(rows, change.keys)
        return self._touches_little(touched) and self._has_room(rows.nbytes + touched)

    def takes_first(self, frame: DataFrame) -> bool:
        """Whether it would make the table, as far as can be told without computing the rows."""
        if not (self.few or self.writer == "deltars") or not self._may_try():
            return False
        return self._may_collect(frame, self._first_problem(frame))

    def accepts_late_rows(self, frame: DataFrame, table: TableInfo) -> bool:
        """Whether it would add the rows, as far as can be told without computing them."""
        if not self._may_try():
            return False
        return self._may_collect(frame, self._more_problem(BatchTable(table.location), table))

    def _first_problem(self, frame: DataFrame) -> str:
        told = self.layout.properties or self.layout.cluster_by
        problem = column_problem(frame_schema(unmarked(frame)), new=True)
        return "the table is to have properties" if told else problem

    def _more_problem(self, target: BatchTable, table: TableInfo) -> str:
        return target.problem(merges=False) or self._layout_problem(table)

    def takes(
        self, frame: DataFrame, table: TableInfo, write: Upsert, *, touched_bytes: int
    ) -> bool:
        """Whether it would merge the rows, as far as can be told without computing them."""
        if not self._may_try():
            return False
        _, problem = self._keyed_change(BatchTable(table.location), frame, table, write)
        return self._may_collect(frame, problem) and self._touches_little(touched_bytes)

    def _keyed_change(
        self, target: BatchTable, frame: DataFrame, table: TableInfo, write: Upsert
    ) -> tuple[KeyedChange, str]:
        """The merge, and why delta-rs should not make it."""
        change, reason = _change(frame, table, write)
        forced = "" if write.strategy == "auto" else f"`strategy: {write.strategy}` is Spark's"
        problem = target.problem(merges=True) or self._layout_problem(table) or forced
        return change, problem or reason

    def _touches_little(self, size_bytes: int) -> bool:
        if self.writer == "deltars" or size_bytes <= MAX_TOUCHED_BYTES:
            return True
        self._leave(f"{size_bytes:,} bytes of the table would be rewritten")
        return False

    def _may_try(self) -> bool:
        if self.writer == "spark":
            return False
        if is_url(self.location):
            self._leave("the table is on an object store")
            return False
        if not has_jvm(self.spark) or not is_local(self.spark):
            self._leave("Spark runs on a cluster or behind a server")
            return False
        return True

    def _rows(self, frame: DataFrame, problem: str) -> pa.Table | None:
        """The batch as Arrow; None when Spark is to write it."""
        if not self._may_collect(frame, problem):
            return None
        rows = unmarked(frame).select("*").toArrow()  # anew, or kept rows would be computed again
        self.confirm()
        return rows

    def _may_collect(self, frame: DataFrame, problem: str) -> bool:
        """Whether delta-rs is to write the batch."""
        if not problem and self.writer == "auto" and not self.few:
            size = bounded_bytes(frame)
            if size is None or size > MAX_BATCH_BYTES:
                problem = "the batch may be large"
        if problem:
            self._leave(problem)
        return not problem

    def _fits(self, rows: pa.Table, problem: str) -> bool:
        """Whether the very rows are for delta-rs, and there is room for them."""
        if problem:
            self._leave(problem)
        return not problem and self._has_room(rows.nbytes)

    def _has_room(self, size_bytes: int) -> bool:
        """Whether the disk surely has room: delta-rs does not take it well when it fills up."""
        if has_room(self.location, 2 * size_bytes + _SPARE_BYTES):
            return True
        self._leave("the disk is nearly full")
        return False

    def _layout_problem(self, table: TableInfo) -> str:
        if self.layout.target_file_bytes is not None:
            return "its files are to have a certain size"
        changes = changed_properties(table, self.layout) or self.layout.cluster_by
        return "the table is to get other properties" if changes else ""

    def _leave(self, problem: str) -> None:
        """Leave the batch to Spark, unless delta-rs was asked for."""
        if self.writer == "deltars":
            raise UnsupportedOperation(
                f'delta-rs cannot write "{self.location}": {problem}',
                hint="leave out `writer: deltars`; Spark can",
            )
        _LOG.debug("Spark commits to %s: %s", self.location, problem)


def spark_decides(error: EngineError) -> bool:
    """Whether delta-rs failed for reasons of its own: it cannot do it, and Spark may."""
    return type(error) in (UnsupportedOperation, EngineError)


def is_repeatable(frame: DataFrame) -> bool:
    """Whether a frame surely gives the same rows however often it is asked."""
    if not has_jvm(frame.sparkSession):
        return False
    plan = frame._jdf.queryExecution().analyzed()
    return bool(plan.deterministic())


def bounded_bytes(frame: DataFrame) -> int | None:
    """How large a batch may be, from what it is computed from; None when that does not tell."""
    plan = frame.select("*")._jdf.queryExecution().optimizedPlan()
    if any(name.startswith(_MULTIPLIES) or "Python" in name for name in _nodes(plan)):
        return None
    return estimated_bytes(frame)


def _nodes(plan: Any) -> Iterator[str]:
    yield str(plan.nodeName())
    children = plan.children()
    for i in range(children.size()):
        yield from _nodes(children.apply(i))


def _change(frame: DataFrame, table: TableInfo, write: Upsert) -> tuple[KeyedChange, str]:
    """The merge in the table's spelling, and why delta-rs should not make it."""
    batch, spelled = frame_schema(frame), _spellings(table)
    ways = comparisons(table.schema, batch)
    updated = updated_columns(write, frame.columns)
    condition, problem = "", key_problem(table.schema, write.keys)
    if write.update_condition:
        found = portable(
            write.update_condition, Sides(source=_typed(batch), target=_typed(table.schema))
        )
        condition, problem = (
            found or "",
            problem or ("" if found else "only Spark can judge update_condition"),
        )
    if write.delete_condition and not _looks_at_batch(write.delete_condition):
        problem = problem or "only Spark can judge delete_condition"
    if write.delete_missing:
        problem = problem or "rows that the batch lacks are to be deleted"
    change = KeyedChange(
        keys=tuple(spelled[name.lower()] for name in write.keys),
        updated=_in_words(updated, spelled),
        compared=_in_words([n for n in updated if ways.get(n.lower()) != NOT_AT_ALL], spelled),
        inserted=_in_words(inserted_columns(write, frame.columns), spelled),
        update_when=condition,
        deletes=bool(write.delete_condition),
    )
    return change, problem


def _in_words(names: Sequence[str], spelled: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(spelled[name.lower()] for name in names)


def _looks_at_batch(condition: str) -> bool:
    """Whether a condition surely looks at nothing but the batch, so that Spark can judge it."""
    sides = {qualifier.lower() for qualifier, _ in columns_of(condition)}
    return sides == {"source"}


def _flagged(frame: DataFrame, write: Upsert) -> DataFrame:
    """The rows, and which of them delete."""
    from pyspark.sql import functions as F

    if not write.delete_condition:
        return frame
    goes = F.expr(f"coalesce(({write.delete_condition}\n), false)").alias(GONE)
    return frame.alias("source").select("*", goes)


def _typed(schema: Schema) -> dict[str, tuple[str, str]]:
    fields = json.loads(schema.document)["fields"]
    simple = [f for f in fields if isinstance(f["type"], str) and not has_own_note(f)]
    return {field["name"].lower(): (field["name"], field["type"]) for field in simple}


def _spellings(table: TableInfo) -> dict[str, str]:
    return {entry["name"].lower(): entry["name"] for entry in table.schema.to_json()}


def _spelled(rows: pa.Table, table: TableInfo) -> pa.Table:
    """The rows with the table's spelling of its columns."""
    names = _spellings(table)
    return rows.rename_columns([names.get(name.lower(), name) for name in rows.column_names])
