"""Tables that keep history: each row is valid from one timestamp to the next (SCD type 2).

The whole timeline of every key in the batch is drawn anew, from what stands and what comes,
and is then merged by key and moment. So a row that arrives late finds its place, and a batch
that comes twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from deltaworks.engines.spark.delta.merge.key_ranges import usable, within
from deltaworks.engines.spark.delta.merge.keys import (
    keep_one,
    measured_winners,
    refuse_null_keys,
    refuse_ties,
    without_marks,
)
from deltaworks.engines.spark.delta.schema_fit import fit
from deltaworks.engines.spark.delta.tables import SparkEngine
from deltaworks.engines.spark.frames.audit_columns import marked, marks
from deltaworks.engines.spark.frames.columns import column, exact_json, quoted, require_columns
from deltaworks.engines.spark.frames.comparable import form
from deltaworks.engines.spark.frames.sizing import estimated_bytes, fitted, lightly
from deltaworks.errors import GuardError, SchemaMismatch, SpecError
from deltaworks.model.merge_facts import BatchFacts, KeyRange
from deltaworks.model.table_info import TableInfo
from deltaworks.model.write import Scd2, Upsert

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

VALID_FROM, VALID_TO = "valid_from", "valid_to"
IS_CURRENT, ROW_HASH = "is_current", "row_hash"
OWN_COLUMNS = (VALID_FROM, VALID_TO, IS_CURRENT, ROW_HASH)
_NOT_UTF8 = "\ufffd"
"""What stands in JSON for bytes that are no text."""
_GONE, _NEW, _WINS = "__deltaworks_gone", "__deltaworks_new", "__deltaworks_wins"


@dataclass(frozen=True, kw_only=True)
class Versions:
    """The timelines of a batch's keys, and the merge that brings the table to them."""

    frame: DataFrame
    merge: Upsert
    facts: BatchFacts
    """Of the timelines, not of the batch they come from."""
    rows: int
    """Rows of the batch."""
    rows_new: int
    """Rows of the batch that are a version of their own."""


@contextmanager
def versions(
    spark: SparkSession, frame: DataFrame, table: TableInfo | None, write: Scd2, now: datetime
) -> Iterator[Versions]:
    """The timelines that a batch makes together with what stands in the table."""
    size = estimated_bytes(frame)
    with fitted(spark, size):
        ranked = _dated(frame, write, now).persist()
    try:
        batch, facts = _one_per_key_and_moment(ranked, frame, write)
        stands = None
        if table is not None:
            _require_history(table)
            batch = fit(batch, table, merge_schema=write.merge_schema)[0]
            ranges = usable(facts.ranges, table.schema)
            stands = _standing(spark, batch, table, write, ranges)
        tracked = _tracked(frame, write)
        with fitted(spark, size):
            drawn = timelines(batch, stands, keys=write.keys, tracked=tracked)
            # what stands has no mark, and comes first
            drawn = marked(drawn, marks(frame)).persist()
        try:
            with fitted(spark, size):
                rows, rows_new = _drawn(drawn, write, now)
            yield Versions(
                frame=drawn,
                merge=_merge(drawn, write),
                facts=BatchFacts(rows=rows, bytes=estimated_bytes(drawn), ranges=facts.ranges),
                rows=facts.rows + facts.rows_dropped,
                rows_new=rows_new,
            )
        finally:
            drawn.unpersist()
    finally:
        ranked.unpersist()


def _one_per_key_and_moment(
    ranked: DataFrame, frame: DataFrame, write: Scd2
) -> tuple[DataFrame, BatchFacts]:
    """The dated batch once nothing is wrong with its keys, and what is known of it."""
    facts = measured_winners(ranked, (*write.keys, VALID_FROM))
    if facts.rows_null_key:
        refuse_null_keys(frame, write.keys)
        refuse_null_keys(frame, [write.sequence_by], what="sequence_by")
    hint = "choose a column for `sequence_by` that tells them apart"
    refuse_ties(ranked, write.keys, VALID_FROM, ties=facts.keys_repeated, hint=hint)
    # the timelines reach back further than the batch
    ranges = tuple(found for found in facts.ranges if found.column != VALID_FROM)
    return without_marks(ranked), replace(facts, ranges=ranges)


def _drawn(drawn: DataFrame, write: Scd2, now: datetime) -> tuple[int, int]:
    """How many versions there are, and how many of them are the batch's."""
    from pyspark.sql import functions as F

    later = F.lit(col=False)  # the clock dates the rows only where no column does
    if not write.sequence_by:
        later = ~F.col(_NEW) & (F.col(VALID_FROM) > F.lit(now).cast("timestamp"))
    row = drawn.agg(F.count(F.lit(1)), F.count_if(_NEW), F.count_if(later)).collect()[0]
    if row[2]:
        raise GuardError(
            "the table holds rows that are valid only from a later time than this machine's "
            f"clock shows ({now:%Y-%m-%d %H:%M:%S} UTC)",
            hint="set the clock, or date the rows themselves with `sequence_by`",
        )
    return int(row[0]), int(row[1])


