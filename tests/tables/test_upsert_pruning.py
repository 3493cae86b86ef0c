"""B4: ranges of keys in a MERGE skip files and change no row, whatever the type of the key."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tables.loader import Loader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = {
    "tinyint": "CAST(n AS TINYINT)",
    "bigint": "CAST(n AS BIGINT) * 1000000007",
    "string": "concat(elt(1 + pmod(n, 4), 'it''s', 'B', 'ä', '\\\\'), ' ', n)",
    "date": "date_add(DATE'2026-01-01', n)",
    "timestamp": "timestamp_micros(CAST(n AS BIGINT) * 1001)",
    "timestamp_ntz": "CAST(timestamp_micros(CAST(n AS BIGINT) * 1001) AS TIMESTAMP_NTZ)",
    "decimal": "CAST(n / 4 AS DECIMAL(9,2))",
    "double": "CASE n WHEN 0 THEN -0.0D WHEN 1 THEN double('NaN') ELSE CAST(n AS DOUBLE) END",
}
"""A key of each type, made of a small number."""
rows = st.dictionaries(st.integers(-12, 12), st.sampled_from(["a", "b", "gone"]), min_size=1)


def query(batch: dict[int, str], kind: str, *, keys: str = "k") -> str:
    """Rows whose zero may have either sign."""
    values = ", ".join(f"({n}, '{v}')" for n, v in batch.items())
    folder = ", pmod(n, 3) AS p" if "p" in keys else ""
    return f"SELECT {KEYS[kind]} AS k{folder}, v FROM VALUES {values} AS t(n, v)"


def as_in_sql(table: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows with one zero, and with a NaN that equals itself."""

    def told(value: Any) -> Any:
        if not isinstance(value, float):
            return value
        return "NaN" if math.isnan(value) else value + 0.0

    return sorted((tuple(told(value) for value in row) for row in table), key=repr)


def both_ways(
    spark: SparkSession, kind: str, stands: dict[int, str], batch: dict[int, str], **options: Any
) -> None:
    """The same upsert with and without ranges leaves the same rows, and says the same of them."""
    found = []
    for strategy in ("auto", "merge", "plain"):
        with TemporaryDirectory() as folder:
            loader = Loader(spark, Path(folder))
            keys = "".join(options.get("merge_keys", "k"))
            first = spark.sql(query(stands, kind, keys=keys)).repartitionByRange(3, "k")
            loader.load(first, partition_by=options.get("partition_by", ()))
            again = query(batch, kind, keys=keys).replace("-0.0D", "0.0D")
            info = loader.upsert(again, **{"merge_keys": "k", **options, "strategy": strategy})
            counts = (info.committed, info.rows_inserted, info.rows_updated, info.rows_deleted)
            found.append((as_in_sql(loader.rows()), counts, info.rows_unchanged))
    assert found[0] == found[2]
    assert found[1] == found[2]


@settings(
    max_examples=1,  # many more in `make prove`
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.sampled_from(sorted(KEYS)), rows, rows)
def test_ranges_of_keys_change_no_row(
    spark: SparkSession, kind: str, stands: dict[int, str], batch: dict[int, str]
) -> None:
    both_ways(spark, kind, stands, batch, delete_condition="source.v = 'gone'")


def test_values_of_a_partition_that_is_a_key_change_no_row(spark: SparkSession) -> None:
    stands, batch = {0: "a", 1: "a", 5: "b", 7: "a"}, {1: "b", 4: "b", 7: "a"}
    options: dict[str, Any] = {"merge_keys": ["k", "p"], "partition_by": ["p"]}
    both_ways(spark, "string", stands, batch, **options)


def test_a_row_that_moves_to_another_partition_is_still_found(loader: Loader) -> None:
    loader.load("(1, 'NL', 'a'), (2, 'DE', 'a') AS t(id, c, v)", partition_by="c")
    info = loader.upsert("(1, 'DE', 'b') AS t(id, c, v)")
    assert loader.rows() == [(1, "DE", "b"), (2, "DE", "a")]
    assert (info.rows_inserted, info.rows_updated) == (0, 1)


def test_files_that_cannot_hold_a_key_are_skipped_and_told(loader: Loader) -> None:
    for start in (0, 100, 200):
        loader.load(f"SELECT id, 'a' AS v FROM range({start}, {start + 50}, 1, 1)")
    batch = "SELECT id, 'b' AS v FROM range(110, 120)"
    planned = loader.plan(batch, mode="upsert", merge_keys="id")
    info = loader.upsert(batch)
    assert planned.files == info.files
    assert info.files is not None
    assert (info.files.scanned, info.files.skipped, info.files.rewritten) == (1, 2, 1)
    assert "(target.`id` BETWEEN 110L AND 119L)" in planned.sql
    removed = [action for action in loader.commits()[3] if "remove" in action]
    assert len(removed) == 1


def test_rows_deleted_by_their_absence_are_looked_for_in_every_file(loader: Loader) -> None:
    for start in (0, 100):
        loader.load(f"SELECT id, 'a' AS v FROM range({start}, {start + 2})")
    options = {"mode": "upsert", "merge_keys": "id", "not_matched_by_source": "delete"}
    batch = "SELECT id, 'a' AS v FROM range(100, 103)"
    assert "BETWEEN" not in loader.plan(batch, **options).sql
    info = loader.load(batch, **options)
    assert loader.rows() == [(100, "a"), (101, "a"), (102, "a")]
    assert info.files is not None
    assert (info.rows_deleted, info.files.skipped) == (2, 0)
