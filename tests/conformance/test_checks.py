"""What every check does: hold on no rows at all, and judge NULL without failing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deltaworks.contracts.check import RowCheck, TableCheck
from deltaworks.contracts.context import RunContext
from tests.conformance.examples import METADATA_JOBS, NULLS, SCHEMA, SOME, write_input
from tests.conformance.stage import context, counted_jobs, each_of, example, made

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

each_check = each_of("check")


def ready(spark: SparkSession, root: Path) -> RunContext:
    """A run in a project that has the table which examples look into."""
    write_input(spark, "delta", example("source", "delta"), root, SOME)
    return context(spark, root)


@each_check
def test_a_rule_over_rows_is_a_condition_and_starts_no_job(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    check = made("check", name)
    frame, ctx = spark.createDataFrame(list(SOME), SCHEMA), ready(spark, tmp_path)
    if isinstance(check, RowCheck):
        with counted_jobs(spark) as jobs:
            judged = frame.select(check.condition(ctx, frame).alias("holds"))
        assert jobs.count <= (METADATA_JOBS if check.tables_read(ctx.project_ctx) else 0)
        assert [row["holds"] for row in judged.collect()] == [True, True]
    else:
        assert isinstance(check, TableCheck)
        assert check.measure(ctx, frame).passed


@each_check
def test_no_rows_break_no_rule(name: str, spark: SparkSession, tmp_path: Path) -> None:
    check = made("check", name)
    frame = spark.createDataFrame([], SCHEMA)
    if isinstance(check, RowCheck):
        condition = check.condition(ready(spark, tmp_path), frame)
        assert frame.select(condition.alias("holds")).collect() == []
    else:
        assert check.measure(ready(spark, tmp_path), frame).passed


@each_check
def test_nulls_are_judged_not_crashed_on(name: str, spark: SparkSession, tmp_path: Path) -> None:
    check = made("check", name)
    frame = spark.createDataFrame(list(NULLS), SCHEMA)
    if isinstance(check, RowCheck):
        condition = check.condition(ready(spark, tmp_path), frame)
        found = {row["holds"] for row in frame.select(condition.alias("holds")).collect()}
        assert found <= {True, False, None}
        assert True in found
    else:
        assert check.measure(ready(spark, tmp_path), frame).passed


@each_check
def test_a_check_says_what_its_rule_is(name: str) -> None:
    assert made("check", name).rule_text()
    assert made("check", name, name="mine").rule_text() == "mine"
