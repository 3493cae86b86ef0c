"""What the engines make of logs, files and frames that are not as they should be (P7, P11)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from deltaworks.engines.deltars.event_table import table as events
from deltaworks.engines.deltars.event_table.table import EventTable, event_schema
from deltaworks.engines.deltars.log.commits import check_log
from deltaworks.engines.deltars.query import delete_rows
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.spark.delta.tables import SparkEngine
from deltaworks.engines.spark.errors.translate import translate
from deltaworks.engines.spark.frames import row_counter as measure
from deltaworks.engines.spark.frames.row_counter import RowCounter
from deltaworks.engines.spark.read import text as text_files
from deltaworks.engines.spark.read.csv import CsvFiles
from deltaworks.engines.spark.read.text import record_error
from deltaworks.errors import (
    CommitConflict,
    DamagedTable,
    GuardError,
    InputError,
    StorageError,
    TableNotFound,
)
from deltaworks.model.commit import Txn
from deltaworks.model.write import Layout, Stamp
from deltaworks.sources.delta import DeltaSource
from deltaworks.storage import folders
from deltaworks.storage import listing as files
from tests.tables.loader import Loader
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CSV = CsvFiles(delimiter=",", quote='"', encoding="UTF-8", header=True, null_value="")


def test_a_gap_in_a_log_is_damage_not_fewer_rows(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version in (0, 2):
        (log / f"{version:020d}.json").write_text("{}")
    with pytest.raises(DamagedTable, match="commit 1 is missing"):
        check_log(str(tmp_path))


def test_somebody_elses_notes_and_absent_tables_are_no_trouble(loader: Loader) -> None:
    engine = DeltaRsEngine()
    assert engine.transaction(str(loader.path), "anyone") is None
    loader.spark.range(3).write.format("delta").option("userMetadata", "by hand").save(
        str(loader.path)
    )
    assert engine.history(str(loader.path))[0].user_metadata == {}
    assert delete_rows(str(loader.path), "id = 1", note={"why": "it's wrong"}) == 1
    assert engine.history(str(loader.path))[0].user_metadata == {"why": "it's wrong"}
    assert loader.rows() == [(0,), (2,)]


def test_a_data_file_that_is_broken_or_gone_is_named(loader: Loader) -> None:
    loader.load("(1) AS t(id)")
    data = next(loader.path.glob("*.parquet"))
    data.write_bytes(b"PAR1 not really")
    for kind, words in ((InputError, "cannot be read"), (DamagedTable, "is gone")):
        with pytest.raises(Exception, match="FAILED_READ_FILE") as caught:
            loader.rows()
        error = translate(caught.value)
        assert isinstance(error, kind)
        assert f"{data.name}" in error.message
        assert words in error.message
        data.unlink(missing_ok=True)


def test_a_table_that_another_writer_made_meanwhile_is_a_conflict(loader: Loader) -> None:
    from deltaworks.engines.spark.delta.writer import TableWriter

    loader.load("(1) AS t(id)")
    stamp = Stamp(txn=Txn("late", 1), user_metadata="{}")
    late = TableWriter(loader.spark, str(loader.path), layout=Layout(), stamp=stamp)
    with pytest.raises(Exception, match="DELTA_PATH_EXISTS") as caught:
        late._create(loader.spark.range(1))
    error = translate(caught.value)
    assert isinstance(error, CommitConflict)
    assert str(loader.path) in error.message


def test_a_rows_counter_that_nothing_passes_says_nothing(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "_MAX_WAIT_S", 0.05)
    counter = RowCounter()
    assert counter.rows() is None
    watched = counter.watch(spark.range(5))
    assert counter.rows() is None
    assert watched.count() == 5
    monkeypatch.setattr(measure, "_MAX_WAIT_S", 3.0)
    assert counter.rows() == 5


def test_a_commit_folded_into_a_checkpoint_needs_no_flush(tmp_path: Path) -> None:
    files.fsync_commit(str(tmp_path), 7)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_vanishes_while_it_is_listed_is_named(tmp_path: Path) -> None:
    (tmp_path / "in.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(StorageError, match=r'"in\.csv" cannot be read'):
        files.file_bounds(str(tmp_path / "in.csv"), written="in.csv")


def test_files_of_another_path_are_all_new(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id\n")
    one, other = (
        files.file_bounds(str(tmp_path / name), written=name) for name in ("a.csv", "b.csv")
    )
    assert [s.path for s in files.newer_files(one, other).files] == [s.path for s in one.files]
    assert files.newer_files(one, one).files == ()


def test_lines_are_looked_at_only_as_far_as_it_makes_sense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.csv").write_text("id\n1\n2\n")
    assert len(list(CSV.lines(str(tmp_path / "in.csv")))) == 3
    assert list(CSV.lines(str(tmp_path / "in.csv.zst"))) == []  # only Spark unpacks it
    monkeypatch.setattr(text_files, "_MAX_LINES", 2)
    assert len(list(CSV.lines(str(tmp_path / "in.csv")))) == 2


def test_a_bad_row_without_a_bad_cell_is_shown_whole(tmp_path: Path) -> None:
    from pyspark.sql import Row
    from pyspark.sql.types import IntegerType, StructField, StructType

    (tmp_path / "in.csv").write_text("id\n1\n")
    error = record_error(
        CSV,
        str(tmp_path / "in.csv"),
        raw="1",
        parsed=[Row(id=1)],
        columns=StructType([StructField("id", IntegerType())]),
    )
    assert error.message.endswith("in.csv:2: the row cannot be read: 1")


SCHEMA = [("name", "text"), ("n", "number"), ("at", "time")]


def test_two_runs_may_make_an_event_table_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = str(tmp_path / "events")
    first, second = (EventTable(location, event_schema(SCHEMA)) for _ in range(2))
    make_folder = folders.make_folder

    def overtaken(_: str) -> None:
        monkeypatch.setattr(events, "make_folder", make_folder)
        second.append({"name": "second", "n": 2, "at": None})

    monkeypatch.setattr(events, "make_folder", overtaken)
    first.append({"name": "first", "n": 1, "at": None})
    assert sorted(row["name"] for row in first.read()) == ["first", "second"]
    assert first.table_id == second.table_id


def test_a_full_disk_is_noticed_before_an_event_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = EventTable(str(tmp_path / "events"), event_schema(SCHEMA))
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(StorageError, match="no space left"):
        table.append({"name": "x", "n": 1, "at": None})
    assert not table.exists()


def test_many_small_event_files_are_joined_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_MAX_FILES", 2)
    table = EventTable(str(tmp_path / "events"), event_schema(SCHEMA))
    for n in range(4):
        table.append({"name": "x", "n": n, "at": None})
        table.compact()
    assert sorted(row["n"] for row in table.read(name="x")) == [0, 1, 2, 3]


def test_a_place_that_is_a_file_cannot_hold_events(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    table = EventTable(str(tmp_path / "file" / "events"), event_schema(SCHEMA))
    with pytest.raises(StorageError, match="cannot be made"):
        table.append({"name": "x", "n": 1, "at": None})


def test_added_rows_are_followed_and_deletes_left_out_when_asked(loader: Loader) -> None:
    loader.load("(1), (2) AS t(id)")
    project_ctx = loader.context.project_ctx
    source = DeltaSource(table="t", incremental=True, ignore_deletes=True)
    assert source.reads_increments()
    first = source.bounds(project_ctx, None)
    loader.sql("DELETE FROM THIS")
    loader.load("(3) AS t(id)")
    second = source.bounds(project_ctx, first)
    assert [row["id"] for row in source.read(loader.context, second).collect()] == [3]
    strict = DeltaSource(table="t", incremental=True)
    with pytest.raises(GuardError, match="changed or deleted rows"):
        strict.read(loader.context, second)
    beyond = source.bounds(project_ctx, None)
    older = source.bounds(project_ctx, first)
    assert older.position["since_version"] == 0
    ahead = type(beyond)(kind=beyond.kind, identity=beyond.identity, position={"version": 99})
    with pytest.raises(GuardError, match="though version 99 was read before"):
        source.bounds(project_ctx, ahead)


def test_counting_a_table_that_is_not_there_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFound):
        SparkEngine(spark).count(str(tmp_path))


def test_a_full_refresh_of_an_upsert_replaces_the_table(bench: Workbench) -> None:
    bench.write("in.csv", "id,v\n1,a\n2,b\n")
    bench.pipeline(
        "p",
        "extract: {type: csv, path: in.csv}\n"
        "load: {type: delta, table: t, mode: upsert, merge_keys: id}\n",
    )
    bench.run("p")
    bench.write("in.csv", "id,v\n2,B\n")
    bench.run("p", "--full-refresh")
    assert bench.rows("t") == [{"id": "2", "v": "B"}]
    assert bench.version("t") == 1
