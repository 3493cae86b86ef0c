"""One row per key, found in rows that are in memory already."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deltaworks.model.write import DuplicatePolicy

if TYPE_CHECKING:
    import pyarrow as pa

_PLACE = "__deltaworks_place"
_KEY = "key"
_MAX_ROWS = 10_000
"""So many rows with repeated keys are looked at one by one."""


def key_columns(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The keys under names that Arrow takes as they are, alike where Spark calls them equal.

    Arrow reads a name that begins with a dot as a path, and tells zeros and NaNs apart by sign.
    """
    import pyarrow as pa

    columns = [_comparable_numbers(rows.column(rows.schema.names.index(key))) for key in keys]
    return pa.table(columns, names=[f"{_KEY}{n}" for n in range(len(columns))])


def _comparable_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(column.type):
        return column
    nan, zero = (pa.scalar(number, column.type) for number in (math.nan, 0.0))
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))  # -0.0 + 0.0 is 0.0


def one_per_key(
    rows: pa.Table, keys: Sequence[str], rule: DuplicatePolicy | None
) -> pa.Table | None:
    """The rows that win; None where Spark is to judge, or to say what is wrong with the keys."""
    keyed = key_columns(rows, keys)
    if any(column.null_count for column in keyed.columns):
        return None
    counted = keyed.group_by(keyed.column_names).aggregate([([], "count_all")])
    if counted.num_rows == rows.num_rows:
        return rows
    by = _spelled(rows, rule.by) if rule else ""
    if rule is None or not by:
        return None
    return _without_losers(rows, keyed, counted, rule, by)


def _spelled(rows: pa.Table, name: str) -> str:
    """The column that decides, where its values are in the same order for Python and Spark."""
    import pyarrow.types as kinds

    for field in rows.schema:
        is_other = kinds.is_floating(field.type) or kinds.is_nested(field.type)
        if field.name.lower() == name.lower() and not is_other:
            return str(field.name)
    return ""


def _without_losers(
    rows: pa.Table, keyed: pa.Table, counted: pa.Table, rule: DuplicatePolicy, by: str
) -> pa.Table | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    names = keyed.column_names
    repeated = counted.filter(pc.greater(counted.column("count_all"), 1)).select(names)
    places = pa.array(range(rows.num_rows))
    numbered = keyed.append_column(_PLACE, places)
    found = numbered.join(repeated, names, join_type="left semi").column(_PLACE)
    if len(found) > _MAX_ROWS:
        return None
    losers: list[int] = []
    looked_at = _comparable(rows.take(found)).append_column(_PLACE, found)
    for group in _groups(looked_at, keyed.take(found)):
        winner = _winner(group, rule, by)
        if winner is None:
            return None
        losers.extend(row[_PLACE] for row in group if row is not winner)
    return rows.filter(pc.invert(pc.is_in(places, value_set=pa.array(losers, places.type))))


def _comparable(rows: pa.Table) -> pa.Table:
    """The rows with timestamps and dates as numbers: Python knows fewer of them than Spark."""
    import pyarrow as pa

    fields = [
        pa.field(f.name, pa.int32() if pa.types.is_date32(f.type) else pa.int64())
        if pa.types.is_temporal(f.type)
        else f
        for f in rows.schema
    ]
    return rows.cast(pa.schema(fields))


def _groups(rows: pa.Table, keyed: pa.Table) -> list[list[dict[str, Any]]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    keys = zip(*(column.to_pylist() for column in _comparable(keyed).columns), strict=True)
    for key, row in zip(keys, rows.to_pylist(), strict=True):
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def _winner(
    group: Sequence[dict[str, Any]], rule: DuplicatePolicy, by: str
) -> dict[str, Any] | None:
    """The row that wins its key; None when different rows tie for it."""
    known = [row[by] for row in group if row[by] is not None]
    choose = max if rule.keep == "newest" else min
    best = choose(known) if known else None
    peers = [row for row in group if row[by] == best]
    return peers[0] if all(_alike(row, peers[0]) for row in peers) else None


def _alike(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(value == other[name] for name, value in row.items() if name != _PLACE)
