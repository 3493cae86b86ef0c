"""Rows as plain values: what JSON can say, with times and decimals as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltaworks.engines.spark.columns import EXACT_TIMES, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def plain_rows(frame: DataFrame, *, limit: int | None = None) -> list[dict[str, Any]]:
    """The rows, or the first of them, each by column."""
    from pyspark.sql import functions as F

    columns = [_plain(field.name, field.dataType) for field in frame.schema.fields]
    options = {"ignoreNullFields": "false", **EXACT_TIMES}
    texts = frame.select(F.to_json(F.struct(*columns), options).alias("row"))
    found = texts if limit is None else texts.limit(limit)
    return [json.loads(row[0]) for row in found.collect()]


def _plain(name: str, kind: DataType) -> Column:
    """A column as JSON keeps it exactly; a timestamp in UTC, a decimal with all its digits."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import DecimalType, NullType

    column = F.col(quoted(name))
    if isinstance(kind, DecimalType | NullType):
        return column.cast("string").alias(name)
    return column.alias(name)
