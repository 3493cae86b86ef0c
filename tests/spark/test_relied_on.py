"""Runs give the same rows whatever the Spark of the process was started with."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from deltaworks.engines.spark.session.connect import require_java_zone, sibling
from deltaworks.engines.spark.session.required_conf import (
    ALWAYS,
    CATALOG_KEY,
    DELTA_CATALOG,
    UNLESS_TOLD,
    relied_on,
    require_settled,
    settle,
)
from deltaworks.engines.spark.transforms.pivot import pivoted
from deltaworks.errors import ConfigError
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OTHERS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.databricks.delta.schema.autoMerge.enabled": "true",
}
"""What somebody may have started a Spark with."""


@pytest.fixture
def other_start(jvm: SparkSession) -> Iterator[SparkSession]:
    """The JVM of these tests, as if somebody else had started it."""
    conf = jvm.sparkContext._jsc.sc().conf()
    before = {key: conf.get(key, None) for key in OTHERS}
    for key, value in OTHERS.items():
        conf.set(key, value)
    yield jvm
    for key, value in before.items():
        conf.set(key, value) if value is not None else conf.remove(key)


def upserting(bench: Workbench) -> None:
    bench.pipeline(
        "visits",
        "extract: {type: csv, path: visits.csv}\n"
        "transform: [{type: cast, columns: {at: timestamp}}]\n"
        "load: {type: delta, table: visits, mode: upsert, merge_keys: [at], writer: spark}\n",
    )


def test_a_session_that_its_user_brought_is_left_alone_and_changes_no_row(
    bench: Workbench, other_start: SparkSession
) -> None:
    theirs = other_start.newSession()
    asked = theirs.conf.getAll
    upserting(bench)
    done = []
    with bench.open(spark=theirs) as project:
        for who in ("Ada", "Bo"):
            bench.write(
                "visits.csv", f"at,who\n2026-06-01 12:00:00,{who}\n2026-06-01 13:00,{who}\n"
            )
            result = project.run("visits")
            done.append((result.batches[-1].outputs[0].rows_inserted, result.status))
    assert done == [(2, "succeeded"), (0, "succeeded")]
    assert {key: theirs.conf.get(key) for key in OTHERS} == OTHERS
    assert theirs.conf.getAll == asked
    rows = sibling(other_start).read.format("delta").load(str(bench.root / "warehouse/visits"))
    found = rows.selectExpr("unix_seconds(at)", "who").orderBy("at").collect()
    noon = int(datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp())
    assert [tuple(row) for row in found] == [(noon, "Bo"), (noon + 3600, "Bo")]


def test_a_spark_that_is_up_already_is_told_all_we_rely_on(
    bench: Workbench, other_start: SparkSession
) -> None:
    assert other_start.newSession().conf.get("spark.sql.session.timeZone") == "America/New_York"
    bench.write(
        "deltaworks.yaml",
        "project: shop\nwarehouse: ./warehouse\n"
        "engine:\n  conf:\n    spark.sql.parquet.binaryAsString: 'true'\n"
        "    spark.sql.shuffle.partitions: 3\n",
    )
    with bench.open() as project:
        base = project.spark
        for session in (base, sibling(base), sibling(sibling(base))):
            found = session.conf.getAll
            assert ALWAYS.items() <= found.items()
            assert found["spark.sql.parquet.datetimeRebaseModeInRead"] == "CORRECTED"
            assert found["spark.sql.parquet.binaryAsString"] == "true"
            assert found["spark.sql.shuffle.partitions"] == "3"


@pytest.mark.parametrize(
    ("theirs", "ours"), [("builtin", DELTA_CATALOG), ("com.example.Catalog", "com.example.Catalog")]
)
def test_a_catalog_of_the_users_own_is_left_alone(
    spark: SparkSession, theirs: str, ours: str
) -> None:
    spark.conf.set(CATALOG_KEY, theirs)
    settle(spark, {})
    assert spark.conf.get(CATALOG_KEY) == ours


def test_a_session_that_would_give_other_rows_is_refused(spark: SparkSession) -> None:
    settle(spark, {})
    require_settled(spark, {})
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    with pytest.raises(ConfigError, match=r"timeZone must be UTC .* and is Europe/Paris"):
        require_settled(spark, {})
    spark.conf.unset("spark.sql.session.timeZone")
    spark.conf.unset("spark.sql.mapKeyDedupPolicy")
    settle(spark, {"spark.sql.mapKeyDedupPolicy": "LAST_WIN"})
    require_settled(spark, {"spark.sql.mapKeyDedupPolicy": "last_win"})


def test_every_setting_we_rely_on_is_one_that_spark_or_delta_has(spark: SparkSession) -> None:
    unknown = [key for key in relied_on({}) if not spark.conf.isModifiable(key)]
    assert unknown == []
    assert not ALWAYS.keys() & UNLESS_TOLD.keys()


def test_a_text_that_looks_like_a_variable_stays_a_text(spark: SparkSession) -> None:
    row = sibling(spark).range(1).selectExpr("'${env:HOME} ${spark.master}' AS said").first()
    assert row is not None
    assert row["said"] == "${env:HOME} ${spark.master}"


def test_a_pivot_tells_the_two_hours_of_a_clock_change_apart(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of summer an hour comes twice where this process may be."""
    from pyspark.sql import functions as F

    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        rows = spark.sql(
            "SELECT 1 AS id, timestamp_seconds(n) AS at, n "
            "FROM VALUES (1793511000), (1793514600) t(n)"
        )
        found = pivoted(rows, [F.col("id")], "at", values=(), figures=[F.sum("n")]).collect()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [tuple(row) for row in found] == [(1, 1793511000, 1793514600)]


def test_a_database_is_not_read_where_javas_clock_changes(jvm: SparkSession) -> None:
    zones = jvm._jvm.java.util.TimeZone  # type: ignore[union-attr]
    assert zones.getDefault().getID() == "UTC"
    require_java_zone(jvm)
    zones.setDefault(zones.getTimeZone("America/New_York"))
    try:
        with pytest.raises(ConfigError, match="time zone America/New_York, where the clock"):
            require_java_zone(jvm)
    finally:
        zones.setDefault(zones.getTimeZone("UTC"))