def timelines(
    batch: DataFrame, stands: DataFrame | None, *, keys: Sequence[str], tracked: Sequence[str]
) -> DataFrame:
    """Every version of every key, and the standing ones that are gone because they repeat."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    rows = batch.withColumn(_NEW, F.lit(col=True))
    if stands is not None:
        old = stands.withColumn(_NEW, F.lit(col=False))
        rows = old.unionByName(rows, allowMissingColumns=True)
    rows = _one_per_moment(rows.withColumn(ROW_HASH, _hash(rows, tracked)), keys)
    in_time = Window.partitionBy(*[column(rows, key) for key in keys]).orderBy(VALID_FROM)
    later = in_time.rowsBetween(1, Window.unboundedFollowing)
    repeats = F.coalesce(F.lag(ROW_HASH).over(in_time) == F.col(ROW_HASH), F.lit(col=False))
    next_moment = F.min(F.when(~F.col(_GONE), F.col(VALID_FROM))).over(later)
    drawn = rows.withColumn(_GONE, repeats).withColumn(VALID_TO, next_moment)
    drawn = drawn.withColumn(IS_CURRENT, F.col(VALID_TO).isNull())
    return drawn.filter(~(F.col(_GONE) & F.col(_NEW)))  # what repeats on arrival is no version


def _one_per_moment(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """At one moment what comes corrects what stands, unless it says the same."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    moment = Window.partitionBy(*[column(rows, key) for key in keys], F.col(VALID_FROM))
    alone = F.count(F.lit(1)).over(moment) == 1
    same = F.min(ROW_HASH).over(moment) == F.max(ROW_HASH).over(moment)
    return rows.withColumn(_WINS, alone | (same != F.col(_NEW))).filter(_WINS).drop(_WINS)


def _dated(frame: DataFrame, write: Scd2, now: datetime) -> DataFrame:
    """The batch with the columns of history; equal rows fall together, others may tie."""
    from pyspark.sql import functions as F

    taken = {name.lower() for name in frame.columns} & set(OWN_COLUMNS)
    if taken:
        raise SpecError(
            f'mode scd2 fills column "{min(taken)}" itself, but the rows have one of that name',
            hint="rename it with a select step; to say since when a row holds use `sequence_by`",
        )
    require_columns(frame, write.keys, where="merge_keys", nested=False)
    require_columns(frame, write.tracked, where="track_columns", nested=False)
    moment = F.lit(now).cast("timestamp")
    if write.sequence_by:
        require_columns(frame, [write.sequence_by], where="sequence_by", nested=False)
        moment = column(frame, write.sequence_by)
    empty = F.lit(None)
    dated = frame.withColumns(
        {
            VALID_FROM: moment,
            VALID_TO: empty.cast(frame.select(moment).schema[0].dataType),
            IS_CURRENT: F.lit(col=True),
            ROW_HASH: empty.cast("string"),
        }
    )
    return keep_one(dated, (*write.keys, VALID_FROM), keep="newest", by=VALID_FROM)


def _standing(
    spark: SparkSession,
    batch: DataFrame,
    table: TableInfo,
    write: Scd2,
    ranges: Sequence[KeyRange],
) -> DataFrame:
    """What the table holds of the batch's keys."""
    target = within(SparkEngine(spark).read(table.location), ranges)
    names = [quoted(key) for key in write.keys]
    keys = lightly(batch.select(*names).distinct(), estimated_bytes(batch))
    return target.join(keys, list(write.keys), "left_semi")


def _require_history(table: TableInfo) -> None:
    names = {str(entry["name"]).lower() for entry in table.schema.to_json()}
    missing = [name for name in OWN_COLUMNS if name not in names]
    if missing:
        raise SchemaMismatch(
            f'table "{table.location}" keeps no history: it has no column "{missing[0]}"',
            hint="choose another table for mode scd2",
        )


def _tracked(frame: DataFrame, write: Scd2) -> list[str]:
    """The columns whose change makes a new version."""
    apart = {name.lower() for name in (*write.keys, write.sequence_by, *marks(frame))}
    names = write.tracked or [name for name in frame.columns if name.lower() not in apart]
    return sorted(names, key=str.lower)


def _hash(rows: DataFrame, tracked: Sequence[str]) -> Column:
    """NULLs leave no trace in it, so that a new column makes no new version by itself.

    JSON writes all text that is not UTF-8 alike, so a row that may have some is told by its bytes.
    """
    from pyspark.sql import functions as F

    if not tracked:
        return F.sha2(F.lit(""), 256)
    json = F.expr(exact_json(", ".join(quoted(name) for name in tracked)))
    kinds = {field.name.lower(): field.jsonValue()["type"] for field in rows.schema.fields}
    forms = [F.expr(form(quoted(name), kinds[name.lower()])) for name in tracked]
    by_bytes = F.concat(json, F.xxhash64(*forms).cast("string"))
    return F.sha2(F.when(json.contains(_NOT_UTF8), by_bytes).otherwise(json), 256)


def _merge(drawn: DataFrame, write: Scd2) -> Upsert:
    keys = (*write.keys, VALID_FROM)
    lower = {key.lower() for key in keys}
    names = [name for name in drawn.columns if name not in (_GONE, _NEW)]
    return Upsert(
        keys=keys,
        delete_condition=f"source.{_GONE}",
        update_columns=tuple(name for name in names if name.lower() not in lower),
        insert_columns=tuple(names),
        merge_schema=write.merge_schema,
    )
