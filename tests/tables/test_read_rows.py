"""Rows read by delta-rs are those that Spark reads, for every type and every condition."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from deltaworks.engines.deltars.read.scan import scan_rows
from deltaworks.engines.spark.delta.tables import SparkEngine
from deltaworks.errors import UnsupportedOperation
from deltaworks.model.selection import Selection
from deltaworks.tables.plain_values import plain_lists
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAN = math.nan
CONDITIONS = [
    *("id = 2", "id <> 2", "id >= 2 AND id < 4", "2 < id", "NOT id = 1", "id IN (1, 3)"),
    *("id NOT IN (1, 3)", "id BETWEEN 2 AND 3", "small = -5", "small > id", "id = 9000000000"),
    *("f > 100", "f = 0", "f < 0", "f >= 0.5", "f <= 1e0", "f <> f", "f = f", "f IN (0, 1.0)"),
    *("g > 0.1", "g = 0.1", "g >= 2", "g < -1.5", "f IS NULL", "f IS NOT NULL"),
    *("money = 1.5", "money > 1.49", "money < 0", "money = 12345678.91", "money <> 0.00"),
    *("long_money > 12345678901234567890.1234567890", "long_money >= 1", "long_money = -0.5"),
    *("ok", "NOT ok", "ok = true", "ok IS NULL", "name = 'a'", "name > 'b'", "name LIKE 'ä%'"),
    *("name LIKE '_'", "name LIKE '%\n%'", "name = ''", "name IN ('a', 'b')", 'name = "a"'),
    *("day < '1582-10-15'", "day = DATE '1582-10-10'", "day >= '2020-02-29'", "day > '9999-01-01'"),
    *(
        "at < '1600-01-01'",
        "at >= TIMESTAMP '2020-01-01 00:00:00.1234'",
        "at > '2262-05-01 00:00:00'",
    ),
    *("at > '2262-05-01 00:00:00'", "at = '2020-01-01T00:00:00.123456Z'", "at = DATE '2020-01-01'"),
    *("plain_at < '1600-01-01 00:00:00'", "plain_at = '2020-01-01 00:00:00.123456'"),
    *("place = 'a/b'", "place IS NULL", "place <> 'a/b'", "since < '1600-01-01'", "since IS NULL"),
    *("nested.a = 1", "nested.f > 100", "nested.f = 0", "nested IS NULL", "nested.inner.b = 'x'"),
    *("NESTED.A IS NULL", "Id = 1 OR (nAme = 'b' AND f > 0)", "tags IS NULL"),
]
SPARK_ONLY = ["id + 1 = 2", "upper(name) = 'A'", "id = '2'", "f > id", "name <=> NULL", "id > 1.5"]
COLUMNS: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "small": pa.int16(),
    "f": pa.float64(),
    "g": pa.float32(),
    "money": pa.decimal128(10, 2),
    "long_money": pa.decimal128(38, 10),
    "ok": pa.bool_(),
    "name": pa.string(),
    "bytes": pa.binary(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "plain_at": pa.timestamp("us"),
    "nested": pa.struct(
        [("a", pa.int32()), ("f", pa.float64()), ("inner", pa.struct([("b", pa.string())]))]
    ),
    "tags": pa.list_(pa.string()),
    "prices": pa.map_(pa.string(), pa.decimal128(5, 2)),
    "items": pa.list_(pa.struct([("at", pa.timestamp("us", "UTC")), ("n", pa.float32())])),
    "place": pa.string(),
    "since": pa.date32(),
}
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "small": -5,
        "f": 1.0,
        "g": 0.1,
        "money": Decimal("1.50"),
        "long_money": Decimal("12345678901234567890.1234567891"),
        "ok": True,
        "name": "a",
        "bytes": b"\x00\xff",
        "day": date(1, 1, 1),
        "at": datetime(1500, 1, 1, 1, 2, 3, 4, tzinfo=UTC),
        "plain_at": datetime.fromisoformat("0001-01-01"),
        "nested": {"a": 1, "f": NAN, "inner": {"b": "x"}},
        "tags": ["q", None, ""],
        "prices": [("k", Decimal("1.10")), ("l", None)],
        "items": [{"at": datetime(1600, 1, 1, tzinfo=UTC), "n": 1.5}, None],
        "place": "a/b",
        "since": date(1500, 1, 1),
    },
    {
        "id": 2,
        "small": 3,
        "f": NAN,
        "g": NAN,
        "money": Decimal("-0.01"),
        "long_money": Decimal("-0.5"),
        "ok": False,
        "name": "ä\nb",
        "bytes": b"",
        "day": date(1582, 10, 10),
        "at": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        "plain_at": datetime.fromisoformat("9999-12-31 23:59:59.999999"),
        "nested": {"a": None, "f": -0.0, "inner": None},
        "tags": [],
        "prices": [],
        "items": [],
        "place": "ü% #?",
        "since": date(2020, 1, 1),
    },
    {
        "id": 3,
        "small": 0,
        "f": -0.0,
        "g": math.inf,
        "money": Decimal("12345678.91"),
        "long_money": Decimal(0),
        "ok": None,
        "name": "",
        "day": date(9999, 12, 31),
        "at": datetime(2020, 1, 1, 0, 0, 0, 123456, tzinfo=UTC),
        "plain_at": datetime.fromisoformat("2020-01-01 00:00:00.123456"),
        "nested": {"a": 2**31 - 1, "f": 1.0, "inner": {"b": None}},
    },
    {"id": 4, "f": -math.inf, "g": -2.5, "name": "b", "day": date(2020, 2, 29)},
    {"id": 5, "name": "a" * 200, "at": datetime(2020, 1, 1, tzinfo=UTC), "place": "a/b"},
]


def all_types() -> pa.Table:
    """Rows with values of every type, extremes among them."""
    schema = pa.schema(list(COLUMNS.items()))
    return pa.Table.from_pylist([dict.fromkeys(COLUMNS) | row for row in ROWS], schema)


def copied(spark: SparkSession, source: str, table: Path, *, timestamps: str, vectors: bool) -> str:
    """A copy of a table that Spark wrote."""
    spark.conf.set("spark.sql.parquet.outputTimestampType", timestamps)
    frame = spark.read.format("delta").load(source).repartition(2, "small")
    writer = frame.write.format("delta").option("delta.enableDeletionVectors", vectors)
    writer.partitionBy("place", "since").save(str(table))
    return str(table)


def tables_of_all_kinds(bench: Workbench, spark: SparkSession) -> dict[str, str]:
    """The same rows in every form that delta-rs reads; one is deleted where there are vectors."""
    first, whole = str(bench.table("by_deltars")), str(bench.table("whole"))
    write_deltalake(first, all_types(), partition_by=["place", "since"])
    write_deltalake(whole, all_types())

    def by_spark(name: str, *, timestamps: str = "TIMESTAMP_MICROS", vectors: bool = False) -> str:
        return copied(spark, first, bench.table(name), timestamps=timestamps, vectors=vectors)

    found = {"delta-rs": first, "one file": whole, "Spark": by_spark("by_spark")}
    found["INT96"] = by_spark("int96", timestamps="INT96")
    found["vectors"] = by_spark("vectors", vectors=True)
    spark.sql(f"DELETE FROM delta.`{found['vectors']}` WHERE id = 4")
    return found


def test_both_engines_read_and_choose_the_same(bench: Workbench, spark: SparkSession) -> None:
    expected = plain_lists(all_types())
    for kind, location in tables_of_all_kinds(bench, spark).items():
        by_deltars = scan_rows(location, Selection()).sort_by("id")
        by_spark = SparkEngine(spark).rows(location, Selection()).sort_by("id")
        assert by_deltars.schema.equals(by_spark.schema), kind
        kept = [row for row in expected if kind != "vectors" or row[0] != 4]
        assert plain_lists(by_deltars) == plain_lists(by_spark) == kept, kind
        assert chosen_by_deltars(location) == chosen_by_spark(spark, location), kind


def test_days_by_the_old_calendar_are_left_to_spark(bench: Workbench, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    old = spark.sql("SELECT 1 AS id, DATE '1500-01-01' AS day")
    old.write.format("delta").save(str(bench.table("old")))
    with pytest.raises(UnsupportedOperation, match="the old calendar"):
        scan_rows(str(bench.table("old")), Selection())
    found = bench.open().read("old", where="id = 1")
    assert found.to_pylist() == [{"id": 1, "day": date(1500, 1, 1)}]


def chosen_by_deltars(location: str) -> dict[str, list[int]]:
    """The rows that each condition chooses."""
    found = {}
    for condition in CONDITIONS:
        rows = scan_rows(location, Selection(where=condition, columns=("id",)))
        found[condition] = sorted(rows.column("id").to_pylist())
    return found


def chosen_by_spark(spark: SparkSession, location: str) -> dict[str, list[int]]:
    """The same, each row judged by itself, so that no statistics can hide one."""
    frame = SparkEngine(spark).read(location)
    judged = frame.selectExpr("id", *[f"({text}) AS c{n}" for n, text in enumerate(CONDITIONS)])
    rows = sorted(judged.collect())
    return {text: [row[0] for row in rows if row[n + 1]] for n, text in enumerate(CONDITIONS)}


def test_what_may_differ_is_left_to_spark(bench: Workbench) -> None:
    location = str(bench.table("orders"))
    write_deltalake(location, all_types())
    for condition in SPARK_ONLY:
        with pytest.raises(UnsupportedOperation):
            scan_rows(location, Selection(where=condition))
    found = bench.open().table("orders").rows(where="upper(name) = 'A'", columns=["NAME"], limit=1)
    assert (found.engine, found.rows.to_pylist(), found.more) == ("spark", [{"name": "a"}], False)


def test_a_table_with_mapped_columns_is_read_by_spark(
    bench: Workbench, spark: SparkSession
) -> None:
    location = str(bench.table("silver/mapped"))
    spark.sql(
        f"CREATE TABLE delta.`{location}` (id INT, old STRING, part STRING) USING delta "
        "PARTITIONED BY (part) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"INSERT INTO delta.`{location}` VALUES (1, 'a', 'x'), (2, 'b', NULL)")
    spark.sql(f"ALTER TABLE delta.`{location}` RENAME COLUMN old TO new")
    answer = bench.cli("table", "rows", "silver.mapped", "--where", "new = 'a'", "--json")
    assert answer.json["engine"] == "spark"
    assert answer.json["versions"] == {"silver.mapped": 2}
    assert answer.json["rows"] == [{"id": 1, "new": "a", "part": "x"}]
    refused = bench.cli("sql", "SELECT * FROM silver.mapped")
    assert "column mapping" in refused.stderr
    assert "--engine spark" in refused.stderr
    query = "SELECT silver.mapped.new FROM silver.mapped WHERE mapped.id / 2 = 0.5"
    asked = bench.cli("sql", query, "--engine", "spark", "--json")
    assert asked.json["rows"] == [{"new": "a"}]
    older = "SELECT count(*) AS n FROM silver.mapped VERSION AS OF 0"
    assert bench.cli("sql", older, "--engine", "spark", "--limit", "0", "--csv").stdout == "n\n0\n"
