"""How far Spark's running work has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.engines.spark.session.connect import has_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows_so_far(spark: SparkSession) -> int:
    """Rows read by the stages at work now; over Connect nobody tells."""
    if not has_jvm(spark):
        return 0
    stages = spark.sparkContext._jsc.sc().statusStore().activeStages()
    return sum(int(stages.apply(i).inputRecords()) for i in range(stages.size()))
