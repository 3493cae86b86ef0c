"""Row counts taken while the rows pass, so that no pass is made for them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import uuid4

from deltaworks.engines.spark.lost_jvm import letting_go

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

_LONGEST_WAIT_S = 3.0


class RowCounter:
    """Counts the rows of one frame; asked after the rows have passed."""

    def __init__(self) -> None:
        self._observation: Observation | None = None
        self._value: int | None = None

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

    def _completed(self) -> bool:
        """Wait with a limit: Spark's own `get` waits for ever for a step it left out."""
        java = getattr(self._observation, "_jo", None)
        if java is None:  # over Connect counts come with the answer, or never
            return bool(getattr(self._observation, "_result", None))
        end = time.monotonic() + _LONGEST_WAIT_S
        while not java.future().isCompleted():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True


def _counted(observation: Observation) -> int | None:
    from py4j.protocol import Py4JJavaError

    try:
        return int(observation.get["rows"])
    except Py4JJavaError:  # Spark saw that no row can come, and left the step out
        return None
