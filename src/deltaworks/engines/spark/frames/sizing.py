"""How large a batch is, and how Spark is set for work of that size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltaworks.engines.spark.session.conf import temporary_conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MEBIBYTE = 1 << 20
SMALL_BYTES = 32 * MEBIBYTE
"""Up to here one task is quicker than the plan for several."""
FEW_BYTES = 8 * MEBIBYTE
"""Files of a table of this size are read and sorted sooner than anything is sent to them."""
_BYTES_PER_TASK = 64 * MEBIBYTE
_MAX_TIMES = 8  # what joins will give is guessed far too high
PARTITIONS = "spark.sql.shuffle.partitions"
ADAPTIVE = "spark.sql.adaptive.enabled"
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


def estimated_bytes(frame: DataFrame) -> int:
    """About how much memory the rows take; exact for rows that are kept in it already."""
    # asked anew: a plan goes on saying what it guessed before its rows were kept
    plan = getattr(frame.select("*"), "_jdf", None)
    if plan is None:  # pragma: no cover - only over Spark Connect
        return SMALL_BYTES + 1
    return int(str(plan.queryExecution().optimizedPlan().stats().sizeInBytes()))


def is_local(spark: SparkSession) -> bool:
    """Whether everything runs in the driver's own JVM."""
    return (spark.conf.get("spark.master", "") or "").startswith("local")


def shuffle_settings(spark: SparkSession, bytes_: int) -> dict[str, str]:
    """As many tasks after a shuffle as the bytes need; a cluster keeps its own settings.

    Adaptive execution starts a job for every step of a query. For a few rows that is most of the
    time, so small work is planned once and runs as one job, in one task. Nothing is broadcast but
    what is asked for, since that is a job too.
    """
    if not is_local(spark):
        return {}
    if bytes_ <= SMALL_BYTES:
        return {PARTITIONS: "1", ADAPTIVE: "false", BROADCAST: "-1"}
    usual = int(spark.conf.get(PARTITIONS, "4") or 4)
    needed = math.ceil(bytes_ / _BYTES_PER_TASK)
    return {PARTITIONS: str(min(max(usual, needed), _MAX_TIMES * usual))}


@contextmanager
def fitted(spark: SparkSession, bytes_: int) -> Iterator[None]:
    """Spark set for work of a size; frames that are kept must be asked for inside."""
    with temporary_conf(spark, shuffle_settings(spark, bytes_)):
        yield


def lightly(frame: DataFrame, bytes_: int) -> DataFrame:
    """Rows that a table is joined with: sent to wherever its files are read, if they are few."""
    from pyspark.sql import functions as F

    return F.broadcast(frame) if bytes_ <= SMALL_BYTES else frame
