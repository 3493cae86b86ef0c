"""One row per key, found in rows that are in memory already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deltaworks.model.write import KeepOne

if TYPE_CHECKING:
    import pyarrow as pa

_PLACE = "__deltaworks_place"
_ROWS = "__deltaworks_rows"
_MOST_ROWS = 10_000
"""So many rows with repeated keys are looked at one by one."""


def one_per_key(rows: pa.Table, keys: Sequence[str], rule: KeepOne | None) -> pa.Table | None:
    """The rows that win; None where Spark is to judge, or to say what is wrong with the keys."""
    if any(rows.column(key).null_count for key in keys):
        return None
    counted = rows.group_by(list(keys)).aggregate([([], "count_all")])
    if counted.num_rows == rows.num_rows:
        return rows
    by = _spelled(rows, rule.by) if rule else ""
    if rule is None or not by:
        return None
    return _without_losers(rows, counted.rename_columns([*keys, _ROWS]), rule, by)


def _spelled(rows: pa.Table, name: str) -> str:
    """The column that decides, where its values are in the same order for Python and Spark."""
    import pyarrow as pa

    for field in rows.schema:
        if field.name.lower() == name.lower() and not pa.types.is_floating(field.type):
            return str(field.name)
    return ""


def _without_losers(rows: pa.Table, counted: pa.Table, rule: KeepOne, by: str) -> pa.Table | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = [name for name in counted.column_names if name != _ROWS]
    repeated = counted.filter(pc.greater(counted.column(_ROWS), 1)).select(keys)
    places = pa.array(range(rows.num_rows))
    numbered = rows.select(keys).append_column(_PLACE, places)
    found = numbered.join(repeated, keys, join_type="left semi").column(_PLACE)
    if len(found) > _MOST_ROWS:
        return None
    losers: list[int] = []
    for group in _groups(_comparable(rows.take(found)).append_column(_PLACE, found), keys):
        winner = _winner(group, rule, by)
        if winner is None:
            return None
        losers.extend(row[_PLACE] for row in group if row is not winner)
    return rows.filter(pc.invert(pc.is_in(places, value_set=pa.array(losers, places.type))))


def _comparable(rows: pa.Table) -> pa.Table:
    """The rows with moments and days as numbers: Python knows fewer of them than Spark."""
    import pyarrow as pa

    fields = [
        pa.field(f.name, pa.int32() if pa.types.is_date32(f.type) else pa.int64())
        if pa.types.is_temporal(f.type)
        else f
        for f in rows.schema
    ]
    return rows.cast(pa.schema(fields))


def _groups(rows: pa.Table, keys: Sequence[str]) -> list[list[dict[str, Any]]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(groups.values())


def _winner(group: Sequence[dict[str, Any]], rule: KeepOne, by: str) -> dict[str, Any] | None:
    """The row that wins its key; None when different rows tie for it."""
    known = [row[by] for row in group if row[by] is not None]
    choose = max if rule.keep == "newest" else min
    best = choose(known) if known else None
    peers = [row for row in group if row[by] == best]
    return peers[0] if all(_alike(row, peers[0]) for row in peers) else None


def _alike(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(value == other[name] for name, value in row.items() if name != _PLACE)
