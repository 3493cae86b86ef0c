"""Columns and nested fields under new values or names, everything around them as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from deltaworks.engines.spark.frames.columns import (
    Place,
    column_names,
    find_place,
    missing_column,
    quoted,
)
from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

Change = Callable[["Column"], "Column"]


def require_single(frame: DataFrame, name: str, *, where: str) -> Place:
    """Where a column or field lies that has one value in each row, so that it can be set."""
    found = find_place(frame.schema, name)
    if found is None:
        raise missing_column(name, column_names(frame.schema), where=where)
    if not found.is_plain:
        raise _many(name, found, where=where)
    return found


def _many(name: str, place: Place, *, where: str) -> SpecError:
    return SpecError(
        f'{where} names "{name}", which lies inside an array or a map',
        hint=f"make rows of it first: {{type: explode, column: {place.path[0]}}}",
        context={"column": name},
    )


def changed(frame: DataFrame, changes: Sequence[tuple[Place, Change]]) -> DataFrame:
    """The frame with values changed in place; several changes may concern one struct."""
    from pyspark.sql import functions as F

    tops: dict[str, Column] = {}
    for place, change in changes:
        top = place.path[0]
        before = tops.get(top, F.col(quoted(top)))
        tops[top] = _set(before, place.path[1:], change)
    return frame.withColumns(tops)


def _set(value: Column, path: tuple[str, ...], change: Change) -> Column:
    if not path:
        return change(value)
    return value.withField(quoted(path[0]), _set(value.getField(path[0]), path[1:], change))


def with_value(frame: DataFrame, name: str, value: Column) -> DataFrame:
    """The frame with a column set or added; `address.city` is a field where `address` is a struct.

    A struct that is NULL stays NULL.
    """
    from pyspark.sql.types import ArrayType, StructType

    found = find_place(frame.schema, name)
    if found is None:
        before, dot, last = name.rpartition(".")
        parent = find_place(frame.schema, before) if dot else None
        if parent is None or not isinstance(parent.kind, StructType | ArrayType):
            return frame.withColumn(name, value)
        is_plain = parent.is_plain and isinstance(parent.kind, StructType)
        found = Place(path=(*parent.path, last), kind=parent.kind, is_plain=is_plain)
    if not found.is_plain:
        raise _many(name, found, where="derive")
    return changed(frame, [(found, lambda _: value)])


def renamed(frame: DataFrame, names: Mapping[tuple[str, ...], str]) -> DataFrame:
    """The frame with columns and fields, given by their paths, under new names."""
    from pyspark.sql import functions as F

    columns = []
    for field in frame.schema.fields:
        inside = _below(names, field.name)
        value = F.col(quoted(field.name))
        if inside:
            value = value.cast(_renamed_type(field.dataType, inside))
        columns.append(value.alias(names.get((field.name,), field.name)))
    return frame.select(*columns)


def _below(names: Mapping[tuple[str, ...], str], field: str) -> dict[tuple[str, ...], str]:
    """New names of what lies inside a field, by their paths from there."""
    return {path[1:]: new for path, new in names.items() if path[0] == field and path[1:]}


def _renamed_type(kind: DataType, names: Mapping[tuple[str, ...], str]) -> DataType:
    """The type under new names; Spark casts structs field by field, in order."""
    from pyspark.sql.types import ArrayType, StructField, StructType

    if isinstance(kind, ArrayType):
        return ArrayType(_renamed_type(kind.elementType, names), kind.containsNull)
    assert isinstance(kind, StructType)
    fields = []
    for field in kind.fields:
        inside = _below(names, field.name)
        inner = _renamed_type(field.dataType, inside) if inside else field.dataType
        name = names.get((field.name,), field.name)
        fields.append(StructField(name, inner, field.nullable))
    return StructType(fields)


def without(frame: DataFrame, name: str, *, where: str) -> DataFrame:
    """The frame without a column or a nested field."""
    from pyspark.sql import functions as F

    place = require_single(frame, name, where=where)
    if not place.is_nested:
        return frame.drop(F.col(quoted(place.path[0])))
    above = Place(path=place.path[:-1], kind=struct_at(frame.schema, place.path[:-1]))
    if len(struct_at(frame.schema, above.path).fields) == 1:
        named = ".".join(above.path)
        raise SpecError(f'{where} leaves nothing of "{named}"', hint=f'leave out "{named}" itself')
    last = quoted(place.path[-1])
    return changed(frame, [(above, lambda value: value.dropFields(last))])


def struct_at(schema: StructType, path: tuple[str, ...]) -> StructType:
    """The struct that lies at a path, or the one that an array there holds."""
    from pyspark.sql.types import ArrayType, StructType

    found = schema
    for part in path:
        kind = found[part].dataType
        inner = kind.elementType if isinstance(kind, ArrayType) else kind
        if not isinstance(inner, StructType):
            named = ".".join(path)
            raise SpecError(
                f'"{named}" is {kind.simpleString()}, whose keys have no names to change',
                hint=f"make rows of it first: {{type: explode, column: {path[0]}}}",
            )
        found = inner
    return found
