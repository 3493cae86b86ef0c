"""What a batch would do to a table, row by row: the one computation of `plan` and `run`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.file_pruning import file_scope
from deltaworks.engines.spark.delta.lookup import same_keys
from deltaworks.engines.spark.delta.merge.key_ranges import usable, within
from deltaworks.engines.spark.delta.merge.merge_sql import (
    comparisons,
    key_match,
    update_when,
    updated_columns,
)
from deltaworks.engines.spark.delta.schema_fit import frame_schema
from deltaworks.engines.spark.delta.tables import SparkEngine
from deltaworks.engines.spark.errors.row_notes import stop
from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.engines.spark.frames.sizing import FEW_BYTES, fitted, lightly
from deltaworks.model.merge_facts import BatchFacts, DiffFacts, FileScope, KeyRange
from deltaworks.model.schema import Schema
from deltaworks.model.table_info import TableInfo
from deltaworks.model.write import Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ACTION = "__deltaworks_action"
_FILE, _FILE_BYTES = "__deltaworks_file", "__deltaworks_file_bytes"
_FILE_MARKS = (_FILE, _FILE_BYTES)
INSERT, UPDATE, DELETE, UNCHANGED, IGNORED = "insert", "update", "delete", "unchanged", "ignored"


def classify(
    frame: DataFrame, target: DataFrame, upsert: Upsert, ways: Mapping[str, str]
) -> DataFrame:
    """The batch with what each of its rows would do, and the file of the row it meets if known."""
    from pyspark.sql import functions as F

    source, stands = frame.alias("source"), target.alias("target")
    matched = f"target.{quoted(upsert.keys[0])} IS NOT NULL"
    branches = []
    if upsert.delete_condition:
        condition = f"({upsert.delete_condition}\n)"
        branches.append(f"WHEN {matched} AND {condition} THEN '{DELETE}'")
        branches.append(f"WHEN NOT ({matched}) AND {condition} THEN '{IGNORED}'")
    branches.append(f"WHEN NOT ({matched}) THEN '{INSERT}'")
    if updated_columns(upsert, frame.columns):
        condition = update_when(upsert, frame.columns, ways)
        branches.append(f"WHEN {condition} THEN '{UPDATE}'")
    action = F.expr(f"CASE {' '.join(branches)} ELSE '{UNCHANGED}' END").alias(ACTION)
    joined = source.join(stands, F.expr(key_match(upsert.keys)), "left")
    files = [F.col(f"target.{name}") for name in _FILE_MARKS if name in target.columns]
    return joined.select("source.*", action, *files)


@contextmanager
def diffed(
    spark: SparkSession,
    frame: DataFrame,
    table: TableInfo,
    write: Upsert,
    facts: BatchFacts,
    *,
    stores: Stores = NO_STORES,
) -> Iterator[tuple[DataFrame, DiffFacts]]:
    """The batch with what each row would do, kept while it is used, and the figures of it.

    The table is read as it is now, so that Delta reads its log once for this and for the MERGE;
    who writes sees to it afterwards that it still is the version that was meant.
    """
    ranges = prunable(write, facts.ranges, table.schema)
    scope = file_scope(table.location, table.version, ranges, stores=stores)
    target = within(SparkEngine(spark).read(table.location), ranges)
    ways = comparisons(table.schema, frame_schema(frame))
    size = facts.bytes + (scope.bytes if write.delete_missing else 0)
    with fitted(spark, size):
        near = _near(_with_files(target), frame, write, facts, scope)
        classified = classify(frame, near, write, ways).persist()
    try:
        with fitted(spark, size):
            found = _figures(classified, frame, target, write, scope)
        yield classified, found
    finally:
        classified.unpersist()


def prunable(write: Upsert, ranges: tuple[KeyRange, ...], table: Schema) -> tuple[KeyRange, ...]:
    """Ranges outside of which no row of the table matters; none when absent rows are deleted."""
    return () if write.delete_missing else usable(ranges, table)


def _near(
    target: DataFrame, frame: DataFrame, write: Upsert, facts: BatchFacts, scope: FileScope
) -> DataFrame:
    """The rows of a large table that meet some of the batch; of a small one simply all.

    Spark cannot broadcast the side that an outer join keeps, and would sort the whole table.
    """
    if scope.bytes <= FEW_BYTES:
        return target
    return same_keys(target, lightly(frame, facts.bytes), write.keys)


def _with_files(target: DataFrame) -> DataFrame:
    """Rows of a table with the file each is in."""
    file = target.metadataColumn("_metadata")
    return target.select(
        "*",
        file.getField("file_path").alias(_FILE),
        file.getField("file_size").alias(_FILE_BYTES),
    )


def _figures(
    classified: DataFrame, frame: DataFrame, target: DataFrame, upsert: Upsert, scope: FileScope
) -> DiffFacts:
    """The figures of a classified batch."""
    from pyspark.sql import functions as F

    counts: dict[str, int] = {}
    matched: dict[str, int] = {}
    touched: dict[str, int] = {}
    for action, file, size, rows in classified.groupBy(ACTION, *_FILE_MARKS).count().collect():
        counts[action] = counts.get(action, 0) + int(rows)
        if file is not None:
            matched[file] = int(size)
            if action in (UPDATE, DELETE):
                touched[file] = int(size)
    missing = 0
    if upsert.delete_missing:
        anti = target.alias("target").join(
            frame.alias("source"), F.expr(key_match(upsert.keys)), "left_anti"
        )
        missing = anti.count()
    return DiffFacts(
        **counts,
        missing=missing,
        files_matched=len(matched),
        bytes_matched=sum(matched.values()),
        files_touched=len(touched),
        bytes_touched=sum(touched.values()),
        scope=scope,
    )


def changed_rows(classified: DataFrame) -> DataFrame:
    """Only the rows a MERGE has work for."""
    from pyspark.sql import functions as F

    changed = classified.filter(F.col(ACTION).isin(INSERT, UPDATE, DELETE))
    return changed.drop(ACTION, *_FILE_MARKS)


def still_new(
    classified: DataFrame, table: TableInfo, write: Upsert, facts: BatchFacts, scope: FileScope
) -> DataFrame:
    """The rows to insert, which stop the write if the table has one of their keys after all.

    An append by itself never conflicts: Delta would put rows beside those that another writer
    inserted meanwhile, and the keys would be there twice. These rows read the keys of the table
    as part of being written. So Delta's own transaction knows that they depend on what it read,
    looks at what was committed since, and refuses; and a key that is there by the time the
    transaction begins is a conflict too. Either way the batch is compared and written again.
    """
    from pyspark.sql import functions as F

    rows = changed_rows(classified)
    ranges = prunable(write, facts.ranges, table.schema)
    stands = within(SparkEngine(classified.sparkSession).read(table.location), ranges)
    names = [quoted(key) for key in write.keys]
    near = _near(stands.select(*names), rows, write, facts, scope)
    joined = rows.alias("source").join(near.alias("target"), F.expr(key_match(write.keys)), "left")
    moved = stop(
        kind="conflict",
        step="",
        message=F.lit("another writer inserted rows of this batch's keys meanwhile"),
        hint="run it again",
    )
    fine = F.when(F.col(f"target.{names[0]}").isNull(), F.lit(col=True)).otherwise(moved)
    return joined.filter(fine.cast("boolean")).select("source.*")
