"""Decimals of CSV files, read as text first: Spark's reader rounds them and says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from deltaworks.engines.spark.errors.row_notes import stop
from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.engines.spark.frames.exact_casts import lossy, unlike
from deltaworks.engines.spark.read.text import SET_ASIDE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

_KEEPS_BLANKS = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}


def decimals(columns: StructType) -> list[StructField]:
    """The columns that are decimals."""
    from pyspark.sql.types import DecimalType

    return [field for field in columns.fields if isinstance(field.dataType, DecimalType)]


def as_text(columns: StructType, own: StructType) -> StructType:
    """The columns, with those decimals as text that the files have themselves."""
    from pyspark.sql.types import StringType, StructField, StructType

    texts = decimals(own)
    return StructType(
        [
            StructField(field.name, StringType()) if field in texts else field
            for field in columns.fields
        ]
    )


def strict_decimals(frame: DataFrame, columns: StructType) -> DataFrame:
    """The frame with its decimals read; a text that is none, or would be rounded, stops the run."""
    from pyspark.sql import functions as F

    found = {}
    for field in decimals(columns):
        text, read, loses = _read(field)
        named = F.lit(field.dataType.simpleString())
        said = F.when(read.isNull(), named).otherwise(unlike(without_commas(text), *_kinds(field)))
        message = F.concat(F.lit("the value "), text, F.lit(" is not "), said)
        halt = stop(kind="value", step="", message=message, hint=SET_ASIDE, about=(text, said))
        found[field.name] = F.when(loses, halt).otherwise(read)
    return frame.withColumns(found) if found else frame


def lenient_decimals(
    frame: DataFrame, columns: StructType, *, corrupt: str, options: Mapping[str, str]
) -> DataFrame:
    """The frame with its decimals read; a row with a text that does not fit is corrupt.

    Its text is rewritten, because Spark keeps that of rows only that it cannot read itself.
    """
    from pyspark.sql import functions as F

    fields = decimals(columns)
    if not fields:
        return frame
    wrong = reduce(lambda left, right: left | right, [_read(field)[2] for field in fields])
    cells = F.struct(*[F.col(quoted(name)) for name in columns.fieldNames()])
    row = F.to_csv(cells, {**options, **_KEEPS_BLANKS})
    told = F.coalesce(F.col(corrupt), F.when(wrong, row))
    good = {field.name: F.when(~_read(field)[2], _read(field)[1]) for field in fields}
    return frame.withColumn(corrupt, told).withColumns(good)


def _read(field: StructField) -> tuple[Column, Column, Column]:
    """The text of a cell, the decimal it is, and whether it is none or another one."""
    from pyspark.sql import functions as F

    text = F.col(quoted(field.name))
    read = without_commas(text).try_cast(field.dataType)
    loses = lossy(without_commas(text), *_kinds(field))
    assert loses is not None
    none = text.isNotNull() & (read.isNull() | text.rlike(r"^\s|\s$"))
    return text, read, F.coalesce(none | loses, none)


def _kinds(field: StructField) -> tuple[DataType, DataType]:
    from pyspark.sql.types import StringType

    return StringType(), field.dataType


def without_commas(text: Column) -> Column:
    """A number without the commas between its thousands, which Spark's reader takes too."""
    from pyspark.sql import functions as F

    return F.replace(text, F.lit(","), F.lit(""))
