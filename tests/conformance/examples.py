"""The fewest options each plug-in works with. A new plug-in adds its line, or a test says so.

Every step is applied to the same small frame: `id bigint, name string, amount double`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLUMNS = ("id", "name", "amount")
SCHEMA = "id bigint, name string, amount double"
Cells = tuple[int | None, str | None, float | None]
SOME: tuple[Cells, ...] = ((1, "ann", 2.5), (2, "bob", 1.0))
NULLS: tuple[Cells, ...] = ((1, None, None), (None, "bob", 1.0))


def _nothing(root: Path, rows: Sequence[Cells]) -> None:
    """A step needs no files."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """Options that work, options that fail when the step runs, and what must be there first."""

    options: dict[str, Any]
    broken: dict[str, Any]
    prepare: Callable[[Path, Sequence[Cells]], None] = _nothing
    metadata_jobs: int = 0
    """Spark jobs that reading may start: for a header, a footer or a log, never for rows."""


def _arrow(rows: Sequence[Cells]) -> Any:
    import pyarrow as pa

    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("amount", pa.float64())])
    return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema)


def _csv(root: Path, rows: Sequence[Cells]) -> None:
    with (root / "in.csv").open("w", encoding="utf-8", newline="") as handle:
        csv.writer(handle).writerows([COLUMNS, *rows])


def _parquet(root: Path, rows: Sequence[Cells]) -> None:
    import pyarrow.parquet as pq

    pq.write_table(_arrow(rows), root / "in.parquet")


def _delta(root: Path, rows: Sequence[Cells]) -> None:
    from deltalake import write_deltalake

    write_deltalake(str(root / "warehouse" / "in"), _arrow(rows))


def _sums(column: str) -> dict[str, Any]:
    return {"group_by": ["name"], "aggregations": [{"column": column, "function": "sum"}]}


EXAMPLES: dict[tuple[str, str], Example] = {
    ("source", "csv"): Example(
        options={"path": "in.csv"},
        broken={"path": "on.csv"},
        prepare=_csv,
        metadata_jobs=1,
    ),
    ("source", "parquet"): Example(
        options={"path": "in.parquet"},
        broken={"path": "on.parquet"},
        prepare=_parquet,
        metadata_jobs=1,
    ),
    ("source", "delta"): Example(
        options={"table": "in"}, broken={"table": "on"}, prepare=_delta, metadata_jobs=3
    ),
    ("transform", "aggregate"): Example(options=_sums("amount"), broken=_sums("amuont")),
    ("transform", "cast"): Example(
        options={"columns": {"amount": "float"}}, broken={"columns": {"amuont": "float"}}
    ),
    ("transform", "derive"): Example(
        options={"columns": {"twice": "amount * 2"}}, broken={"columns": {"twice": "amuont * 2"}}
    ),
    ("transform", "filter"): Example(
        options={"condition": "amount > 1"}, broken={"condition": "amuont > 1"}
    ),
    ("transform", "join"): Example(
        options={"with": "other", "on": ["id"], "how": "semi"},
        broken={"with": "other", "on": ["idd"]},
    ),
    ("transform", "select"): Example(options={"columns": ["id"]}, broken={"columns": ["idd"]}),
    ("transform", "sql"): Example(
        options={"query": "SELECT id FROM input"}, broken={"query": "SELECT idd FROM input"}
    ),
    ("check", "expression"): Example(
        options={"rule": "amount >= 0"}, broken={"rule": "amuont >= 0"}
    ),
    ("check", "not_null"): Example(options={"columns": ["id"]}, broken={"columns": ["idd"]}),
    ("check", "row_count"): Example(options={"min": 0}, broken={"min": 99}),
    ("check", "unique"): Example(options={"columns": ["id"]}, broken={"columns": ["idd"]}),
    ("sink", "delta"): Example(
        options={"table": "out"}, broken={"table": "out", "partition_by": ["nmae"]}
    ),
    ("sink", "parquet"): Example(
        options={"path": "out"}, broken={"path": "out", "partition_by": ["nmae"]}
    ),
}
