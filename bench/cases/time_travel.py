"""A table read as it was, beside the table as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.case import Parts
from bench.cases.bulk_append import BulkAppend
from bench.orders import fingerprint, timed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project


class TimeTravel(BulkAppend):
    """A version that others came after costs its readers what the latest does."""

    name = "time_travel"
    bar = "ours: an old version / the latest <= 1.2"
    most_ratio = 1.2

    def ours(self, project: Project, folder: Path, round_: int) -> Parts:
        super().ours(project, folder, round_)
        return _both(project.spark, folder / f"ours_{round_}")

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> Parts:
        super().plain(spark, folder, round_)
        return _both(spark, folder / f"plain_{round_}")

    def ratio(self, medians: Mapping[str, Parts]) -> float:
        return medians["ours"]["old"] / medians["ours"]["latest"]


def _both(spark: SparkSession, place: Path) -> Parts:
    """The rows of both are the same, so that only finding them may differ."""
    latest = spark.read.format("delta").load(str(place))
    fingerprint(latest)  # neither pays for the first look at the files
    spark.sql(f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('bench' = 'moved')")
    old = spark.read.format("delta").option("versionAsOf", 0).load(str(place))
    latest = spark.read.format("delta").load(str(place))
    return {"old": timed(lambda: fingerprint(old)), "latest": timed(lambda: fingerprint(latest))}
