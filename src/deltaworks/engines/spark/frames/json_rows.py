"""Rows as plain values: what JSON can say, with times and decimals as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deltaworks.engines.spark.frames.columns import EXACT_TIMES, column, quoted
from deltaworks.engines.spark.frames.rejects import row_json
from deltaworks.engines.spark.frames.temp_views import aside
from deltaworks.model.commit import Shown
from deltaworks.suggest import INTERNAL

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType


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


def frame_of(
    spark: SparkSession, rows: Sequence[Mapping[str, Any]], columns: StructType, *, strict: bool
) -> DataFrame:
    """Plain rows with the given types; a value that is none is NULL, or an error if strict."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, StringType, StructField, StructType

    names = columns.fieldNames()
    text = json.dumps([{name: _text(row.get(name)) for name in names} for row in rows])
    as_text = StructType([StructField(name, StringType()) for name in names])
    lines = spark.range(1).select(F.inline(F.from_json(F.lit(text), ArrayType(as_text))))
    return lines.select(
        *[
            _typed(F.col(quoted(field.name)), field.dataType, strict=strict).alias(field.name)
            for field in columns.fields
        ]
    )


def _text(value: Any) -> str | None:
    if isinstance(value, dict | list | bool):
        return json.dumps(value)
    return None if value is None else str(value)


def _typed(text: Column, kind: DataType, *, strict: bool) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, BinaryType, MapType, NullType, StructType

    if isinstance(kind, StructType | ArrayType | MapType):
        return F.from_json(text, kind.json())
    if isinstance(kind, BinaryType):
        return F.unbase64(text)
    if isinstance(kind, NullType):
        return F.lit(None)
    return text.cast(kind) if strict else text.try_cast(kind)


def guessed_columns(spark: SparkSession, rows: Sequence[Mapping[str, Any]]) -> StructType:
    """Columns for rows that nobody has declared: whole numbers, numbers, booleans or text."""
    from pyspark.sql.types import StructField, StructType

    names = dict.fromkeys(name for row in rows for name in row)
    return StructType(
        [StructField(name, _guessed(spark, [row.get(name) for row in rows])) for name in names]
    )


def _guessed(spark: SparkSession, values: Sequence[Any]) -> DataType:
    from pyspark.sql import functions as F
    from pyspark.sql.types import (
        ArrayType,
        BooleanType,
        DataType,
        DoubleType,
        LongType,
        StringType,
    )

    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return BooleanType()
    if known and all(isinstance(value, int) for value in known):
        return LongType()
    if known and all(isinstance(value, int | float) for value in known):
        return DoubleType()
    if known and all(isinstance(value, dict | list) for value in known):
        shape = F.schema_of_json(F.lit(json.dumps(known)))
        found = DataType.fromDDL(str(spark.range(1).select(shape).collect()[0][0]))
        assert isinstance(found, ArrayType)
        return found.elementType
    return StringType()


MAX_SAMPLES = 3
_MAX_CELL = 120


def sample_rows(frame: DataFrame, *, most: int = MAX_SAMPLES) -> tuple[str, ...]:
    """The first rows of a frame, each as JSON."""
    ours = [name for name in frame.columns if name.startswith(INTERNAL)]
    shown = frame.drop(*[column(frame, name) for name in ours])
    return tuple(str(row[0]) for row in shown.limit(most).select(row_json(shown)).collect())


def first_rows(frame: DataFrame, columns: Sequence[str], *, most: int) -> Shown:
    """The first rows of a frame as text; its row counters do not notice."""
    with aside(frame) as rows:
        cells = [column(rows, name).cast("string") for name in columns]
        found = rows.limit(most).select(*cells).collect()
    return Shown(tuple(columns), tuple(tuple(_cell(value) for value in row) for row in found))


def _cell(value: str | None) -> str:
    if value is None:
        return "NULL"
    line = value.replace("\n", "\\n")
    return line if len(line) <= _MAX_CELL else f"{line[: _MAX_CELL - 3]}..."
