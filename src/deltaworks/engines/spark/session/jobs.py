"""The Spark jobs of one run: marked by the thread that starts them, cancelled from any other."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from deltaworks.engines.spark.session.connect import has_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def mark_jobs(spark: SparkSession, tag: str) -> None:
    """From now on every job that this thread starts, in whatever session, has the tag."""
    if not has_jvm(spark):
        spark.addTag(tag)
        return
    spark.sparkContext.addJobTag(tag)


def unmark_jobs(spark: SparkSession, tag: str) -> None:
    """Jobs that this thread starts later have the tag no more."""
    from py4j.protocol import Py4JError

    if not has_jvm(spark):
        spark.removeTag(tag)
        return
    with suppress(Py4JError, OSError):  # after Ctrl-C, or when Spark is gone, nobody needs it
        spark.sparkContext.removeJobTag(tag)


def cancel_jobs(spark: SparkSession, tag: str) -> None:
    """Cancel the jobs with a tag, and leave all others alone."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not has_jvm(spark):
        with suppress(PySparkException, ValueError):  # a session that has ended has no jobs
            spark.interruptTag(tag)
        return
    with suppress(Py4JError, OSError):  # the caller tries again
        spark.sparkContext.cancelJobsWithTag(tag)


def rows_so_far(spark: SparkSession) -> int:
    """Rows read by the stages at work now; over Connect nobody tells."""
    if not has_jvm(spark):
        return 0
    stages = spark.sparkContext._jsc.sc().statusStore().activeStages()
    return sum(int(stages.apply(i).inputRecords()) for i in range(stages.size()))
