"""Statistics of a data file: only what is certain, because engines skip files and rows by them.

A wrong smallest or greatest value makes rows disappear from answers; a missing one costs a look
into the file. Every data file that we write gets its statistics here, in the log and in its own
footer, by which Spark skips groups of rows:

- `file_statistics` are those in the log, for files we write with Arrow. There is none for a column
  with NaN or an infinity, for long texts, for times that calendars count differently, for decimals
  that a double cannot hold, and for nested fields.
- `write_parquet` writes such a file. Its footer has none for numbers with NaN, which Arrow passes
  over and Spark takes for greater than all else, none for days around the change of the calendar,
  and none within lists and maps.
- `writer_properties` are for files that delta-rs writes; it makes those in the log from the footer.
  It cannot be told of a field within a column, so only whole columns of certain types get any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import WriterProperties

MAX_COLUMNS = 32
"""Delta's own default for how many columns get statistics."""
_MAX_TEXT = 64
_OLDEST_YEAR = 1600
_MAX_DIGITS = 15
_LEFT_OUT_DAYS = (-141_437, -141_427)
"""From 1582-10-05 to before 1582-10-15, in days from 1970."""
_UNITS = ("s", "ms", "us", "ns")


def file_statistics(rows: pa.Table, *, max_columns: int = MAX_COLUMNS) -> str:
    """What a file holds, as the log wants it."""
    smallest: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in rows.column_names[:max_columns]:
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


def write_parquet(rows: pa.Table, handle: Any) -> None:
    """Write rows as a Parquet file whose footer tells nothing but what is certain."""
    import pyarrow.parquet as pq

    pq.write_table(
        rows,
        handle,
        compression="snappy",
        use_dictionary=_repetitive(rows),
        write_statistics=_certain_leaves(rows),
    )


def writer_properties(schema: pa.Schema) -> WriterProperties:
    """How delta-rs writes files itself: with statistics only where it is surely right.

    It passes over NaN, which is greater than all else to Spark, and rounds long decimals. Where a
    dictionary lists -0.0 and not 0.0, Spark skips rows that it takes for equal.
    """
    from deltalake import ColumnProperties, WriterProperties

    none = ColumnProperties(statistics_enabled="NONE", dictionary_enabled=False)
    both = ColumnProperties(statistics_enabled="PAGE", dictionary_enabled=True)
    certain = {field.name: both for field in schema if _is_certain(field.type)}
    return WriterProperties(
        compression="SNAPPY", default_column_properties=none, column_properties=certain or None
    )


def _is_certain(kind: pa.DataType) -> bool:
    """Whether delta-rs tells the ends of any such column rightly."""
    import pyarrow.types as kinds

    if kinds.is_decimal(kind):
        return bool(kind.precision <= _MAX_DIGITS)
    simple = (kinds.is_integer, kinds.is_boolean, kinds.is_date, kinds.is_timestamp)
    texts = (kinds.is_string, kinds.is_large_string, kinds.is_string_view)
    return any(is_kind(kind) for is_kind in (*simple, *texts))


def _certain_leaves(rows: pa.Table) -> list[str]:
    """The columns and fields whose ends Arrow tells rightly, as the footer spells their paths.

    It spells "a.b" like the field "b" of "a", so such a name counts only if both are certain.
    """
    found: dict[str, bool] = {}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        for path, certain in _leaves(field.name, column):
            found[path] = certain and found.get(path, True)
    return [path for path, certain in found.items() if certain]


def _leaves(path: str, column: pa.ChunkedArray) -> Iterator[tuple[str, bool]]:
    """The leaves of a column that are not in lists, and whether their ends are certain."""
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    if kinds.is_struct(column.type):
        for field, inner in zip(column.type, column.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", inner)
    elif kinds.is_floating(column.type):
        yield path, not pc.any(pc.is_nan(column)).as_py()
    elif kinds.is_date32(column.type) or kinds.is_timestamp(column.type):
        yield path, not _on_left_out_days(column)
    else:
        yield path, not kinds.is_nested(column.type)


def _on_left_out_days(column: pa.ChunkedArray) -> bool:
    """Whether values are on days that the old calendar leaves out, or on both sides of them.

    Spark, as it comes, asks files for another day in place of such a one, and skips its rows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    is_day = kinds.is_date32(column.type)
    ends = pc.min_max(column.cast(pa.int32() if is_day else pa.int64()))
    low, high = ends["min"].as_py(), ends["max"].as_py()
    units = 1 if is_day else 86_400 * 1000 ** _UNITS.index(column.type.unit)
    first, last = (day * units for day in _LEFT_OUT_DAYS)
    return low is not None and low < last and high >= first


def _repetitive(rows: pa.Table) -> list[str]:
    """Columns of texts that repeat themselves: only there a dictionary pays for itself."""
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    sample = rows.slice(0, 1000)
    return [
        field.name
        for field, column in zip(sample.schema, sample.columns, strict=True)
        if kinds.is_string(field.type) and pc.count_distinct(column).as_py() <= sample.num_rows // 2
    ]


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
        return value if len(value) <= _MAX_TEXT else None
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
    if len(value.as_tuple().digits) > _MAX_DIGITS:
        return None
    return int(value) if value == value.to_integral_value() else float(value)
