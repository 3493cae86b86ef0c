"""The quarantine table: refused rows, with why and whence, one slice per batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from deltaworks.contracts.context import RunContext
from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.engines.spark.columns import literal
from deltaworks.engines.spark.write import TableWriter
from deltaworks.model.commit import CommitInfo, Txn
from deltaworks.model.table_ref import quarantine_table
from deltaworks.model.write import Layout, Overwrite, Stamp
from deltaworks.runtime.frames import Rejects
from deltaworks.runtime.ledger import BatchEntry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SINK = "__quarantine"


def write_quarantine(
    ctx: RunContext,
    rejects: Sequence[Rejects],
    *,
    project: str,
    pipeline: str,
    entry: BatchEntry,
    txn: Txn,
    user_metadata: str,
) -> CommitInfo | None:
    """Replace this batch's slice; None when there is nothing to set aside and nothing to clear."""
    location = quarantine_table(pipeline, warehouse=ctx.site.warehouse).location
    some = [part for part in rejects if part.rows]
    if not some and not _may_hold_slice(location, entry, ctx):
        return None
    frame = _slice(ctx, some, project=project, pipeline=pipeline, entry=entry)
    where = _slice_of(project, pipeline, entry)
    stamp = Stamp(txn=txn, user_metadata=user_metadata)
    writer = TableWriter(ctx.spark, location, layout=Layout(), stamp=stamp)
    return writer.overwrite(frame, Overwrite(replace_where=where))


def clear_quarantine(warehouse: str, *, project: str, pipeline: str, entry: BatchEntry) -> None:
    """Take back the slice of a batch that was given up."""
    location = quarantine_table(pipeline, warehouse=warehouse).location
    DeltaRsEngine().delete(location, _slice_of(project, pipeline, entry))


def _slice_of(project: str, pipeline: str, entry: BatchEntry) -> str:
    return (
        f"project = {literal(project)} AND pipeline = {literal(pipeline)} "
        f"AND generation = {entry.generation} AND batch = {entry.n}"
    )


def _may_hold_slice(location: str, entry: BatchEntry, ctx: RunContext) -> bool:
    """Only a batch that an earlier run began can have left a slice behind."""
    return entry.run_id != ctx.run_id and DeltaRsEngine().identity(location) is not None


def _slice(
    ctx: RunContext, rejects: Sequence[Rejects], *, project: str, pipeline: str, entry: BatchEntry
) -> DataFrame:
    from pyspark.sql import functions as F

    if rejects:
        parts = [part.frame.withColumn("stage", F.lit(part.stage)) for part in rejects]
        rows = reduce(lambda left, right: left.unionByName(right), parts)
    else:
        text = "rule string, reason string, row string, raw string, stage string"
        rows = ctx.spark.createDataFrame([], text)
    sources = ", ".join(sorted(bounds.identity for bounds in entry.bounds.values()))
    return rows.select(
        F.lit(project).alias("project"),
        F.lit(pipeline).alias("pipeline"),
        F.lit(entry.generation).cast("long").alias("generation"),
        F.lit(entry.n).cast("long").alias("batch"),
        F.lit(ctx.run_id).alias("run_id"),
        F.col("stage"),
        F.col("rule"),
        F.col("reason"),
        F.col("row"),
        F.col("raw"),
        F.lit(sources).alias("source"),
        F.lit(ctx.now).cast("timestamp").alias("quarantined_at"),
    )
