"""An epoch lands once: repeated, out of order, skipped, from two writers, after a restore (S3)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from deltalake import Field
from deltalake.schema import PrimitiveType

from deltaworks.engines.deltars.write.epoch_table import EpochTable
from deltaworks.errors import (
    CommitConflict,
    CommitUnknown,
    ConfigError,
    EngineError,
    GuardError,
    StorageError,
)
from deltaworks.model.events import EpochCommitted, Event, RowsFlushed, Warned
from deltaworks.model.table_ref import TableRef
from deltaworks.storage.locks.file_lock import locked, table_lock
from deltaworks.streams.epochs import table_epochs
from deltaworks.streams.opening import NewTable, StreamOptions, open_stream
from tests.streams.tables import QUICK, SCHEMA, batch, ids, opened, own_files, table
from tests.workbench import Workbench


def test_an_epoch_is_one_commit_with_its_rows(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch != 1
        sink.write(batch(1))
        sink.write(batch(2))
        assert ids(tmp_path) == []
        done = sink.commit_epoch(1)
        assert (done.epoch, done.version, done.rows, done.skipped) == (1, 1, 2, False)
        assert sink.last_committed_epoch == 1
    assert ids(tmp_path) == [1, 2]


def test_after_a_restart_the_sink_knows_its_last_epoch(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.commit_epoch(41)
        sink.commit_epoch(42)
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 42


def test_a_replayed_epoch_is_skipped_with_its_rows_and_files(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        for n in (1, 2, 3):
            sink.write(batch(n))
            sink.commit_epoch(n)
        for n in (2, 3):
            sink.write(batch(n))
            assert sink.commit_epoch(n).skipped
        sink.write(batch(4))
        assert sink.commit_epoch(4).version == 4
        assert len(own_files(tmp_path)) == 4
    assert ids(tmp_path) == [1, 2, 3, 4]


def test_an_epoch_without_rows_moves_the_stream_on(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        assert sink.commit_epoch(0).version == 1
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 0


def test_a_skipped_number_is_refused_unless_gaps_are_allowed(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.commit_epoch(5)
        sink.write(batch(7))
        with pytest.raises(GuardError, match="epoch 7 does not follow epoch 5"):
            sink.commit_epoch(7)
        assert sink.commit_epoch(6).rows == 1
        with pytest.raises(GuardError, match="below 0"):
            sink.commit_epoch(-1)
    with opened(tmp_path, allow_gaps=True) as sink:
        sink.write(batch(9))
        sink.commit_epoch(9)
        assert sink.commit_epoch(8).skipped
    assert ids(tmp_path) == [7, 9]


def test_two_processes_cannot_open_one_writer(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(GuardError, match="in use"):
        opened(tmp_path)
    opened(tmp_path).close()


def twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Two sinks under one name, as on an object store, where no lock keeps them apart."""
    first = opened(tmp_path)
    monkeypatch.setattr("deltaworks.streams.opening.writer_lock", lambda *_: tmp_path / "other")
    return first, opened(tmp_path)


def test_of_two_writers_with_one_name_the_slower_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = twins(tmp_path, monkeypatch)
    first.write(batch(1))
    second.write(batch(1))
    first.commit_epoch(1)
    for _ in range(2):
        with pytest.raises(GuardError, match='another process writes as "w"'):
            second.commit_epoch(1)
    first.close()
    second.close()
    assert ids(tmp_path) == [1]


