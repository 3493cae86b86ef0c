"""What every source does: say what it would read without an engine, then read exactly that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.examples import (
    COLUMNS,
    METADATA_JOBS,
    NULLS,
    READ_COLUMNS,
    SOME,
    WITHOUT_NULL,
    write_input,
)
from tests.conformance.stage import (
    context,
    counted_jobs,
    each_of,
    example,
    made,
    types_at_home,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

each_source = each_of("source")


@each_source
def test_reading_looks_at_metadata_only_until_rows_are_asked_for(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    """One job may look at a CSV's header or a Parquet footer, a few at a Delta log."""
    write_input(spark, name, example("source", name), tmp_path, SOME)
    ctx, source = context(spark, tmp_path), made("source", name)
    bounds = source.bounds(ctx.project_ctx, None)
    with counted_jobs(spark) as jobs:
        frame = source.read(ctx, bounds)
    assert jobs.count <= METADATA_JOBS
    assert tuple(frame.columns) == READ_COLUMNS.get(name, COLUMNS)
    assert frame.count() == len(SOME)


@pytest.mark.parametrize("name", [n for n in types_at_home("source") if n not in WITHOUT_NULL])
def test_nulls_are_read_as_nulls(name: str, spark: SparkSession, tmp_path: Path) -> None:
    write_input(spark, name, example("source", name), tmp_path, NULLS)
    ctx, source = context(spark, tmp_path), made("source", name)
    rows = source.read(ctx, source.bounds(ctx.project_ctx, None)).collect()
    missing = sorted(
        (row["id"] is None, row["name"] is None, row["amount"] is None) for row in rows
    )
    assert missing == [(False, True, True), (True, False, False)]


@each_source
def test_no_rows_are_an_empty_frame_with_its_columns(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    write_input(spark, name, example("source", name), tmp_path, ())
    ctx, source = context(spark, tmp_path), made("source", name)
    frame = source.read(ctx, source.bounds(ctx.project_ctx, None))
    assert (tuple(frame.columns), frame.count()) == (READ_COLUMNS.get(name, COLUMNS), 0)


@each_source
def test_bounds_hold_until_the_data_changes(name: str, spark: SparkSession, tmp_path: Path) -> None:
    from deltaworks.contracts.context import ProjectContext

    project_ctx = ProjectContext(root=tmp_path, warehouse=str(tmp_path / "warehouse"))
    write_input(spark, name, example("source", name), tmp_path, SOME)
    source = made("source", name)
    bounds = source.bounds(project_ctx, None)
    assert bounds == source.bounds(project_ctx, None)
    assert source.still_there(project_ctx, bounds) == ""
    assert source.rows(project_ctx, bounds) in (len(SOME), None)
    for path in sorted(tmp_path.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert source.still_there(project_ctx, bounds) != ""
