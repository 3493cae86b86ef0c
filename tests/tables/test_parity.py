"""`writer: auto` takes and refuses what `writer: spark` does, and `plan` foretells it.

A table with columns of several kinds meets batches that differ from it in one way each, in each
mode that adds rows or merges them. Seeds are made by delta-rs, a copy for each writer.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.engines.spark.errors.translate import translate
from deltaworks.errors import DeltaworksError
from tests.tables.loader import Loader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PLAIN = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("v", pa.string()), ("d", pa.date32())])
NESTED = PLAIN.append(pa.field("s", pa.struct([("a", pa.int64()), ("b", pa.string())])))
STRICT = PLAIN.set(1, pa.field("n", pa.int64(), nullable=False))
ROW = {"id": 1, "n": 1, "v": "a", "d": None, "s": {"a": 1, "b": "x"}}
MODES: dict[str, dict[str, Any]] = {
    "append": {"mode": "append"},
    "upsert": {"mode": "upsert", "merge_keys": "id"},
    "scd2": {"mode": "scd2", "merge_keys": "id", "sequence_by": "d"},
}


@dataclass(frozen=True)
class Difference:
    """How a batch differs from the table."""

    columns: str
    """The columns of the batch; each brings the rows of keys 1 and 2."""
    table: pa.Schema = PLAIN
    options: dict[str, Any] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    modes: tuple[str, ...] = ("append", "upsert")
    only: str = ""
    """A condition on the rows that come."""


KEY, REST = "id", "7L AS n, 'b' AS v, DATE'2026-01-01' AS d"
DIFFERENCES = {
    "none": Difference(f"{KEY}, {REST}", modes=("append", "upsert", "scd2")),
    "missing": Difference(f"{KEY}, 7L AS n, DATE'2026-01-01' AS d"),
    "missing partition": Difference(f"{KEY}, 7L AS n", partition_by=("v",)),
    "narrower": Difference("CAST(id AS INT) AS id, CAST(7 AS SMALLINT) AS n, 'b' AS v"),
    "narrower and missing": Difference("CAST(id AS INT) AS id, 7 AS n", partition_by=("v",)),
    "wider": Difference(f"{KEY}, 7.5D AS n"),
    "other": Difference(f"{KEY}, 'x' AS n"),
    "extra": Difference(f"{KEY}, {REST}, true AS more"),
    "extra and asked": Difference(f"{KEY}, 7 AS n, 1 AS more", options={"merge_schema": True}),
    "case and order": Difference(f"'b' AS V, 7 AS N, {KEY}"),
    "void": Difference(f"{KEY}, NULL AS n, NULL AS v"),
    "nested narrower": Difference(f"{KEY}, named_struct('b', 'y', 'a', 2) AS s", table=NESTED),
    "nested missing": Difference(f"{KEY}, named_struct('A', 2L) AS s", table=NESTED),
    "nested extra": Difference(f"{KEY}, named_struct('a', 2L, 'c', 1) AS s", table=NESTED),
    "missing partition and new": Difference(
        f"{KEY}, 7L AS n", partition_by=("v",), only="id = 2", modes=("upsert",)
    ),
    "strict": Difference(f"{KEY}, {REST}", table=STRICT),
    "strict missing": Difference(f"{KEY}, 'b' AS v", table=STRICT),
    "strict and known": Difference(
        f"{KEY}, 'b' AS v", table=STRICT, only="id = 1", modes=("upsert",)
    ),
}
CASES = [(name, mode) for name, one in DIFFERENCES.items() for mode in one.modes]


def seeded(spark: SparkSession, folder: Path, found: Difference, mode: str) -> Loader:
    """A table with one row, made by delta-rs."""
    loader = Loader(spark, folder)
    if mode == "scd2":
        loader.load("SELECT 1L AS id, 1L AS n, 'a' AS v, DATE'2025-01-01' AS d", **MODES[mode])
        return loader
    row = pa.Table.from_pylist([ROW], found.table)
    write_deltalake(str(loader.path), row, partition_by=list(found.partition_by))
    return loader


def outcome(loader: Loader, batch: str, options: dict[str, Any]) -> str:
    """What a load left behind, or in which words it was refused."""
    try:
        info = loader.load(batch, **options)
    except Exception as raised:  # noqa: BLE001 - Spark's own too, as a step translates them
        error = raised if isinstance(raised, DeltaworksError) else translate(raised)
        assert error.code != "engine", error
        place = str(loader.path)
        return f"{error.code}: {error.message.replace(place, 'PLACE')}"
    counts = (info.rows_inserted, info.rows_updated, info.rows_deleted, info.rows_unchanged)
    schema = json.loads(DeltaTable(str(loader.path)).schema().to_json())
    types = [(entry["name"], entry["type"], entry["nullable"]) for entry in schema["fields"]]
    return repr((counts, types, loader.rows()))


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_both_writers_and_the_plan_agree(
    spark: SparkSession, tmp_path: Path, name: str, mode: str
) -> None:
    found = DIFFERENCES[name]
    options = {**MODES[mode], **found.options}
    query = f"SELECT {found.columns} FROM range(1, 3) WHERE {found.only or 'true'}"
    ours = seeded(spark, tmp_path / "auto", found, mode)
    theirs = Loader(spark, tmp_path / "spark")
    shutil.copytree(ours.path, theirs.path)
    theirs.batch = ours.batch
    is_refused = foretold(ours, query, {**options, "writer": "auto"})
    by_spark = outcome(theirs, query, {**options, "writer": "spark"})
    assert outcome(ours, query, {**options, "writer": "auto"}) == by_spark
    assert is_refused == (not by_spark.startswith("(")), by_spark


def foretold(loader: Loader, batch: str, options: dict[str, Any]) -> bool:
    """Whether `plan` says that the run would be refused."""
    try:
        loader.plan(batch, **options)
    except DeltaworksError:
        return True
    return bool(loader.sink(**options).violations(loader.context, loader._frame(batch)))
