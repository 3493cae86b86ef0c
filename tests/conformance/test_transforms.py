"""What every transform does: describe new rows lazily, whatever comes in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conformance.examples import NULLS, SCHEMA, SOME, Cells, write_functions
from tests.conformance.stage import context, counted_jobs, each_of, example, made

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

each_transform = each_of("transform")


def applied(name: str, spark: SparkSession, root: Path, rows: Sequence[Cells]) -> DataFrame:
    frame = spark.createDataFrame(list(rows), SCHEMA)
    step = made("transform", name)
    write_functions(example("transform", name), root)
    others = dict.fromkeys(step.other_inputs(), frame)
    with counted_jobs(spark) as jobs:
        result: DataFrame = step.apply(context(spark, root), frame, others)
    assert jobs.count == 0
    return result


@each_transform
def test_applying_starts_no_job(name: str, spark: SparkSession, tmp_path: Path) -> None:
    result = applied(name, spark, tmp_path, SOME)
    assert result.columns
    assert result.count() == len(SOME) or not made("transform", name).keeps_every_row()


@each_transform
def test_empty_input_gives_no_rows_and_the_same_columns(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    empty = applied(name, spark, tmp_path, ())
    assert empty.count() == 0
    assert empty.columns == applied(name, spark, tmp_path, SOME).columns


@each_transform
def test_nulls_pass_without_failing(name: str, spark: SparkSession, tmp_path: Path) -> None:
    result = applied(name, spark, tmp_path, NULLS)
    step = made("transform", name)
    rows, inputs = len(result.collect()), 1 + len(step.other_inputs())
    assert rows == len(NULLS) if step.keeps_every_row() else rows <= len(NULLS) * inputs


@each_transform
def test_rows_that_leave_are_declared(name: str, spark: SparkSession, tmp_path: Path) -> None:
    step = made("transform", name)
    assert not (step.keeps_every_row() and step.drops_rows)
    assert applied(name, spark, tmp_path, SOME).count() <= len(SOME) or not step.drops_rows


def test_the_job_counter_sees_a_job(spark: SparkSession) -> None:
    with counted_jobs(spark) as jobs:
        spark.createDataFrame(list(SOME), SCHEMA).count()
    assert jobs.count > 0
