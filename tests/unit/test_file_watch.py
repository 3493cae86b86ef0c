"""Files that Spark reads are looked after until it has read them."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from deltaworks.contracts.context import ProjectContext
from deltaworks.errors import InputError
from deltaworks.model.batch import FILES, Bounds, FileStamp
from deltaworks.pipeline.stages import Extract, Plan
from deltaworks.runtime.source_bounds import FileWatch
from deltaworks.sources.csv import CsvSource


def plan_of(source: CsvSource) -> Plan:
    """As much of a plan as bounds are asked of."""
    stage = Extract(name="orders", plugin=source, line=1)
    return cast("Plan", SimpleNamespace(sources=[stage]))


def test_a_file_that_changes_has_the_reader_stopped(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id\n1\n")
    project_ctx = ProjectContext(root=tmp_path, warehouse=str(tmp_path / "warehouse"))
    source = CsvSource(path="a.csv", incremental=True)
    bounds = {"orders": source.bounds(project_ctx, None)}
    stopped = threading.Event()
    with FileWatch(plan_of(source), project_ctx, bounds, stopped.set) as watch:
        watch.confirm()
        assert not stopped.wait(0.3)
        path.write_text("id\n2\n")
        assert stopped.wait(5)
    assert "has changed" in watch.problem
    with pytest.raises(InputError, match="changed while it was read"):
        watch.confirm()


def test_what_is_not_on_disk_is_not_watched(tmp_path: Path) -> None:
    stamp = FileStamp("s3://b/a.csv", 3, 1, "tag", name="s3://b/a.csv")
    bounds = {"orders": Bounds(kind=FILES, identity="s3://b/a.csv", files=(stamp,))}
    project_ctx = ProjectContext(root=tmp_path, warehouse=str(tmp_path))
    source = CsvSource(path="s3://b/a.csv")
    with FileWatch(plan_of(source), project_ctx, bounds, lambda: None) as watch:
        watch.confirm()
    assert watch.problem == ""
