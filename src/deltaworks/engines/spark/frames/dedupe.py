"""One row of several that are alike, chosen by a rule and never by chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from deltaworks.engines.spark.errors.row_notes import stop
from deltaworks.engines.spark.frames.columns import column, quoted
from deltaworks.engines.spark.frames.fingerprint import fingerprint

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_COUNT = "__deltaworks_count"
_ORDER = "__deltaworks_order"
_TIE = "__deltaworks_tie"


def distinct_rows(frame: DataFrame) -> DataFrame:
    """Every row once; unlike Spark's own `distinct` this compares maps too."""
    from pyspark.sql import functions as F

    columns = [F.col(quoted(name)) for name in frame.columns]
    return frame.groupBy(*columns).agg(F.count(F.lit(1)).alias(_COUNT)).drop(_COUNT)


def one_of_each(
    frame: DataFrame,
    keys: Sequence[str],
    *,
    keep: Literal["newest", "oldest"],
    by: str,
    step: str,
) -> DataFrame:
    """One row per key; the run stops where different rows have the same claim to the place."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_key = [column(frame, key) for key in keys]
    of_rank = [column(frame, by)] if by else []
    print_of_row = fingerprint(frame)
    order = [
        value.desc_nulls_last() if keep == "newest" else value.asc_nulls_last() for value in of_rank
    ]
    ranked = Window.partitionBy(*of_key).orderBy(*order, print_of_row)
    equals = Window.partitionBy(*of_key, *of_rank)
    tie = F.min(print_of_row).over(equals) != F.max(print_of_row).over(equals)
    first = frame.withColumns({_ORDER: F.row_number().over(ranked), _TIE: tie}).filter(
        F.col(_ORDER) == 1
    )
    fine = F.when(F.col(_TIE), _stopped(of_key, keys, by, step)).otherwise(F.lit(1) == F.lit(1))
    return first.filter(fine.cast("boolean")).drop(_ORDER, _TIE)


def _stopped(of_key: Sequence[Column], keys: Sequence[str], by: str, step: str) -> Column:
    from pyspark.sql import functions as F

    named = [value.alias(key) for value, key in zip(of_key, keys, strict=True)]
    shown = F.to_json(F.struct(*named), {"ignoreNullFields": "false"})
    same = f' have the same "{by}"' if by else " are in the batch"
    return stop(
        kind="keys",
        step=step,
        message=F.concat(F.lit("different rows with "), shown, F.lit(same)),
        hint=f'choose a column for "by" that tells them apart{"" if by else ", and `keep`"}',
    )
