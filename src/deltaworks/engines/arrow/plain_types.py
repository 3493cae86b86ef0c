"""Arrow tables with the plain types that every library knows, whichever engine made them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def plain_table(rows: pa.Table) -> pa.Table:
    """The same rows without views and notes on columns."""
    import pyarrow as pa

    return rows.cast(pa.schema([pa.field(f.name, plain_type(f.type)) for f in rows.schema]))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A type as Spark's own answers have it."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_string_view(kind):
        return pa.string()
    if kinds.is_binary_view(kind):
        return pa.binary()
    if kinds.is_struct(kind):
        return pa.struct([pa.field(f.name, plain_type(f.type)) for f in kind])
    if kinds.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if kinds.is_list(kind):
        return pa.list_(pa.field("element", plain_type(kind.value_type)))
    return kind
