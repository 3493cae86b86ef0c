"""Rows of a batch that would overwrite what was written to a table since one of its versions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from deltaworks.engines.spark.delta.lookup import same_keys
from deltaworks.engines.spark.delta.tables import SparkEngine
from deltaworks.engines.spark.frames.columns import column, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_KEY, _ROW, _NEWEST = "__deltaworks_key_", "__deltaworks_row", "__deltaworks_newest"


def later_rows(
    spark: SparkSession,
    location: str,
    frame: DataFrame,
    keys: Sequence[str],
    *,
    since: int | None,
    by: str = "",
    apart: Sequence[str] = (),
    wants_key: bool = False,
) -> tuple[DataFrame, DataFrame]:
    """The rows of a frame that overwrite nothing newer, and those that would.

    A row of the table is newer when it was not the same at the version `since`, columns `apart`
    not counted; without a version every row is. So is one that was deleted since. Where a column
    `by` says which row is newer, it decides. With `wants_key` a row whose key is not in the table
    counts as one that would overwrite: its key may have come and gone.
    """
    now = _told(same_keys(SparkEngine(spark).read(location), frame, keys), keys, by, apart)
    newer = now
    if since is not None:
        then = SparkEngine(spark).read(location, version=since)
        before = _told(same_keys(then, frame, keys), keys, by, apart)
        newer = _without(now, before, len(keys), row=True)
        newer = newer.unionByName(_gone(_without(before, now, len(keys), row=False), by))
    overwrites = _overwrites(frame, keys, by)
    lands, held = frame.join(newer, overwrites, "left_anti"), frame.join(newer, overwrites, "semi")
    if not wants_key:
        return lands, held
    same = reduce(and_, _same_key(frame, keys))
    return lands.join(now, same, "semi"), held.unionByName(lands.join(now, same, "left_anti"))


def _without(rows: DataFrame, others: DataFrame, keys: int, *, row: bool) -> DataFrame:
    """The rows whose key, or key and content, is not in others."""
    from pyspark.sql import functions as F

    names = [*(f"{_KEY}{i}" for i in range(keys)), *([_ROW] if row else [])]
    same = [F.col(f"mine.{name}") == F.col(f"others.{name}") for name in names]
    return rows.alias("mine").join(others.alias("others"), same, "left_anti")


def _gone(rows: DataFrame, by: str) -> DataFrame:
    """Rows that were deleted: nothing is newer than that."""
    from pyspark.sql import functions as F

    return rows.withColumn(_NEWEST, F.lit(None)) if by else rows


def _same_key(frame: DataFrame, keys: Sequence[str]) -> list[Column]:
    from pyspark.sql import functions as F

    return [column(frame, key) == F.col(f"{_KEY}{i}") for i, key in enumerate(keys)]


def _overwrites(frame: DataFrame, keys: Sequence[str], by: str) -> Column:
    """Whether a row of the frame would overwrite one that is newer."""
    from pyspark.sql import functions as F

    same = reduce(and_, _same_key(frame, keys))
    if not by:
        return same
    return same & ~F.coalesce(column(frame, by) >= F.col(_NEWEST), F.expr("false"))


def _told(rows: DataFrame, keys: Sequence[str], by: str, apart: Sequence[str]) -> DataFrame:
    """The keys of rows, all that they hold as one text, and what says how new they are."""
    from pyspark.sql import functions as F

    named = [column(rows, key).alias(f"{_KEY}{i}") for i, key in enumerate(keys)]
    newest = [column(rows, by).alias(_NEWEST)] if by else []
    counts = [F.col(quoted(name)) for name in rows.columns if name.lower() not in apart]
    return rows.select(*named, F.to_json(F.struct(*counts)).alias(_ROW), *newest)
