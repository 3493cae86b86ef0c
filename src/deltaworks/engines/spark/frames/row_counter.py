"""Row counts taken while the rows pass, so that no pass is made for them."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING
from uuid import uuid4

from deltaworks.engines.spark.errors.lost_jvm import letting_go
from deltaworks.engines.spark.session.connect import has_jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

_MAX_WAIT_S = 3.0
_LIMIT = re.compile(r"^[\s:+|-]*(?:Global|Local)Limit\b|^[\s:+|-]*(?:Tail|Offset)\b", re.MULTILINE)


class RowCounter:
    """Counts the rows of one frame; asked after the rows have passed."""

    def __init__(self) -> None:
        self._observation: Observation | None = None
        self._value: int | None = None
        self._waited = False

    def watch(self, frame: DataFrame, *, where: Column | None = None) -> DataFrame:
        """The same frame, counted as it is read: every row, or those where something is true."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        self._observation = Observation(f"rows_{uuid4().hex}")
        counted = F.lit(1) if where is None else F.when(where, 1)
        return frame.observe(self._observation, F.count(counted).alias("rows"))

    def rows(self) -> int | None:
        """The count; None when nothing passed here, such as a step that was optimised away."""
        with letting_go():  # the rows are in, whether a JVM that died since had counted them or not
            if self._value is None and self._observation is not None and self._completed():
                self._value = _counted(self._observation)
        return self._value

    def has_counted(self) -> bool:
        """Whether rows have passed already, all of them or some."""
        java = getattr(self._observation, "_jo", None)
        answered = getattr(self._observation, "_result", None)  # over Connect, or never
        return bool(answered if java is None else java.future().isCompleted())

    def _completed(self) -> bool:
        """Wait once, with a limit: Spark's own `get` waits for ever for a step it left out."""
        waits = getattr(self._observation, "_jo", None) is not None and not self._waited
        end = time.monotonic() + (_MAX_WAIT_S if waits else 0)
        self._waited = True
        while not (completed := self.has_counted()) and time.monotonic() < end:
            time.sleep(0.01)
        return completed


def _counted(observation: Observation) -> int | None:
    from py4j.protocol import Py4JJavaError

    try:
        return int(observation.get["rows"])
    except Py4JJavaError:  # Spark saw that no row can come, and left the step out
        return None


def settle(spark: SparkSession) -> None:
    """Wait until Spark has told what it counted in the jobs that have ended."""
    if has_jvm(spark):  # over Connect counts come with the answer
        with letting_go():
            spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(int(_MAX_WAIT_S * 1000))


def may_stop_early(frame: DataFrame) -> bool:
    """Whether a frame may leave rows unread that come before it, as a LIMIT does."""
    return not has_jvm(frame.sparkSession) or bool(
        _LIMIT.search(str(frame._jdf.queryExecution().analyzed().toString()))
    )
