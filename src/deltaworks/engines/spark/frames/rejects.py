"""Rows a stage refuses: marked in the frame, then split off, never lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deltaworks.contracts.plugin import REJECTED
from deltaworks.engines.spark.frames.columns import EXACT_TIMES, column, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def row_json(frame: DataFrame) -> Column:
    """The row as JSON, NULL fields included."""
    from pyspark.sql import functions as F

    columns = [F.col(quoted(name)) for name in frame.columns if name != REJECTED]
    return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})


def rejection(
    condition: Column, frame: DataFrame, *, rule: str, reason: Column, raw: Column | None = None
) -> Column:
    """The mark of a refused row of a frame; NULL where the condition does not hold."""
    from pyspark.sql import functions as F

    return F.when(condition, F.struct(*refusal(frame, rule=rule, reason=reason, raw=raw)))


def refusal(
    frame: DataFrame, *, rule: str, reason: Column, raw: Column | None = None
) -> list[Column]:
    """What is kept of a refused row: why, the row exactly, its columns, and its raw text."""
    from pyspark.sql import functions as F

    names = [name for name in frame.columns if name != REJECTED]
    columns = [F.col(quoted(name)) for name in names]
    row = F.to_json(F.struct(*columns), {"ignoreNullFields": "false", **EXACT_TIMES})
    return [
        F.lit(rule).alias("rule"),
        reason.alias("reason"),
        row.alias("row"),
        F.lit(frame.select(*columns).schema.json()).alias("columns"),
        (F.lit(None).cast("string") if raw is None else raw).alias("raw"),
    ]


def failure(frame: DataFrame, check: str, columns: Sequence[str]) -> Column:
    """Why a check refused a row: its kind, and the values of the columns that it names."""
    from pyspark.sql import functions as F

    said = F.lit(f"check {check} failed")
    if not columns:
        return said
    values = [
        F.concat(F.lit(f"{name} = "), F.coalesce(column(frame, name).cast("string"), F.lit("NULL")))
        for name in columns
    ]
    return F.concat(said, F.lit(": "), F.concat_ws(", ", *values))


def is_marked(frame: DataFrame) -> bool:
    """Whether the stage that made this frame may have refused rows."""
    return REJECTED in frame.columns


def unmarked(frame: DataFrame) -> DataFrame:
    """The same columns without the mark, for whoever asks only about columns."""
    return frame.drop(REJECTED)


def accepted(frame: DataFrame) -> DataFrame:
    """The rows that were not refused, without the mark."""
    from pyspark.sql import functions as F

    return frame.filter(F.col(REJECTED).isNull()).drop(REJECTED)


def refused(frame: DataFrame) -> DataFrame:
    """The refused rows, as what is kept of them."""
    from pyspark.sql import functions as F

    return frame.filter(F.col(REJECTED).isNotNull()).select(f"{REJECTED}.*")
