"""Whether the rows of two frames can stand in one, without bending a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.errors import SpecError
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_BINARY = ("float", "double")
_MAX_DIGITS = 38


def require_union(frame: DataFrame, other: DataFrame, *, name: str, fill: bool) -> None:
    """Refuse a union whose columns differ; with `fill` a side may lack some."""
    if not fill:
        _require_same_names(frame.columns, other.columns, lacking=f'"{name}"')
        _require_same_names(other.columns, frame.columns, lacking="this input")
    mine = {field.name.lower(): field.dataType for field in frame.schema.fields}
    for field in other.schema.fields:
        kind = mine.get(field.name.lower())
        if kind is not None and not _together(kind, field.dataType, fill=fill):
            raise SpecError(
                f'union: column "{field.name}" is {kind.simpleString()} here and '
                f'{field.dataType.simpleString()} in "{name}"',
                hint="cast one of them first",
                context={"column": field.name},
            )


def _require_same_names(wanted: list[str], have: list[str], *, lacking: str) -> None:
    known = {name.lower() for name in have}
    missing = [name for name in wanted if name.lower() not in known]
    if missing:
        named = ", ".join(f'"{name}"' for name in missing[:5])
        extra = [name for name in have if name.lower() not in {each.lower() for each in wanted}]
        near = did_you_mean(missing[0], extra) if extra else ""
        raise SpecError(
            f"union: {lacking} has no column {named}",
            hint=f"{near + ' ' if near else ''}rename it, or say `missing_columns: fill`",
            context={"column": missing[0]},
        )


def _together(left: DataType, right: DataType, *, fill: bool) -> bool:
    """Whether values of both types fit one type exactly."""
    from pyspark.sql.types import ArrayType, DecimalType, MapType, NullType, StructType

    words = {left.simpleString(), right.simpleString()}
    if len(words) == 1 or isinstance(left, NullType) or isinstance(right, NullType):
        return True
    if isinstance(left, StructType) and isinstance(right, StructType):
        return fill and _fields_together(left, right)
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        return _together(left.elementType, right.elementType, fill=fill)
    if isinstance(left, MapType) and isinstance(right, MapType):
        return left.keyType == right.keyType and _together(
            left.valueType, right.valueType, fill=False
        )
    if isinstance(left, DecimalType) and isinstance(right, DecimalType):
        scale = max(left.scale, right.scale)
        whole = max(left.precision - left.scale, right.precision - right.scale)
        return whole + scale <= _MAX_DIGITS
    return words <= set(_WHOLE) or words <= set(_BINARY)


def _fields_together(left: StructType, right: StructType) -> bool:
    mine = {field.name.lower(): field.dataType for field in left.fields}
    return all(
        _together(mine[field.name.lower()], field.dataType, fill=True)
        for field in right.fields
        if field.name.lower() in mine
    )
