"""Arrow schemas as Delta has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaworks.errors import SchemaMismatch
from deltaworks.model.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import Schema as DeltaSchema


def delta_schema(schema: pa.Schema) -> Schema:
    """The schema that rows have once they are in a table; an error names what Delta lacks."""
    return Schema.from_json(as_delta(schema).to_json())


def as_delta(schema: pa.Schema) -> DeltaSchema:
    """The same as delta-rs has it."""
    import pyarrow as pa
    from deltalake import Schema as DeltaSchema

    fields = [_kept_field(field) for field in schema]
    for field in fields:
        if not _is_known(field.type):
            raise SchemaMismatch(
                f'Delta has no type for "{field.name}", which is {field.type}',
                hint="cast the column",
                context={"fields": [field.name]},
            )
    refuse_twins(schema)
    return DeltaSchema.from_arrow(pa.schema(fields))


def refuse_nameless_types(columns: pa.Schema) -> None:
    """Refuse new columns of no type: who brings values for one later would not fit it."""
    for field in columns:
        if _is_open(field.type):
            raise SchemaMismatch(
                f'new column "{field.name}" has no type: {field.type}',
                hint="cast the column, or leave it out until it has values",
                context={"fields": [field.name]},
            )


def _is_open(kind: pa.DataType) -> bool:
    """Whether a type, or one within it, says nothing: of NULL alone, or without fields."""
    import pyarrow.types as kinds

    inner = [kind.field(n).type for n in range(kind.num_fields)]
    is_empty = bool(kinds.is_struct(kind)) and not inner
    return is_empty or bool(kinds.is_null(kind)) or any(map(_is_open, inner))


def refuse_twins(fields: Iterable[pa.Field], above: str = "") -> None:
    """Refuse two fields that only case tells apart: to Delta they are one."""
    seen: set[str] = set()
    for field in fields:
        path = f"{above}{field.name}"
        if field.name.lower() in seen:
            raise SchemaMismatch(
                f'"{path}" is there twice: upper and lower case make no difference',
                hint="leave one of them out, or rename it",
                context={"fields": [path]},
            )
        seen.add(field.name.lower())
        refuse_twins((field.type.field(n) for n in range(field.type.num_fields)), f"{path}.")


def _kept_as(kind: pa.DataType) -> pa.DataType:
    """What a type becomes: timestamps have microseconds, and repeated values are just values."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    if kinds.is_dictionary(kind):
        return _kept_as(kind.value_type)
    if kinds.is_struct(kind):
        return pa.struct([_kept_field(field) for field in kind])
    if kinds.is_map(kind):
        return pa.map_(_kept_as(kind.key_type), _kept_field(kind.item_field))
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return pa.list_(_kept_field(kind.value_field))
    return kind


def _kept_field(field: pa.Field) -> pa.Field:
    return field.with_type(_kept_as(field.type))


def _is_known(kind: pa.DataType) -> bool:
    import pyarrow.types as kinds

    if kinds.is_struct(kind):
        return all(_is_known(field.type) for field in kind)
    if kinds.is_decimal128(kind):
        return bool(0 <= kind.scale <= kind.precision)
    if kinds.is_map(kind):
        return _is_known(kind.key_type) and _is_known(kind.item_type)
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return _is_known(kind.value_type)
    simple = (
        kinds.is_boolean,
        kinds.is_signed_integer,
        kinds.is_float32,
        kinds.is_float64,
        kinds.is_string,
        kinds.is_large_string,
        kinds.is_string_view,
        kinds.is_binary,
        kinds.is_large_binary,
        kinds.is_date32,
        kinds.is_timestamp,
        kinds.is_null,
    )
    return any(is_kind(kind) for is_kind in simple)


def nullable(schema: pa.Schema) -> pa.Schema:
    """The schema without promises about NULL, within columns too: Arrow casts to those at will."""
    import pyarrow as pa

    return pa.schema([_nullable_field(field) for field in schema])


def _nullable_field(field: pa.Field) -> pa.Field:
    return field.with_type(_nullable_type(field.type)).with_nullable(True)  # noqa: FBT003


def _nullable_type(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_struct(kind):
        return pa.struct([_nullable_field(field) for field in kind])
    if kinds.is_map(kind):
        return pa.map_(kind.key_type, _nullable_field(kind.item_field))
    if kinds.is_list(kind):
        return pa.list_(_nullable_field(kind.value_field))
    return kind


def as_promised(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows that hold no NULL where a schema has none, with its types: delta-rs casts no promise."""
    import pyarrow as pa

    columns, fields = [], []
    own = {field.name: field.type for field in schema}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        kind = own.get(field.name, field.type)
        chunks = [pa.array(_Retyped(c, kind)) for c in column.chunks if kind != field.type]
        columns.append(pa.chunked_array(chunks, kind) if kind != field.type else column)
        fields.append(field.with_type(kind))
    return pa.table(columns, schema=pa.schema(fields))


@dataclass(frozen=True)
class _Retyped:
    """The same memory under a type that differs in promises only."""

    array: pa.Array
    kind: pa.DataType

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.kind.__arrow_c_schema__(), self.array.__arrow_c_array__()[1]


def null_within(kind: pa.DataType, column: pa.ChunkedArray, path: str) -> Iterator[str]:
    """Fields within a column that hold NULL though the column's type forbids it there.

    What is in a NULL is not there, and so breaks no promise.
    """
    import pyarrow.compute as pc

    for field, inner in _parts(kind, column):
        if not field.nullable and pc.any(pc.is_null(inner)).as_py():
            yield f"{path}.{field.name}"
        yield from null_within(field.type, inner, f"{path}.{field.name}")


def _parts(
    kind: pa.DataType, column: pa.ChunkedArray
) -> Iterator[tuple[pa.Field, pa.ChunkedArray]]:
    """What is in a column that holds something of its own: fields, elements, keys and values."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    if not _promises(kind):
        return
    there = column.filter(pc.is_valid(column))
    if kinds.is_struct(kind):
        yield from zip(kind, there.flatten(), strict=True)
    elif kinds.is_map(kind):
        values = [chunk.items for chunk in there.chunks]
        yield kind.item_field, pa.chunked_array(values, kind.item_type)
    else:
        yield kind.value_field, pc.list_flatten(there)


def _promises(kind: pa.DataType) -> bool:
    """Whether something within a type may not be NULL."""
    import pyarrow.types as kinds

    if kinds.is_map(kind):
        fields = [kind.item_field]
    else:
        fields = [kind.field(n) for n in range(kind.num_fields)]
    return any(not field.nullable or _promises(field.type) for field in fields)


def arrow_table(answer: Any) -> pa.Table:
    """All rows of an answer; `pa.table` would do as well, and load pandas to look for frames."""
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(answer).read_all()
