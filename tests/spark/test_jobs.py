"""Tasks of a session are waited for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from deltaworks.engines.spark.session.jobs import (
    await_tasks,
    running_tasks,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_tasks_are_waited_for_and_not_for_ever(spark: SparkSession) -> None:
    from pyspark import InheritableThread

    thread = InheritableThread(
        target=lambda: spark.sparkContext.parallelize([1], 1).foreach(lambda _: time.sleep(1.5))
    )
    thread.start()
    while not running_tasks(spark):
        time.sleep(0.02)
    await_tasks(spark, max_wait_s=0.1)
    assert running_tasks(spark) == 1
    await_tasks(spark)
    assert running_tasks(spark) == 0
    thread.join()
