"""How far Spark's running work has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows_so_far(spark: SparkSession) -> int:
    """Rows read by the stages at work now."""
    stages = spark.sparkContext._jsc.sc().statusStore().activeStages()
    return sum(int(stages.apply(i).inputRecords()) for i in range(stages.size()))
