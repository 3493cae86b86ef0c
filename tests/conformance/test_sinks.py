"""What every sink does: land a batch once, with its number, and plan without writing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deltaworks.contracts.context import BatchWrite
from deltaworks.model.commit import Txn
from tests.conformance.examples import COLUMNS, NULLS, SCHEMA, SOME
from tests.conformance.stage import context, each_of, made

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

each_sink = each_of("sink")
BATCH = BatchWrite(n=7, txn=Txn("conformance", 7), user_metadata='{"batch": 7}')


def files(root: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in root.rglob("*")}


@each_sink
def test_a_batch_lands_once_with_its_number(name: str, spark: SparkSession, tmp_path: Path) -> None:
    ctx, sink = context(spark, tmp_path), made("sink", name)
    frame = spark.createDataFrame(list(SOME), SCHEMA)
    assert sink.state(ctx.site, "conformance").exists is False
    first = sink.write(ctx, frame, BATCH)
    assert (first.committed, first.rows_inserted) == (True, len(SOME))
    landed = sink.state(ctx.site, "conformance")
    assert (landed.exists, landed.txn_version) == (True, 7)
    assert sink.state(ctx.site, "somebody else").txn_version is None
    before = files(tmp_path)
    again = sink.write(ctx, frame, BATCH)
    assert (again.committed, again.note) == (False, "this batch landed before")
    assert files(tmp_path) == before


@each_sink
def test_planning_writes_nothing(name: str, spark: SparkSession, tmp_path: Path) -> None:
    ctx, sink = context(spark, tmp_path), made("sink", name)
    planned = sink.plan(ctx, spark.createDataFrame(list(SOME), SCHEMA))
    assert (planned.exists, planned.rows_to_insert) == (False, len(SOME))
    assert sink.plan_offline(ctx.site).sink
    assert files(tmp_path) == {}


@each_sink
def test_nulls_are_written_as_nulls(name: str, spark: SparkSession, tmp_path: Path) -> None:
    ctx, sink = context(spark, tmp_path), made("sink", name)
    sink.write(ctx, spark.createDataFrame(list(NULLS), SCHEMA), BATCH)
    written = spark.read.format(name).load(sink.target(ctx.site).location)
    assert {tuple(row) for row in written.select(*COLUMNS).collect()} == set(NULLS)


@each_sink
def test_no_rows_are_no_error(name: str, spark: SparkSession, tmp_path: Path) -> None:
    ctx, sink = context(spark, tmp_path), made("sink", name)
    info = sink.write(ctx, spark.createDataFrame([], SCHEMA), BATCH)
    assert info.rows_inserted == 0


@each_sink
def test_a_writer_asks_for_the_folder_it_changes(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    site, sink = context(spark, tmp_path).site, made("sink", name)
    assert sink.lock_path(site) == sink.target(site).location
