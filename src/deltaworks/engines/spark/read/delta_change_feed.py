"""A table's change feed as rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.log.commits import commit_times
from deltaworks.engines.spark.delta.tables import SparkEngine
from deltaworks.engines.spark.errors.translate import told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"


def changes_between(spark: SparkSession, location: str, *, first: int, last: int) -> DataFrame:
    """What the commits from one version to another did, both included, lazily."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    reader = reader.option("startingVersion", first).option("endingVersion", last)
    with told():
        return reader.load(location)


def table_as_inserts(
    spark: SparkSession, location: str, *, version: int, stores: Stores = NO_STORES
) -> DataFrame:
    """The rows of a version as a feed would tell them that began with it."""
    from pyspark.sql import functions as F

    made_ms = dict(commit_times(location, stores)).get(version)
    made = None if made_ms is None else datetime.fromtimestamp(made_ms / 1000, UTC)
    return (
        SparkEngine(spark)
        .read(location, version=version)
        .select(
            "*",
            F.lit("insert").alias(CHANGE_TYPE),
            F.lit(version).cast("long").alias(COMMIT_VERSION),
            F.lit(made).cast("timestamp").alias(COMMIT_TIMESTAMP),
        )
    )
