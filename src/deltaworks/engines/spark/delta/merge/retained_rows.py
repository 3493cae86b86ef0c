"""What a batch and a table are to each other once it is merged: rows that land, rows that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.contracts.sink import Beside
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.spark.delta.lookup import same_keys
from deltaworks.engines.spark.delta.merge import keys
from deltaworks.engines.spark.delta.merge.diff import (
    ACTION,
    DELETE,
    INSERT,
    UNCHANGED,
    UPDATE,
    classify,
)
from deltaworks.engines.spark.delta.merge.merge_sql import (
    comparisons,
    without_deletes,
    written_columns,
)
from deltaworks.engines.spark.delta.schema_fit import fit, frame_schema
from deltaworks.engines.spark.delta.tables import SparkEngine
from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.model.write import Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def beside_merge(
    spark: SparkSession,
    location: str,
    frame: DataFrame,
    write: Upsert,
    *,
    sets_them: bool,
    stores: Stores = NO_STORES,
) -> Beside:
    """Row by row as the merge decides it; `sets_them` says whether updates set what is compared."""
    from pyspark.sql import functions as F

    if write.duplicates is not None:
        keep, by = write.duplicates.keep, write.duplicates.by
        kept = keys.keep_one(frame, write.keys, keep=keep, by=by)
        frame = kept.select(*[quoted(name) for name in frame.columns])
    table = DeltaRsEngine(stores).info(location)
    if table is None:
        return Beside(lands=without_deletes(frame, write))
    columns = written_columns(write, frame.columns)
    fitted, _ = fit(frame, table, merge_schema=write.merge_schema, columns=columns)
    target = SparkEngine(spark).read(location, version=table.version)
    ways = comparisons(table.schema, frame_schema(fitted))
    decided = classify(fitted, target, write, ways)
    updates = (UPDATE,) if sets_them else ()
    lands = decided.filter(F.col(ACTION).isin(INSERT, *updates))
    if write.delete_missing:
        left = (UNCHANGED,) if sets_them else (UNCHANGED, UPDATE)
        stays = same_keys(target, decided.filter(F.col(ACTION).isin(*left)), write.keys)
    else:
        gone = decided.filter(F.col(ACTION).isin(DELETE, *updates))
        stays = same_keys(target, gone, write.keys, there=False)
    return Beside(lands=lands, stays=stays)
