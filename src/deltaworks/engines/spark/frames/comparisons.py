"""Values of a pipeline file beside values of a column: of one kind, or refused."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from deltaworks.clock import parse_timestamp
from deltaworks.engines.spark.frames.columns import column
from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def column_type(frame: DataFrame, name: str) -> DataType:
    """The type of a column, or of a field in one."""
    return frame.select(column(frame, name)).schema.fields[0].dataType


def comparable(frame: DataFrame, name: str, value: str | float, *, where: str) -> Column:
    """A value as it can be compared with a column; neither is bent to fit the other."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    kind = column_type(frame, name)
    if isinstance(value, bool):
        fits = isinstance(kind, T.BooleanType)
    elif isinstance(value, int | float):
        fits = isinstance(kind, T.NumericType)
    else:
        if isinstance(kind, T.DateType | T.TimestampType | T.TimestampNTZType):
            return F.lit(_moment(value, kind, name, where)).cast(kind)
        fits = isinstance(kind, T.StringType)
    if fits:
        return F.lit(value)
    shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
    raise SpecError(
        f'{where} compares column "{name}" ({kind.simpleString()}) with {shown}',
        hint="give both one type: cast the column in a step before, or write the value otherwise",
        context={"column": name},
    )


def _moment(text: str, kind: DataType, name: str, where: str) -> str:
    """A date or timestamp as Spark's cast takes it."""
    from pyspark.sql import types as T

    try:
        if isinstance(kind, T.DateType):
            return date.fromisoformat(text).isoformat()
        moment = parse_timestamp(text)
    except ValueError as problem:
        raise SpecError(
            f'{where} compares column "{name}" ({kind.simpleString()}) with "{text}"',
            hint="write a date as 2026-01-31 and a timestamp as 2026-01-31T12:00:00Z",
            context={"column": name},
        ) from problem
    return moment.replace(tzinfo=None).isoformat(sep=" ") if _is_plain(kind) else moment.isoformat()


def _is_plain(kind: DataType) -> bool:
    from pyspark.sql.types import TimestampNTZType

    return isinstance(kind, TimestampNTZType)
