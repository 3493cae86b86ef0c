"""Arrow schemas as Delta has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    fields = [field.with_type(_kept_as(field.type)) for field in schema]
    for field in fields:
        if not _is_known(field.type):
            raise SchemaMismatch(
                f'Delta has no type for "{field.name}", which is {field.type}',
                hint="cast the column",
                context={"fields": [field.name]},
            )
    return DeltaSchema.from_arrow(pa.schema(fields))


def _kept_as(kind: pa.DataType) -> pa.DataType:
    """What a type becomes: moments have microseconds, and repeated values are just values."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    return kind.value_type if kinds.is_dictionary(kind) else kind


def _is_known(kind: pa.DataType) -> bool:
    import pyarrow.types as kinds

    if kinds.is_struct(kind):
        return all(_is_known(field.type) for field in kind)
    if kinds.is_map(kind):
        return _is_known(kind.key_type) and _is_known(kind.item_type)
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return _is_known(kind.value_type)
    simple = (
        kinds.is_boolean,
        kinds.is_signed_integer,
        kinds.is_float32,
        kinds.is_float64,
        kinds.is_decimal128,
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
