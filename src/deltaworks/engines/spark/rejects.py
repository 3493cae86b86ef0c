"""Rows a stage refuses: marked in the frame, then split off, never lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.contracts.plugin import REJECTED
from deltaworks.engines.spark.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def row_json(frame: DataFrame) -> Column:
    """The row as JSON, NULL fields included."""
    from pyspark.sql import functions as F

    columns = [F.col(quoted(name)) for name in frame.columns if name != REJECTED]
    return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})


def rejection(
    condition: Column, *, rule: Column | str, reason: Column | str, row: Column, raw: Column
) -> Column:
    """The mark of a refused row; NULL where the condition does not hold."""
    from pyspark.sql import functions as F

    def text(value: Column | str) -> Column:
        return F.lit(value) if isinstance(value, str) else value

    mark = F.struct(
        text(rule).alias("rule"), text(reason).alias("reason"), row.alias("row"), raw.alias("raw")
    )
    return F.when(condition, mark)


def is_marked(frame: DataFrame) -> bool:
    """Whether the stage that made this frame may have refused rows."""
    return REJECTED in frame.columns


def accepted(frame: DataFrame) -> DataFrame:
    """The rows that were not refused, without the mark."""
    from pyspark.sql import functions as F

    return frame.filter(F.col(REJECTED).isNull()).drop(REJECTED)


def refused(frame: DataFrame) -> DataFrame:
    """The refused rows: rule, reason, row as JSON, raw text."""
    from pyspark.sql import functions as F

    return frame.filter(F.col(REJECTED).isNotNull()).select(f"{REJECTED}.*")
