"""Statistics are true for whatever is written: a filter finds exactly the rows Python finds."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltaworks.engines.deltars.write.statistics import file_statistics
from tests.streams.tables import batch, opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("d", pa.decimal128(30, 4)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("b", pa.bool_()),
        ("n", pa.struct([("x", pa.int32())])),
    ]
)
# Of NaNs delta-rs tells the bits apart, which no writer promises to keep.
ROW = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.none() | st.floats().map(lambda f: math.nan if math.isnan(f) else f),
        "s": st.none() | st.text(max_size=5) | st.text(min_size=60, max_size=70),
        "d": st.none() | st.decimals(-(10**25), 10**25, places=4),
        "day": st.none() | st.dates(),
        "at": st.none() | st.datetimes(timezones=st.just(UTC)),
        "b": st.none() | st.booleans(),
        "n": st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(0, 9)}),
    }
)
LITERALS: dict[str, Callable[[Any], str]] = {
    "i": str,
    "f": lambda v: f"CAST('{v}' AS DOUBLE)",
    "s": lambda v: "'" + v.replace("'", "''") + "'",
    "d": lambda v: f"CAST('{v}' AS DECIMAL(30,4))",
    "day": lambda v: f"CAST('{v.isoformat()}' AS DATE)",
    "at": lambda v: f"arrow_cast('{v.isoformat()}', 'Timestamp(Microsecond, Some(\"UTC\"))')",
    "b": lambda v: str(v).lower(),
}


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(files=st.lists(st.lists(ROW, min_size=1, max_size=4), min_size=1, max_size=3))
def test_a_filter_finds_what_plain_python_finds(files: list[list[dict[str, Any]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with opened(folder, schema=SCHEMA) as sink:
            for n, written in enumerate(files):
                sink.write(pa.Table.from_pylist(written, SCHEMA))
                sink.commit_epoch(n)
        query = QueryBuilder().register("t", DeltaTable(f"{folder}/t"))
        every = [row for written in files for row in written]
        for name, literal in LITERALS.items():
            count = 'SELECT count(*) AS n FROM t WHERE "'
            for value in {repr(row[name]): row[name] for row in every}.values():
                where = f'{name}" IS NULL' if value is None else f'{name}" = {literal(value)}'
                found = pa.table(query.execute(count + where).read_all())["n"][0].as_py()
                assert found == sum(_same(row[name], value) for row in every), (name, value)


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):  # NaN is one value, both zeros are two
        if math.isnan(one) or math.isnan(two):
            return math.isnan(one) and math.isnan(two)
        return (one, math.copysign(1, one)) == (two, math.copysign(1, two))
    return bool(one == two)


def told(column: list[Any], kind: pa.DataType) -> tuple[Any, Any, Any]:
    """Smallest, greatest and NULLs, as a file with one such column would tell them."""
    found = json.loads(file_statistics(pa.table({"c": pa.array(column, kind)})))
    assert found["numRecords"] == len(column)
    return tuple(found[name].get("c") for name in ("minValues", "maxValues", "nullCount"))


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        ([3, None, 1], pa.int64(), (1, 3, 1)),
        ([None, None], pa.int64(), (None, None, 2)),
        ([1.5, -2.0], pa.float64(), (-2.0, 1.5, 0)),
        ([1.5, math.nan], pa.float64(), (None, None, 0)),
        ([1.5, math.inf], pa.float32(), (None, None, 0)),
        (["b", "a"], pa.string(), ("a", "b", 0)),
        (["a", "b" * 65], pa.string(), (None, None, 0)),
        ([True], pa.bool_(), (None, None, 0)),
        ([b"a"], pa.binary(), (None, None, 0)),
        ([date(2026, 1, 2)], pa.date32(), ("2026-01-02", "2026-01-02", 0)),
        ([date(1582, 1, 2)], pa.date32(), (None, None, 0)),
        ([2**31 - 1], pa.date32(), (None, None, 0)),
        ([Decimal("1.50")], pa.decimal128(5, 2), (1.5, 1.5, 0)),
        ([Decimal("2.00")], pa.decimal128(5, 2), (2, 2, 0)),
        ([Decimal(1234567890123456)], pa.decimal128(20, 0), (None, None, 0)),
        ([{"x": 1}], pa.struct([("x", pa.int64())]), (None, None, None)),
    ],
)
def test_only_what_is_certain_is_told(
    column: list[Any], kind: pa.DataType, expected: tuple[Any, ...]
) -> None:
    assert told(column, kind) == expected


def test_zero_stands_for_both_zeros() -> None:
    low, high, _ = told([0.0], pa.float64())
    assert (math.copysign(1, low), math.copysign(1, high)) == (-1, 1)


def test_moments_are_told_to_the_microsecond_and_without_a_zone_not_at_all() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    assert told([moment], pa.timestamp("us", tz="UTC"))[0] == "2026-01-02T03:04:05.678901Z"
    assert told([moment.replace(tzinfo=None)], pa.timestamp("us"))[0] is None
    assert told([datetime(1500, 1, 1, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))[0] is None


def test_a_table_says_how_many_columns_get_statistics(tmp_path: Path) -> None:
    settings = {"delta.dataSkippingNumIndexedCols": "1"}
    with opened(tmp_path, schema=SCHEMA, properties=settings) as sink:
        sink.write(pa.Table.from_pylist([{"i": 1, "f": 1.0}], SCHEMA))
        sink.commit_epoch(1)
    log = (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").read_text(encoding="utf-8")
    assert r"\"i\": 1" in log
    assert r"\"f\"" not in log


@pytest.mark.spark
def test_spark_filters_merges_and_skips_on_a_streams_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    moment = datetime(2026, 1, 1, 12, 0, 0, 123457, UTC)
    good: dict[str, Any] = {"d": Decimal("1.5000"), "day": date(2026, 1, 1), "at": moment}
    rows = [
        {"i": 1, "f": -0.0, "s": "a", **good},
        {"i": 2, "f": math.nan, "s": "z" * 70, **good},
        {"i": 3, "f": None, "s": None, "d": None, "day": None, "at": None},
    ]
    with opened(tmp_path, schema=SCHEMA) as sink:
        for n, row in enumerate(rows):
            sink.write(pa.Table.from_pylist([row], SCHEMA))
            sink.commit_epoch(n)
    spark.read.format("delta").load(f"{tmp_path}/t").createOrReplaceTempView("t")

    def found(where: str) -> list[int]:
        return sorted(row.i for row in spark.sql(f"SELECT i FROM t WHERE {where}").collect())

    assert found("f = 0.0D") == [1]
    assert found("isnan(f)") == [2]
    assert found("f > 5D") == [2]  # NaN is greater than all to Spark
    assert found(f"s = '{'z' * 70}'") == [2]
    assert found("d = 1.5 AND day = date'2026-01-01'") == [1, 2]
    assert found("at = timestamp'2026-01-01 12:00:00.123457Z'") == [1, 2]
    assert found("at > timestamp'2026-01-01 12:00:00.123457Z'") == []
    assert found("s IS NULL") == [3]
    (least,) = spark.sql("SELECT min(i), max(i), count(*) FROM t").collect()
    assert tuple(least) == (1, 3, 3)
    spark.sql(
        f"MERGE INTO delta.`{tmp_path}/t` t USING (SELECT 2L AS i, 'new' AS s) s ON t.i = s.i "
        "WHEN MATCHED THEN UPDATE SET t.s = s.s"
    )
    assert found("s = 'new'") == [2]
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 2
        sink.write(pa.Table.from_pylist([{"i": 4}], SCHEMA))
        sink.commit_epoch(3)
    assert found("i > 2") == [3, 4]


@pytest.mark.spark
def test_a_table_that_spark_made_takes_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    place = f"delta.`{tmp_path}/t`"
    spark.sql(f"CREATE TABLE {place} (id BIGINT NOT NULL, s STRING) USING delta PARTITIONED BY (s)")
    spark.sql(f"INSERT INTO {place} VALUES (1, 'a')")
    with opened(tmp_path, schema=None) as sink:
        sink.write(batch(2, 3, s="b"))
        sink.commit_epoch(1)
    spark.sql(f"INSERT INTO {place} VALUES (4, 'b')")
    with opened(tmp_path, schema=None, mode="overwrite_partitions") as sink:
        assert sink.last_committed_epoch == 1
        sink.write(batch(5, s="a"))
        sink.commit_epoch(2)
    rows = spark.sql(f"SELECT id, s FROM {place} ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(2, "b"), (3, "b"), (4, "b"), (5, "a")]
