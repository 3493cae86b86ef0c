"""Rows of a batch that would overwrite what was written to a table since one of its versions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from deltaworks.engines.spark.columns import column
from deltaworks.engines.spark.engine import SparkEngine
from deltaworks.engines.spark.lookup import same_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEY, _ROW, _NEWEST = "__deltaworks_key_", "__deltaworks_row", "__deltaworks_newest"


def later_rows(
    spark: SparkSession,
    location: str,
    frame: DataFrame,
    keys: Sequence[str],
    *,
    since: int | None,
    by: str = "",
) -> tuple[DataFrame, DataFrame]:
    """The rows of a frame that overwrite nothing newer, and those that would.

    A row of the table is newer when it was not the same at the version `since`; without one every
    row is. Where a column `by` says which row is newer, it decides.
    """
    from pyspark.sql import functions as F

    now = _told(same_keys(SparkEngine(spark).read(location), frame, keys), keys, by)
    if since is not None:
        then = SparkEngine(spark).read(location, version=since)
        before = _told(same_keys(then, frame, keys), keys, "").alias("before")
        names = [*(f"{_KEY}{i}" for i in range(len(keys))), _ROW]
        same = [F.col(f"now.{name}") == F.col(f"before.{name}") for name in names]
        now = now.alias("now").join(before, same, "left_anti")
    mine = [column(frame, key) == F.col(f"{_KEY}{i}") for i, key in enumerate(keys)]
    if by:
        is_newer = F.coalesce(column(frame, by) >= F.col(_NEWEST), F.expr("false"))
        mine.append(~is_newer)
    newer = reduce(lambda left, right: left & right, mine)
    return frame.join(now, newer, "left_anti"), frame.join(now, newer, "left_semi")


def _told(rows: DataFrame, keys: Sequence[str], by: str) -> DataFrame:
    """The keys of rows, all that they hold as one text, and what says how new they are."""
    from pyspark.sql import functions as F

    named = [column(rows, key).alias(f"{_KEY}{i}") for i, key in enumerate(keys)]
    newest = [column(rows, by).alias(_NEWEST)] if by else []
    return rows.select(*named, F.to_json(F.struct("*")).alias(_ROW), *newest)
