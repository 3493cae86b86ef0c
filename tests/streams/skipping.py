"""What Spark finds by a filter, with statistics to skip files by and without any.

A filter in a WHERE clause lets Spark skip files by the log's statistics, and groups of rows by
those in a file's footer and by its dictionaries. The same condition in a SELECT list skips none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import strategies as st

from deltaworks.streams.maintenance import MaintenancePlan
from tests.streams.tables import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Files = Sequence[Sequence[dict[str, Any]]]
WAYS: dict[str, dict[str, Any]] = {
    "append": {"mode": "append", "upkeep": MaintenancePlan(checkpoint_every=0)},
    "joined": {"mode": "append", "upkeep": MaintenancePlan(checkpoint_every=2, compact_files=2)},
    "upsert": {"mode": "upsert", "keys": ["id"]},
}
"""The ways in which our data files are written: by Arrow, by Arrow from others, by delta-rs."""


@dataclass(frozen=True)
class Kind:
    """A type: as Arrow has it, its values, and how SQL spells one."""

    arrow: pa.DataType
    values: st.SearchStrategy[Any]
    sql: str


def _integers(bits: int) -> st.SearchStrategy[int]:
    ends = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return st.sampled_from([*ends, 0, 1, -1]) | st.integers(*ends)


def _decimals(digits: int, places: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    edges = st.sampled_from([most, -most, 0, 1, -1, most - 1, 10 ** (digits - 1) + 5])
    return (edges | st.integers(-most, most)).map(lambda n: Decimal(f"{n}E-{places}"))


def _doubles(width: Any) -> st.SearchStrategy[float]:
    edges = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0]
    return st.sampled_from(edges) | st.floats(width=width)


_TEXTS = st.sampled_from(["", "a", "B", "é", "\U0001f600", "\uffff", "x" * 70, "x" * 71, "\u2028"])
_LEFT_OUT = [date(1582, 10, day) for day in (4, 5, 10, 14, 15)]
"""The days that the old calendar leaves out, and those around them."""
_EDGES = [date(1, 1, 1), *_LEFT_OUT, date(1970, 1, 1), date.max]
_DAYS = st.sampled_from(_EDGES) | st.dates()
_TIMES = st.sampled_from(
    [
        "1582-10-04T23:59:59.999999",
        "1582-10-10T05:06:07.008009",
        "1582-10-15T00:00:00",
        "1600-01-01T00:00:00",
        "1969-12-31T23:59:59.999999",
        "2026-01-02T03:04:05.678901",
        "2026-01-02T03:04:05.678000",
        "9999-12-31T23:59:59.999999",
    ]
).map(datetime.fromisoformat) | st.datetimes(datetime.fromisoformat("1600-01-01"))

KINDS = {
    "i8": Kind(pa.int8(), _integers(8), "cast({} AS tinyint)"),
    "i16": Kind(pa.int16(), _integers(16), "cast({} AS smallint)"),
    "i32": Kind(pa.int32(), _integers(32), "cast({} AS int)"),
    "i64": Kind(pa.int64(), _integers(64), "cast({} AS bigint)"),
    "f32": Kind(pa.float32(), _doubles(32), "cast({} AS float)"),
    "f64": Kind(pa.float64(), _doubles(64), "cast({} AS double)"),
    "d9": Kind(pa.decimal128(9, 2), _decimals(9, 2), "cast({} AS decimal(9,2))"),
    "d15": Kind(pa.decimal128(15, 4), _decimals(15, 4), "cast({} AS decimal(15,4))"),
    "d38": Kind(pa.decimal128(38, 18), _decimals(38, 18), "cast({} AS decimal(38,18))"),
    "text": Kind(pa.string(), _TEXTS | st.text(max_size=4), "decode(unhex({}), 'UTF-8')"),
    "bytes": Kind(pa.binary(), st.binary(max_size=3), "unhex({})"),
    "day": Kind(pa.date32(), _DAYS, "cast({} AS date)"),
    "at": Kind(
        pa.timestamp("us", tz="UTC"),
        _TIMES.map(lambda at: at.replace(tzinfo=UTC)),
        "cast({} AS timestamp)",
    ),
    "local": Kind(pa.timestamp("us"), _TIMES, "cast({} AS timestamp_ntz)"),
    "flag": Kind(pa.bool_(), st.booleans(), "cast({} AS boolean)"),
}
WITHIN = pa.struct([(name, kind.arrow) for name, kind in KINDS.items()])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        *((name, kind.arrow) for name, kind in KINDS.items()),
        ("n", WITHIN),
        ("list", pa.list_(pa.float64())),
        ("map", pa.map_(pa.string(), pa.float64())),
    ]
)
_VALUES = st.fixed_dictionaries({n: st.none() | kind.values for n, kind in KINDS.items()})
ROWS = st.builds(
    lambda here, within, listed: {
        **here,
        "n": within,
        "list": listed,
        "map": [(str(n), value) for n, value in enumerate(listed)],
    },
    _VALUES,
    st.none() | _VALUES,
    st.lists(_doubles(64), max_size=2),
)
FILES = st.lists(st.lists(ROWS, min_size=1, max_size=3), min_size=1, max_size=3)
CONDITION = st.tuples(
    st.sampled_from([*KINDS, *(f"n.{name}" for name in KINDS)]),
    st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>", "IN", "IS NULL", "IS NOT NULL"]),
    st.integers(0, 8),
)


def literal(name: str, value: Any) -> str:
    """A value as SQL spells it."""
    if value is None:
        return KINDS[name].sql.format("NULL")
    if isinstance(value, str | bytes):
        text = (value.encode() if isinstance(value, str) else value).hex()
    else:
        text = str(value)
    return KINDS[name].sql.format(f"'{text}'")


def condition(column: str, sign: str, place: int, rows: Sequence[dict[str, Any]]) -> str:
    """A condition that compares a column with a value that some row has there or elsewhere."""
    if sign.startswith("IS"):
        return f"{column} {sign}"
    name, row = column.rpartition(".")[2], rows[place % len(rows)]
    value = literal(name, row[name] if place % 2 else (row["n"] or row)[name])
    return f"{column} IN ({value})" if sign == "IN" else f"{column} {sign} {value}"


def written(folder: Path, files: Files, way: str) -> list[dict[str, Any]]:
    """The rows, each with a number, in a table whose files were written in one of the ways."""
    every: list[dict[str, Any]] = []
    with opened(folder, schema=SCHEMA, **WAYS[way]) as sink:
        for epoch, rows in enumerate(files):
            numbered = [{"id": len(every) + n, **row} for n, row in enumerate(rows)]
            every.extend(numbered)
            sink.write(pa.Table.from_pylist(numbered, SCHEMA))
            sink.commit_epoch(epoch)
    return every


def differences(spark: SparkSession, folder: Path, conditions: Sequence[str]) -> list[str]:
    """The conditions for which Spark finds other rows when it may skip some."""
    spark.read.format("delta").load(f"{folder}/t").createOrReplaceTempView("t")
    listed = ", ".join(f"({one}) IS TRUE" for one in conditions)
    plain = [tuple(row) for row in spark.sql(f"SELECT id, {listed} FROM t").collect()]
    branches = (f"SELECT {n} AS n, id FROM t WHERE {one}" for n, one in enumerate(conditions))
    found = {(row.n, row.id) for row in spark.sql(" UNION ALL ".join(branches)).collect()}
    return [
        f"{one}: skipped {sorted(lost)}, invented {sorted(more)}"
        for n, one in enumerate(conditions)
        if (lost := _ids(plain, n + 1) - {at for place, at in found if place == n})
        | (more := {at for place, at in found if place == n} - _ids(plain, n + 1))
    ]


def _ids(rows: Sequence[tuple[Any, ...]], place: int) -> set[int]:
    """The rows for which a condition holds."""
    return {row[0] for row in rows if row[place]}
