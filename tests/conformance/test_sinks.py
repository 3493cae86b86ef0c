"""What every sink does: land a batch once, with its number, and plan without writing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaworks.contracts.context import BatchWrite
from deltaworks.errors import InputError
from deltaworks.model.commit import Txn
from tests.conformance.examples import COLUMNS, NULLS, READ_BACK, SCHEMA, SOME
from tests.conformance.stage import context, each_of, made, types_at_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

each_sink = each_of("sink")
KEEPERS = [name for name in types_at_home("sink") if made("sink", name).is_persistent]
each_keeper = pytest.mark.parametrize("name", KEEPERS)
each_other = pytest.mark.parametrize("name", sorted(set(types_at_home("sink")) - set(KEEPERS)))
BATCH = BatchWrite(n=7, txn=Txn("conformance", 7), user_metadata='{"batch": 7}')


def files(root: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in root.rglob("*")}


@each_keeper
def test_a_batch_lands_once_with_its_number(name: str, spark: SparkSession, tmp_path: Path) -> None:
    ctx, sink = context(spark, tmp_path), made("sink", name)
    frame = spark.createDataFrame(list(SOME), SCHEMA)
    assert sink.state(ctx.project_ctx, "conformance").exists is False
    first = sink.write(ctx, frame, BATCH)
    assert (first.committed, first.rows_inserted) == (True, len(SOME))
    landed = sink.state(ctx.project_ctx, "conformance")
    assert (landed.exists, landed.txn_version) == (True, 7)
    assert sink.state(ctx.project_ctx, "somebody else").txn_version is None
    before = files(tmp_path)
    again = sink.write(ctx, frame, BATCH)
    assert (again.committed, again.note) == (False, "this batch landed before")
    assert files(tmp_path) == before


@each_keeper
def test_nothing_is_committed_when_the_rows_turn_out_to_be_others(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    ctx, sink = context(spark, tmp_path), made("sink", name)
    frame = spark.createDataFrame(list(SOME), SCHEMA)

    def deny() -> None:
        raise InputError("these are not the rows that were meant")

    with pytest.raises(InputError, match="not the rows"):
        sink.write(ctx, frame, replace(BATCH, confirm=deny))
    assert sink.state(ctx.project_ctx, "conformance").txn_version is None
    assert sink.write(ctx, frame, BATCH).rows_inserted == len(SOME)


@each_sink
def test_planning_writes_nothing(name: str, spark: SparkSession, tmp_path: Path) -> None:
    ctx, sink = context(spark, tmp_path), made("sink", name)
    planned = sink.plan(ctx, spark.createDataFrame(list(SOME), SCHEMA))
    expected = (False, len(SOME)) if sink.is_persistent else (None, 0)
    assert (planned.exists, planned.rows_to_insert) == expected
    assert sink.plan_offline(ctx.project_ctx).sink
    assert files(tmp_path) == {}


@each_keeper
def test_nulls_are_written_as_nulls(name: str, spark: SparkSession, tmp_path: Path) -> None:
    ctx, sink = context(spark, tmp_path), made("sink", name)
    sink.write(ctx, spark.createDataFrame(list(NULLS), SCHEMA), BATCH)
    reader = spark.read.format(name).options(**READ_BACK.get(name, {}))
    written = reader.load(sink.target(ctx.project_ctx).location)
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
    project_ctx, sink = context(spark, tmp_path).project_ctx, made("sink", name)
    assert sink.lock_path(project_ctx) == (
        sink.target(project_ctx).location if sink.is_persistent else ""
    )


@each_other
def test_a_sink_that_keeps_nothing_never_has_a_batch(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    ctx, sink = context(spark, tmp_path), made("sink", name)
    for _ in range(2):
        info = sink.write(ctx, spark.createDataFrame(list(SOME), SCHEMA), BATCH)
        assert (info.committed, info.rows_inserted) == (False, 0)
        found = sink.state(ctx.project_ctx, "conformance")
        assert (found.exists, found.txn_version) == (False, None)
    assert files(tmp_path) == {}
