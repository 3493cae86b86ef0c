"""Parquet files: by folder, glob or name, with the columns their folders carry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.workbench import Workbench


def file(bench: Workbench, name: str, **columns: list[Any]) -> Path:
    path = bench.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def pipeline(bench: Workbench, options: str) -> None:
    bench.pipeline(
        "p",
        f"extract: {{type: parquet, {options}}}\n"
        "load: {type: delta, table: t, mode: overwrite, overwrite_schema: true}\n",
    )


def read(bench: Workbench, options: str) -> list[dict[str, Any]]:
    pipeline(bench, options)
    batch = bench.run("p")["batches"][0]
    rows = bench.rows("t")
    assert batch["rows_read"] == len(rows)
    return rows


def test_files_are_found_by_folder_glob_and_name_whatever_the_name(bench: Workbench) -> None:
    for i, name in enumerate(["a b.parquet", "[x]{y}.parquet", "50%25.parquet"]):
        file(bench, f"data/{name}", id=[i])
    assert [row["id"] for row in read(bench, "path: data")] == [0, 1, 2]
    assert [row["id"] for row in read(bench, 'path: "data/*b.parquet"')] == [0]
    assert [row["id"] for row in read(bench, 'path: "data/[x]{y}.parquet"')] == [1]


def test_folders_of_partitions_become_columns(bench: Workbench) -> None:
    file(bench, "in/day=2026-01-01/country=nl/a.parquet", id=[1])
    file(bench, "in/day=2026-01-02/country=N%2FA/b.parquet", id=[2])
    rows = read(bench, "path: in")
    assert [(row["id"], str(row["day"]), row["country"]) for row in rows] == [
        (1, "2026-01-01", "nl"),
        (2, "2026-01-02", "N/A"),
    ]


def test_columns_of_all_files_are_taken_when_asked(bench: Workbench) -> None:
    file(bench, "in/a.parquet", id=[1])
    file(bench, "in/b.parquet", id=[2], extra=["x"])
    assert read(bench, "path: in, merge_schema: true") == [
        {"id": 1, "extra": None},
        {"id": 2, "extra": "x"},
    ]


def test_what_is_not_a_parquet_file_is_named(bench: Workbench) -> None:
    file(bench, "in/a.parquet", id=[1])
    bench.write("in/b.parquet", "not parquet")
    pipeline(bench, "path: in")
    failed = bench.fail("p")
    assert failed.code == 1
    assert "b.parquet" in failed.stderr
    assert "is not a Parquet file" in failed.stderr
    assert bench.version("t") is None


def test_a_file_that_changes_while_it_is_read_stops_the_run(bench: Workbench) -> None:
    from deltaworks.contracts.context import ProjectContext
    from deltaworks.sources.parquet import ParquetSource

    path = file(bench, "in/a.parquet", id=[1])
    source, project_ctx = ParquetSource(path="in"), ProjectContext(root=bench.root, warehouse="")
    bounds = source.bounds(project_ctx, None)
    file(bench, "in/a.parquet", id=[1, 2])
    assert source.still_there(project_ctx, bounds) == f'file "{path}" has changed'
    path.unlink()
    assert source.still_there(project_ctx, bounds) == f'file "{path}" is gone'
