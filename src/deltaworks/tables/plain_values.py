"""Arrow rows as plain values: what JSON can say, with times and decimals as text.

The form is that of `deltaworks preview`, whichever engine read the rows.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "bool": "boolean",
    "date32[day]": "date",
}


def plain_lists(rows: pa.Table) -> list[list[Any]]:
    """The rows, each a list of values."""
    columns = [_plain_column(column) for column in rows.columns]
    return [list(values) for values in zip(*columns, strict=True)]


def column_documents(rows: pa.Table) -> list[dict[str, str]]:
    """Name and type of each column, as SQL spells them."""
    return [{"name": field.name, "type": type_name(field.type)} for field in rows.schema]


def type_name(kind: pa.DataType) -> str:
    """A type of Arrow as SQL spells it."""
    import pyarrow.types as kinds

    if kinds.is_struct(kind):
        return f"struct<{', '.join(f'{f.name}: {type_name(f.type)}' for f in kind)}>"
    if kinds.is_map(kind):
        return f"map<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if kinds.is_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if kinds.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if kinds.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return _NAMES.get(str(kind), str(kind))


def _plain_column(column: pa.ChunkedArray) -> list[Any]:
    import pyarrow as pa

    spelled = _spelled(column.type)
    if spelled == column.type == pa.string():
        return _texts(column)
    plain = _plainer(column.type)
    texts = column if spelled == column.type else column.cast(spelled)
    return [None if value is None else plain(value) for value in texts.to_pylist()]


def _texts(column: pa.ChunkedArray) -> list[Any]:
    """Texts; Spark keeps bytes in them that are no UTF-8, which are shown as a question mark."""
    import pyarrow as pa

    values = column.cast(pa.binary()).to_pylist()
    return [None if value is None else value.decode(errors="replace") for value in values]


def _spelled(kind: pa.DataType) -> pa.DataType:
    """A type with text where Python has no such value: any year, or a number of four bytes."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_date(kind) or kinds.is_timestamp(kind) or kinds.is_float32(kind):
        return pa.string()
    if kinds.is_struct(kind):
        return pa.struct([pa.field(f.name, _spelled(f.type)) for f in kind])
    if kinds.is_map(kind):
        return pa.map_(_spelled(kind.key_type), _spelled(kind.item_type))
    if kinds.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _spelled(kind.value_type)))
    return kind


def _plainer(kind: pa.DataType) -> Callable[[Any], Any]:
    """How a value of a type becomes plain."""
    import pyarrow.types as kinds

    if kinds.is_struct(kind):
        inner = {field.name: _optional(field.type) for field in kind}
        return lambda value: {name: inner[name](value[name]) for name in inner}
    if kinds.is_map(kind):
        key, item = _optional(kind.key_type), _optional(kind.item_type)
        return lambda value: {_key(key(one)): item(other) for one, other in value}
    if kinds.is_list(kind):
        element = _optional(kind.value_type)
        return lambda value: [element(one) for one in value]
    return _plain_single(kind)


def _plain_single(kind: pa.DataType) -> Callable[[Any], Any]:
    import pyarrow.types as kinds

    if kinds.is_decimal(kind):
        return lambda value: format(value, "f")
    if kinds.is_floating(kind):
        return lambda value: _number(float(value))
    if kinds.is_binary(kind):
        return lambda value: base64.b64encode(value).decode("ascii")
    is_json = kinds.is_integer(kind) or kinds.is_boolean(kind)
    return (lambda value: value) if is_json else str


def _optional(kind: pa.DataType) -> Callable[[Any], Any]:
    plain = _plainer(kind)
    return lambda value: None if value is None else plain(value)


def _number(value: float) -> float | str:
    """A number; JSON has no word for NaN and infinities."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _key(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
