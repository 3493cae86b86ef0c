"""What rows have that their table lacks: whole columns, and fields within columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def grown(table: pa.Schema, rows: pa.Schema) -> pa.Schema:
    """The columns that are new, and those with something new within; nobody needs to fill it."""
    import pyarrow as pa

    known = {field.name.lower(): field for field in table}
    found = []
    for field in rows:
        own = known.get(field.name.lower())
        if own is None:
            found.append(field.with_nullable(True))  # noqa: FBT003
        elif (kind := _with_more(own.type, field.type)) != own.type:
            found.append(own.with_type(kind))
    return pa.schema(found)


def _with_more(own: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type with the fields that another one has besides; what it has stays as it is."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_struct(own) and kinds.is_struct(other):
        inner = grown(pa.schema(list(own)), pa.schema(list(other)))
        new = {field.name: field for field in inner}
        kept = [new.pop(field.name, field) for field in own]
        return pa.struct([*kept, *new.values()])
    if kinds.is_map(own) and kinds.is_map(other):
        return pa.map_(own.key_type, _with_more(own.item_type, other.item_type))
    if kinds.is_list(own) and (kinds.is_list(other) or kinds.is_large_list(other)):
        return pa.list_(own.value_field.with_type(_with_more(own.value_type, other.value_type)))
    return own


def misspelt(own: pa.DataType, other: pa.DataType, path: str) -> Iterator[str]:
    """Fields within a column whose names differ from the table's in case: they would be lost."""
    import pyarrow.types as kinds

    if kinds.is_struct(own) and kinds.is_struct(other):
        known = {field.name.lower(): field for field in own}
        for field in other:
            mine = known.get(field.name.lower())
            if mine is None:
                continue
            if mine.name != field.name:
                yield f"{path}.{field.name}"
            yield from misspelt(mine.type, field.type, f"{path}.{field.name}")
    elif kinds.is_map(own) and kinds.is_map(other):
        yield from misspelt(own.item_type, other.item_type, f"{path}.value")
    elif kinds.is_list(own) and (kinds.is_list(other) or kinds.is_large_list(other)):
        yield from misspelt(own.value_type, other.value_type, f"{path}.element")
