"""Inner joins that count the rows for which the other side has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from deltaworks.engines.spark.frames.sizing import SMALL_BYTES, estimated_bytes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MATCHED = "__deltaworks_matched"


def inner_join(
    frame: DataFrame,
    other: DataFrame,
    on: Sequence[str],
    watch: Callable[[DataFrame, Column], DataFrame],
) -> DataFrame:
    """The matches; rows of the frame that have none are watched as they leave, where that is cheap.

    The rows pass once: an outer join marks those without a match, and they leave after they were
    counted. Spark can send the small side of an inner join to the large one, and of an outer join
    only the other side, so a few rows that look into a large table are not counted.
    """
    from pyspark.sql import functions as F

    if estimated_bytes(other) > SMALL_BYTES and estimated_bytes(frame) <= SMALL_BYTES:
        return frame.join(other, on=list(on), how="inner")
    marked = other.withColumn(_MATCHED, F.lit(1))
    joined = watch(frame.join(marked, on=list(on), how="left"), F.col(_MATCHED).isNull())
    return joined.filter(F.col(_MATCHED).isNotNull()).drop(_MATCHED)
