"""A position in a Delta table is one of that table's own history, or the run stops."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.connectors.delta.source import TableSource
from deltaworks.contracts.context import ProjectContext
from deltaworks.errors import GuardError
from deltaworks.model.batch import FILES, Bounds, same_bounds
from deltaworks.sources.delta import DeltaSource
from deltaworks.sources.delta_changes import DeltaChangesSource

FEED = {"delta.enableChangeDataFeed": "true"}
SOURCES = pytest.mark.parametrize("kind", [DeltaSource, DeltaChangesSource])


def table(root: Path, *ids: int, fresh: bool = True) -> str:
    """A table with a commit for each id."""
    path = str(root / "src")
    if fresh:
        shutil.rmtree(path, ignore_errors=True)
    for one in ids:
        rows = pa.table({"id": pa.array([one], pa.int64())})
        write_deltalake(path, rows, mode="append", configuration=FEED)
    return path


def project_ctx(root: Path) -> ProjectContext:
    return ProjectContext(root=root, warehouse=str(root))


def source(kind: type[TableSource] = DeltaSource, **switches: bool) -> TableSource:
    return kind.model_validate({"table": "src", "incremental": True, **switches})


def on_record(bounds: Bounds) -> Bounds:
    return Bounds.from_json(bounds.to_json())


@SOURCES
def test_a_table_made_anew_under_the_same_name_is_not_read_silently(
    tmp_path: Path, kind: type[TableSource]
) -> None:
    table(tmp_path, 1, 2)
    read = on_record(source(kind).bounds(project_ctx(tmp_path), None))
    table(tmp_path, 1, 2, 3)
    with pytest.raises(GuardError, match="is not the table that the last batch read") as caught:
        source(kind).bounds(project_ctx(tmp_path), read)
    assert "--from 0" in caught.value.hint
    assert "--full-refresh" in caught.value.hint
    assert source(kind).start_at(project_ctx(tmp_path), "0") is None


@SOURCES
def test_a_table_put_back_from_a_copy_that_grew_again_is_noticed(
    tmp_path: Path, kind: type[TableSource]
) -> None:
    """It has its id, and commits under the same numbers with other rows in them."""
    path = table(tmp_path, 1)
    shutil.copytree(path, tmp_path / "backup")
    table(tmp_path, 2, 3, fresh=False)
    read = on_record(source(kind).bounds(project_ctx(tmp_path), None))
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "backup", path)
    with pytest.raises(GuardError, match="though version 2 was read before"):
        source(kind).bounds(project_ctx(tmp_path), read)
    table(tmp_path, 7, 8, 9, fresh=False)
    with pytest.raises(GuardError, match="put back from a copy"):
        source(kind).bounds(project_ctx(tmp_path), read)
    assert "another table" in source(kind).still_there(project_ctx(tmp_path), read)


def test_positions_of_older_versions_go_on(tmp_path: Path) -> None:
    table(tmp_path, 1)
    new = source().bounds(project_ctx(tmp_path), None)
    position = {"version": new.position["version"], "rows": new.position["rows"]}
    old = Bounds(kind=new.kind, identity=new.identity, position=position)
    assert same_bounds({"s": old}, {"s": new})
    assert source().still_there(project_ctx(tmp_path), old) == ""
    table(tmp_path, 2, fresh=False)
    assert source().bounds(project_ctx(tmp_path), old).position["since_version"] == 0


def test_what_was_read_of_something_else_is_no_position(tmp_path: Path) -> None:
    table(tmp_path, 1)
    files = Bounds(kind=FILES, identity="data/*.csv")
    for kind in (DeltaSource, DeltaChangesSource):
        found = source(kind).bounds(project_ctx(tmp_path), files)
        assert "since_version" not in found.position


def test_a_table_set_back_to_before_what_was_read_stops_the_run(tmp_path: Path) -> None:
    path = table(tmp_path, 1, 2, 3)
    read = on_record(source().bounds(project_ctx(tmp_path), None))
    DeltaTable(path).restore(0)
    for one in (source(), source(skip_change_commits=True), source(ignore_deletes=True)):
        with pytest.raises(GuardError, match="set back to before what was read") as caught:
            one.bounds(project_ctx(tmp_path), read)
        assert "--from 4" in caught.value.hint
    table(tmp_path, 4, fresh=False)
    after = source().start_at(project_ctx(tmp_path), "4")
    assert source().bounds(project_ctx(tmp_path), after).position["since_version"] == 3


def test_a_table_set_back_to_what_was_read_goes_on(tmp_path: Path) -> None:
    path = table(tmp_path, 1, 2)
    read = on_record(source().bounds(project_ctx(tmp_path), None))
    table(tmp_path, 3, fresh=False)
    DeltaTable(path).restore(1)
    assert source().bounds(project_ctx(tmp_path), read).position["version"] == 3


def test_a_table_that_was_replaced_stops_the_run_unless_a_switch_says_what_that_means(
    tmp_path: Path,
) -> None:
    path = table(tmp_path, 1)
    read = on_record(source().bounds(project_ctx(tmp_path), None))
    log = Path(path) / "_delta_log"
    text = '{"commitInfo": {"operation": "CREATE OR REPLACE TABLE AS SELECT"}}\n'
    (log / f"{1:020d}.json").write_text(text)
    with pytest.raises(GuardError, match=r"was replaced \(in version 1\)"):
        source().bounds(project_ctx(tmp_path), read)
    assert source(ignore_changes=True).bounds(project_ctx(tmp_path), read).position["version"] == 1


def test_commits_that_say_nothing_of_themselves_are_read_on(tmp_path: Path) -> None:
    path = table(tmp_path, 1)
    read = on_record(source().bounds(project_ctx(tmp_path), None))
    text = '{"txn": {"appId": "other", "version": 1}}\n'
    (Path(path) / "_delta_log" / f"{1:020d}.json").write_text(text)
    assert source().bounds(project_ctx(tmp_path), read).position["version"] == 1
