"""Columns and types as a pipeline file spells them, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.errors import SpecError
from deltaworks.model.type_text import SqlColumn, SqlType, parse_columns

if TYPE_CHECKING:
    import pyarrow as pa


def declared_schema(text: str) -> pa.Schema:
    """The columns that a text such as `id bigint, amount double` declares."""
    import pyarrow as pa

    return pa.schema([_field(column) for column in parse_columns(text)])


def _field(column: SqlColumn) -> pa.Field:
    import pyarrow as pa

    return pa.field(column.name, _type(column.type), nullable=column.nullable)


def _type(kind: SqlType) -> pa.DataType:
    import pyarrow as pa

    if kind.name == "decimal":
        return pa.decimal128(*kind.numbers)
    if kind.name == "struct":
        return pa.struct([_field(field) for field in kind.fields])
    if kind.name == "array":
        return pa.list_(_type(kind.inner[0]))
    if kind.name == "map":
        return pa.map_(_type(kind.inner[0]), _type(kind.inner[1]))
    simple = _simple().get(kind.name)
    if simple is None:
        raise SpecError(
            f'a stream does not know type "{kind.name}"', hint=f"available: {', '.join(_simple())}"
        )
    return simple


def _simple() -> dict[str, pa.DataType]:
    import pyarrow as pa

    return {
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "string": pa.string(),
        "varchar": pa.string(),
        "char": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
