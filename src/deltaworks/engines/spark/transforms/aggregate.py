"""Figures over rows, and whether a function fits the type of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.contracts.aggregation import Aggregation
from deltaworks.engines.spark.frames.columns import column, require_place
from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_OF_NUMBERS = {"sum", "avg", "median", "stddev", "variance"}
_OF_INTERVALS = {"sum", "avg", "median"}
_OF_ORDER = {"min", "max"}


def figure(frame: DataFrame, wanted: Aggregation, *, where: str) -> Column:
    """The column that computes one figure of a group, under its name."""
    from pyspark.sql import functions as F

    if not wanted.column:
        return F.count(F.lit(1)).alias(wanted.result_name())
    require_fit(frame, wanted.function, wanted.column, where=where)
    result: Column = getattr(F, wanted.function)(column(frame, wanted.column))
    return result.alias(wanted.result_name())


def require_fit(frame: DataFrame, function: str, name: str, *, where: str) -> None:
    """Refuse a function that makes no sense of a column, such as the sum of a text."""
    kind = require_place(frame, name, where=where).kind
    if function in _OF_NUMBERS and not _has_sum(function, kind):
        raise SpecError(
            f'{where}: "{function}" needs numbers, and column "{name}" is {kind.simpleString()}',
            hint=f"give it a type first: {{type: cast, columns: {{{name}: double}}}}",
            context={"column": name},
        )
    if function in _OF_ORDER and _has_no_order(kind):
        raise SpecError(
            f'{where}: "{function}" needs values that have an order, '
            f'and column "{name}" is {kind.simpleString()}',
            hint="choose another column or function",
            context={"column": name},
        )


def _has_sum(function: str, kind: DataType) -> bool:
    from pyspark.sql.types import (
        DayTimeIntervalType,
        NullType,
        NumericType,
        YearMonthIntervalType,
    )

    if isinstance(kind, DayTimeIntervalType | YearMonthIntervalType):
        return function in _OF_INTERVALS
    return isinstance(kind, NumericType | NullType)


def _has_no_order(kind: DataType) -> bool:
    """Maps and variants, and whatever holds one, cannot be compared."""
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if isinstance(kind, StructType):
        return any(_has_no_order(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_no_order(kind.elementType)
    return isinstance(kind, MapType | VariantType)
