"""Items of arrays and entries of maps as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaworks.contracts.expression import expression_problem, is_bare_name
from deltaworks.engines.spark.frames.columns import (
    column,
    column_names,
    find_place,
    missing_column,
    quoted,
)
from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_POSITION = "__deltaworks_position"


@dataclass(frozen=True, kw_only=True)
class Items:
    """An array or a map: its value, its type, and the columns its parts become."""

    value: Column
    kind: DataType
    names: tuple[str, ...]
    replaces: str
    """The column whose place the items take; empty for a nested field or an expression."""


def items_of(frame: DataFrame, name: str, alias: str) -> Items:
    """What a step explodes: a column, a nested field or an expression."""
    from pyspark.sql.types import ArrayType, MapType

    value = _value(frame, name)
    kind = frame.select(value).schema.fields[0].dataType
    if not isinstance(kind, ArrayType | MapType):
        raise SpecError(
            f'explode: "{name}" is {kind.simpleString()}, neither an array nor a map',
            hint="split text first: `column: split(tags, ',')`"
            if kind.simpleString() == "string"
            else "choose another column",
            context={"column": name},
        )
    place = find_place(frame.schema, name)
    own = place.path[-1] if place else ""
    item = alias or own
    if not item:
        raise SpecError('explode: an expression needs an "alias"', hint="alias: item")
    return Items(
        value=value,
        kind=kind,
        names=(f"{item}_key", f"{item}_value") if isinstance(kind, MapType) else (item,),
        replaces=own if place and not place.is_nested else "",
    )


def _value(frame: DataFrame, name: str) -> Column:
    from pyspark.sql import functions as F

    if find_place(frame.schema, name):
        return column(frame, name)
    if is_bare_name(name):
        raise missing_column(name, column_names(frame.schema), where="explode")
    if problem := expression_problem(name):
        raise SpecError(f"explode: {problem}")
    return F.expr(name)


def has_no_items(items: Items) -> Column:
    """Whether a row has nothing to explode: NULL, or an empty array or map."""
    from pyspark.sql import functions as F

    return items.value.isNull() | (F.coalesce(F.size(items.value), F.lit(0)) <= 0)


def exploded(frame: DataFrame, items: Items, *, outer: bool, position: str) -> DataFrame:
    """One row per item; the items stand where their column stood, or at the end."""
    from pyspark.sql import functions as F

    generator = F.posexplode_outer if outer else F.posexplode
    parts = [f"{_POSITION}_{i}" for i in range(len(items.names))]
    found = generator(items.value).alias(_POSITION, *parts)
    made = [F.col(part).alias(name) for part, name in zip(parts, items.names, strict=True)]
    if position:
        made.insert(0, F.col(_POSITION).alias(position))
    columns: list[Column] = []
    for name in frame.columns:
        columns.extend(made if name == items.replaces else [F.col(quoted(name))])
    if not items.replaces:
        columns.extend(made)
    return frame.select("*", found).select(*columns)
