"""Statistics of a data file: only what is certain, because engines skip files by them.

A wrong smallest or greatest value makes rows disappear from answers; a missing one costs a look
into the file. So there is none for a column with NaN or an infinity, for long texts, for times that
calendars count differently, for decimals that a double cannot hold, and for nested fields.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import WriterProperties

MOST_COLUMNS = 32
"""Delta's own default for how many columns get statistics."""
_LONGEST_TEXT = 64
_OLDEST_YEAR = 1600
_MOST_DIGITS = 15


def file_statistics(rows: pa.Table, *, most_columns: int = MOST_COLUMNS) -> str:
    """What a file holds, as the log wants it."""
    smallest: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in rows.column_names[:most_columns]:
        column = rows.column(name)
        if _is_nested(column.type):
            continue
        nulls[name] = column.null_count
        if (ends := _ends(column)) is not None:
            smallest[name], greatest[name] = ends
    return json.dumps(
        {
            "numRecords": rows.num_rows,
            "minValues": smallest,
            "maxValues": greatest,
            "nullCount": nulls,
        },
        allow_nan=False,
        ensure_ascii=False,  # delta-rs misreads characters that are escaped as pairs
    )


def writer_properties(schema: pa.Schema) -> WriterProperties:
    """How delta-rs writes files itself: without statistics of columns where it may be wrong.

    It passes over NaN, which is greater than all else to Spark, and rounds long decimals.
    """
    from deltalake import ColumnProperties, WriterProperties

    none = ColumnProperties(statistics_enabled="NONE")
    doubtful = {field.name: none for field in schema if _is_doubtful(field.type)}
    return WriterProperties(compression="SNAPPY", column_properties=doubtful or None)


def _is_doubtful(kind: pa.DataType) -> bool:
    import pyarrow.types as kinds

    if kinds.is_decimal(kind):
        return bool(kind.precision > _MOST_DIGITS)
    return bool(kinds.is_floating(kind) or kinds.is_binary(kind) or kinds.is_large_binary(kind))


def _is_nested(kind: pa.DataType) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_nested(kind))


def _ends(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """The smallest and greatest value in JSON; None unless both are certain."""
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    kind = column.type
    if kinds.is_boolean(kind) or kinds.is_binary(kind) or column.null_count == len(column):
        return None
    if kinds.is_floating(kind) and not pc.all(pc.is_finite(column)).as_py():
        return None
    try:
        found = pc.min_max(column).as_py()
    except (OverflowError, ValueError):  # a year that Python does not know
        return None
    low, high = _json(found["min"]), _json(found["max"])
    if low is None or high is None:
        return None
    if kinds.is_floating(kind):
        return _with_both_zeros(low, high)
    return low, high


def _with_both_zeros(low: float, high: float) -> tuple[float, float]:
    """Minus zero and zero are equal to some engines and not to others."""
    return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)


def _json(value: Any) -> Any:
    """A value as statistics spell it; None when it had better be left out."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else None
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, date):
        return value.isoformat() if value.year >= _OLDEST_YEAR else None
    if isinstance(value, Decimal):
        return _number(value)
    return value


def _moment(value: datetime) -> str | None:
    if value.year < _OLDEST_YEAR or value.tzinfo is None:
        return None
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _number(value: Decimal) -> float | int | None:
    if len(value.as_tuple().digits) > _MOST_DIGITS:
        return None
    return int(value) if value == value.to_integral_value() else float(value)
