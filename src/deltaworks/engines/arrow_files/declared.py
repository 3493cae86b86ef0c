"""Columns and types as a pipeline file spells them, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltaworks.errors import SpecError

if TYPE_CHECKING:
    import pyarrow as pa

_HINT = "write names and types: id bigint, amount double"


def declared_schema(text: str) -> pa.Schema:
    """The columns that a text such as `id bigint, amount double` declares."""
    import pyarrow as pa
    from sqlglot import parse_one
    from sqlglot.errors import SqlglotError

    try:
        columns = parse_one(f"CREATE TABLE t ({text})", dialect="spark").this.expressions
    except SqlglotError as error:
        raise SpecError(f'schema "{text}" cannot be understood', hint=_HINT) from error
    return pa.schema([_field(column, text) for column in columns])


def _field(column: Any, text: str) -> pa.Field:
    import pyarrow as pa

    kind = column.args.get("kind")
    if kind is None:
        raise SpecError(f'schema "{text}" names no type for "{column.name}"', hint=_HINT)
    return pa.field(column.name, _type(kind, text), nullable=not column.constraints)


def _type(kind: Any, text: str) -> pa.DataType:
    import pyarrow as pa

    name, inner = kind.this.name, kind.expressions
    if name == "DECIMAL":
        digits = [int(part.name) for part in inner] or [10]
        return pa.decimal128(digits[0], digits[1] if len(digits) > 1 else 0)
    if name == "STRUCT":
        return pa.struct([_field(part, text) for part in inner])
    if name == "ARRAY":
        return pa.list_(_type(inner[0], text))
    if name == "MAP":
        return pa.map_(_type(inner[0], text), _type(inner[1], text))
    simple = _simple().get(name)
    if simple is None:
        raise SpecError(f'a stream does not know type "{kind.sql("spark").lower()}"', hint=_HINT)
    return simple


def _simple() -> dict[str, pa.DataType]:
    import pyarrow as pa

    return {
        "TINYINT": pa.int8(),
        "SMALLINT": pa.int16(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "BOOLEAN": pa.bool_(),
        "TEXT": pa.string(),
        "VARCHAR": pa.string(),
        "CHAR": pa.string(),
        "BINARY": pa.binary(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us", tz="UTC"),
        "TIMESTAMPLTZ": pa.timestamp("us", tz="UTC"),
        "TIMESTAMPNTZ": pa.timestamp("us"),
        "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
    }