def test_a_twin_that_commits_at_the_very_same_time_is_fenced_by_delta(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = twins(tmp_path, monkeypatch)
    append = EpochTable.append

    def overtaken(self: EpochTable, *arguments: Any) -> int:
        monkeypatch.setattr(EpochTable, "append", append)
        first.write(batch(1))
        first.commit_epoch(1)
        return append(self, *arguments)

    monkeypatch.setattr(EpochTable, "append", overtaken)
    second.write(batch(2))
    with pytest.raises(GuardError, match='another process writes as "w"'):
        second.commit_epoch(1)
    first.close()
    second.close()
    assert ids(tmp_path) == [1]


def test_writers_with_names_of_their_own_share_a_table(tmp_path: Path) -> None:
    opened(tmp_path).close()

    def stream(name: str, start: int) -> None:
        with opened(tmp_path, name) as sink:
            for n in range(10):
                sink.write(batch(start + n))
                sink.commit_epoch(n)

    threads = [threading.Thread(target=stream, args=(f"w{i}", 10 * i)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids(tmp_path) == list(range(40))
    with opened(tmp_path, "w3") as sink:
        assert sink.last_committed_epoch == 9


def test_a_restore_starts_a_new_generation_at_the_epoch_that_stays(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        for n in (1, 2, 3):
            sink.write(batch(n))
            sink.commit_epoch(n)
    table(tmp_path).restore(1)
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 1
    with opened(tmp_path) as sink:  # nothing was committed meanwhile, so the same answer
        assert sink.last_committed_epoch == 1
        for n in (2, 3, 4):
            sink.write(batch(n))
            assert not sink.commit_epoch(n).skipped
    assert ids(tmp_path) == [1, 2, 3, 4]
    table(tmp_path).restore(0)
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch is None
        sink.write(batch(1))
        sink.commit_epoch(1)
    table(tmp_path).restore(6)  # into the second generation, past a restore
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 3
    assert ids(tmp_path) == [1, 2, 3]
    kept = [(e.epoch, e.version) for e in table_epochs(TableRef("t", f"{tmp_path}/t")) if e.kept]
    assert kept == [(1, 1), (2, 5), (3, 6)]


def test_a_restore_under_an_open_stream_stops_it(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.commit_epoch(1)
        sink.commit_epoch(2)
        table(tmp_path).restore(1)
        sink.write(batch(3))
        with pytest.raises(GuardError, match="set back while the stream was open"):
            sink.commit_epoch(3)
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 1


def test_a_restore_that_cannot_be_followed_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.commit_epoch(1)
        sink.commit_epoch(2)
    table(tmp_path).restore(1)
    log = tmp_path / "t" / "_delta_log" / "00000000000000000003.json"
    told = log.read_text(encoding="utf-8")
    log.write_text(told.replace('"version":"1"', '"version":null'), encoding="utf-8")
    with pytest.raises(GuardError, match="cannot be determined which epochs"):
        opened(tmp_path)
    log.write_text(told.replace('"version":"1"', '"version":"99"'), encoding="utf-8")
    with pytest.raises(GuardError, match="cannot be determined which epochs"):
        opened(tmp_path)


def test_spark_and_the_sink_take_turns(tmp_path: Path) -> None:
    with opened(tmp_path, lock_wait_seconds=0.1) as sink:
        sink.write(batch(1))
        with (
            locked([table_lock(f"{tmp_path}/t")], wait_seconds=0, notify=lambda _: None),
            pytest.raises(GuardError, match="in use by process"),
        ):
            sink.commit_epoch(1)
        assert sink.commit_epoch(1).rows == 1


def broken(times: int, error: Exception, *, after: bool) -> Any:
    """A commit that fails so often, before or after it reached the table."""
    append, left = EpochTable.append, [times]

    def fail(self: EpochTable, *arguments: Any) -> int:
        if not left[0]:
            return append(self, *arguments)
        left[0] -= 1
        if after:
            append(self, *arguments)
        raise error

    return fail


@pytest.mark.parametrize("error", [StorageError("the network is away"), EngineError("who knows")])
def test_a_commit_of_unknown_outcome_is_looked_up_before_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with opened(tmp_path) as sink:
        sink.write(batch(1))
        monkeypatch.setattr(EpochTable, "append", broken(1, error, after=True))
        assert sink.commit_epoch(1).version == 1
        sink.write(batch(2))
        sink.commit_epoch(2)
    assert ids(tmp_path) == [1, 2]


def test_a_conflict_and_an_outage_are_waited_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as sink:
        sink.write(batch(1))
        monkeypatch.setattr(EpochTable, "append", broken(2, CommitConflict("x"), after=False))
        assert sink.commit_epoch(1).version == 1


def test_after_an_outage_that_lasts_the_same_rows_land_with_the_same_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as sink:
        sink.write(batch(1))
        with monkeypatch.context() as outage:
            outage.setattr(EpochTable, "append", broken(99, StorageError("away"), after=False))
            with pytest.raises(StorageError, match="away"):
                sink.commit_epoch(1)
        sink.write(batch(2))
        with pytest.raises(GuardError, match="epoch 1 is not settled yet"):
            sink.commit_epoch(2)
        assert sink.commit_epoch(1).rows == 1
        assert ids(tmp_path) == [1]
        sink.commit_epoch(2)
    assert ids(tmp_path) == [1, 2]


def test_when_even_the_look_fails_the_error_says_so_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: EpochTable, version: int | None = None) -> EpochTable:
        raise StorageError(f"away {version}")

    with opened(tmp_path) as sink:
        sink.write(batch(1))
        with monkeypatch.context() as outage:
            outage.setattr(EpochTable, "append", broken(99, EngineError("torn"), after=True))
            outage.setattr(EpochTable, "reopened", gone)
            with pytest.raises(CommitUnknown, match="not known whether epoch 1 landed: torn"):
                sink.commit_epoch(1)
        assert sink.commit_epoch(1).version == 1
    assert ids(tmp_path) == [1]


def test_a_closed_stream_takes_nothing(tmp_path: Path) -> None:
    heard: list[Event] = []
    ref = TableRef("t", f"{tmp_path}/t")
    sink = open_stream(
        ref,
        StreamOptions(writer_id="w", limits=QUICK),
        new_table=NewTable(schema=SCHEMA),
        tell=heard.append,
    )
    sink.commit_epoch(1)
    sink.write(batch(1))
    assert sink.close() == 1
    assert sink.close() == 0
    assert own_files(tmp_path) == []
    with pytest.raises(GuardError, match="closed"):
        sink.write(batch(1))
    with pytest.raises(GuardError, match="closed"):
        sink.commit_epoch(2)
    flushed = [event for event in heard if isinstance(event, RowsFlushed)]
    assert [event.rows for event in flushed] == [1]
    committed, warned = (event for event in heard if not isinstance(event, RowsFlushed))
    assert isinstance(committed, EpochCommitted)
    assert committed.commit.version == 1
    assert isinstance(warned, Warned)
    assert warned.message == "1 rows were never committed and are given up"


@pytest.mark.parametrize("name", ["", "a.b", "a/b", "-a", "x" * 65])
def test_a_name_that_could_be_mistaken_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="not a writer id"):
        opened(tmp_path, name)


def test_a_project_streams_into_its_tables(desk: Workbench) -> None:
    heard: list[Event] = []
    project = desk.open(listeners=[heard.append])
    with project.stream("events", writer_id="ingest-1", schema=SCHEMA) as sink:
        sink.write(batch(1, 2))
        sink.commit_epoch(42)
    assert [row["id"] for row in desk.rows("events")] == [1, 2]
    with desk.open().stream("events", writer_id="ingest-1") as sink:
        assert sink.last_committed_epoch == 42
    assert [(e.writer_id, e.epoch, e.version) for e in project.epochs("events")] == [
        ("ingest-1", 42, 1)
    ]
    assert [type(event) for event in heard] == [RowsFlushed, EpochCommitted]


def test_a_table_that_changes_its_columns_stops_an_open_stream(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.write(batch(1))
        sink.commit_epoch(1)
        new = Field("extra", PrimitiveType("long"))
        table(tmp_path).alter.add_columns(new)
        sink.write(batch(2))
        with pytest.raises(GuardError, match="columns or properties changed"):
            sink.commit_epoch(2)
    with opened(tmp_path) as sink:
        sink.write(batch(2))
        sink.commit_epoch(2)
    assert ids(tmp_path) == [1, 2]
