"""The ledger: what events amount to, and that two runs cannot write the same one."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from deltaworks.engines.deltars.event_table.table import EventTable, event_schema
from deltaworks.errors import CommitConflict, DamagedTable, GuardError, StorageError
from deltaworks.model.batch import FILES, Bounds, FileStamp, Pin
from deltaworks.model.commit import CommitInfo, SinkState, Txn
from deltaworks.runtime.ledger.state import (
    ABANDONED,
    DONE,
    NOT_RESTORED,
    PLANNED,
    RESTORED,
    RESTORING,
    REVERTED,
    BatchEntry,
    LedgerState,
    Restore,
    SinkEntry,
)
from deltaworks.runtime.ledger.table import Ledger, landed_sink, replay

AT = datetime(2026, 1, 2, 10, tzinfo=UTC)
SINK = SinkEntry(name="delta", app_id="app", identity="table", txn_found=None)
BOUNDS = Bounds(kind=FILES, identity="/d/*.csv", files=(FileStamp("/d/1.csv", 5, 6),))


def entry(n: int, **fields: Any) -> BatchEntry:
    known: dict[str, Any] = {
        "batch_id": None,
        "run_id": f"run-{n}",
        "spec": "spec",
        "generation": 0,
        "state": PLANNED,
        "bounds": {"source": BOUNDS},
        "sinks": (SINK,),
        "at": AT,
    }
    return BatchEntry(n=n, **{**known, **fields})


def ledger(tmp_path: Path, pipeline: str = "orders", project: str = "shop") -> Ledger:
    return Ledger.open(str(tmp_path), project=project, pipeline=pipeline)


def landed(version: int) -> list[SinkEntry]:
    info = CommitInfo(committed=True, version=version)
    return [landed_sink(SINK, info, SinkState(identity="made", exists=True, version=version))]


RESTORE = Restore(
    restore_id="r1",
    sink="delta",
    location="/lake/t",
    table_id="made",
    version_from=3,
    version_to=1,
    batches=(2, 3),
    generation=0,
)


def test_a_ledger_that_was_never_written_is_empty_and_stays_unmade(tmp_path: Path) -> None:
    state = ledger(tmp_path).state()
    assert (state, state.next_batch, state.unfinished) == (LedgerState(), 1, None)
    assert list(tmp_path.iterdir()) == []


def test_what_was_planned_is_read_back_to_the_last_field(tmp_path: Path) -> None:
    pins = {"/lake/known": Pin("table", 7)}
    planned = entry(1, batch_id="monday", generation=2, replaces=True, pins=pins)
    ledger(tmp_path).planned(planned, LedgerState())
    state = ledger(tmp_path).state()
    assert state.unfinished == replace(planned, first_event=1)
    assert (state.generation, state.next_generation) == (0, 3)
    assert (state.events, state.next_batch) == (1, 2)


def test_a_batch_goes_from_planned_to_done(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    state = book.planned(entry(1), book.state())
    later = AT + timedelta(minutes=5)
    book.done(entry(1), state, landed(4), later)
    state = ledger(tmp_path).state()
    assert state.unfinished is None
    done = state.done()[0]
    assert (done.state, done.at, done.sinks[0].version) == (DONE, later, 4)
    assert (done.sinks[0].landed, done.sinks[0].committed) == (True, True)
    assert (SINK.identity, done.sinks[0].identity) == ("table", "made")


def test_an_abandoned_batch_keeps_its_number(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    state = book.planned(entry(1), book.state())
    state = book.abandoned(entry(1), state, AT)
    assert (state.unfinished, state.next_batch, state.events) == (None, 2, 2)
    read = ledger(tmp_path).state()
    assert (read.batches[0].state, read.next_batch, read.done()) == (ABANDONED, 2, ())


def test_what_is_kept_in_memory_equals_what_is_read_back(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    state = book.state()
    for n in (1, 2, 3):
        state = book.planned(entry(n), state)
        state = book.done(entry(n), state, landed(n), AT)
    read = ledger(tmp_path).state()
    assert (read.events, read.generation, read.next_batch) == (6, 0, 4)
    assert [b.n for b in state.batches] == [b.n for b in read.batches] == [1, 2, 3]
    assert {b.state for b in (*state.batches, *read.batches)} == {DONE}
    assert state.batches[0].sinks == read.batches[0].sinks


@pytest.mark.parametrize("outcome", [RESTORED, NOT_RESTORED, ""])
def test_a_restore_takes_batches_back_once_it_is_confirmed(tmp_path: Path, outcome: str) -> None:
    book = ledger(tmp_path)
    state = book.state()
    for n in (1, 2, 3):
        state = book.planned(entry(n), state)
        state = book.done(entry(n), state, landed(n), AT)
    state = book.restore(RESTORING, RESTORE, state, AT)
    if outcome:
        state = book.restore(outcome, replace(RESTORE, version=4), state, AT)
    read = ledger(tmp_path).state()
    assert (read.restoring, read.restored) == (state.restoring, state.restored)
    assert read.restoring == (() if outcome else (RESTORE,))
    assert [b.n for b in read.done()] == ([1] if outcome == RESTORED else [1, 2, 3])
    reverted = {b.n for b in read.batches if b.state == REVERTED and b.reverted == {"delta"}}
    assert reverted == ({2, 3} if outcome == RESTORED else set())
    assert read.next_batch == 4


def test_a_generation_begins_when_its_first_batch_is_in() -> None:
    rows = [row(1, PLANNED, 1), row(2, DONE, 1), row(3, PLANNED, 2, generation=1)]
    for last in (row(4, ABANDONED, 2, generation=1), row(4, PLANNED, 3)):
        state = replay([*rows, last])
        assert ([b.n for b in state.done()], state.generation) == ([1], 0)
        assert state.next_generation == 2


def test_pipelines_and_projects_do_not_see_each_other(tmp_path: Path) -> None:
    ledger(tmp_path).planned(entry(1), LedgerState())
    assert ledger(tmp_path, pipeline="other").state() == LedgerState()
    assert ledger(tmp_path, project="other").state() == LedgerState()


def test_a_second_driver_gets_no_second_batch_of_one_number(tmp_path: Path) -> None:
    first, second = ledger(tmp_path), ledger(tmp_path)
    first.planned(entry(1), first.state())
    seen_by_both = (first.state(), second.state())
    first.done(entry(1), seen_by_both[0], landed(0), AT)
    with pytest.raises(GuardError, match='another run of pipeline "orders"'):
        second.abandoned(entry(1), seen_by_both[1], AT)
    assert [b.state for b in ledger(tmp_path).state().batches] == [DONE]


def test_two_pipelines_may_write_the_ledger_at_once(tmp_path: Path) -> None:
    one, two = ledger(tmp_path, pipeline="one"), ledger(tmp_path, pipeline="two")
    states = one.state(), two.state()
    one.planned(entry(1), states[0])
    two.planned(entry(1), states[1])
    assert ledger(tmp_path, pipeline="one").state().next_batch == 2
    assert ledger(tmp_path, pipeline="two").state().next_batch == 2


def test_many_runs_that_begin_at_once_make_one_ledger(tmp_path: Path) -> None:
    for attempt in range(10):
        gate = threading.Barrier(8, timeout=20)

        def named(_: int, gate: threading.Barrier = gate, place: int = attempt) -> str:
            gate.wait()
            return ledger(tmp_path / str(place)).table.table_id

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(named, range(8)))) == 1
        assert ledger(tmp_path / str(attempt)).table._handle().version() == 0


def test_a_writers_name_is_its_ledgers_its_projects_and_its_own(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.planned(entry(1), LedgerState())
    table_id = book.table.table_id
    assert book.app_id("delta", 3) == f"deltaworks:{table_id}:shop:orders:delta:3"


def row(event: int, kind: str, batch: int, **fields: Any) -> dict[str, Any]:
    detail = {"sources": {}, "sinks": [], "replaces": False} if kind == PLANNED else {}
    known = {
        "event": event,
        "kind": kind,
        "batch": batch,
        "batch_id": None,
        "run_id": "r",
        "spec": "s",
        "generation": 0,
        "at": AT,
        "detail": json.dumps(detail),
    }
    return {**known, **fields}


def test_only_batches_of_the_last_generation_count_as_done() -> None:
    state = replay(
        [
            row(1, PLANNED, 1),
            row(2, DONE, 1),
            row(3, PLANNED, 2, generation=1),
            row(4, DONE, 2, generation=1),
        ]
    )
    assert [b.n for b in state.done()] == [2]
    assert (state.generation, state.next_batch) == (1, 3)


def test_kinds_of_events_that_a_later_release_writes_harm_nobody() -> None:
    state = replay([row(1, PLANNED, 1), row(2, DONE, 1), row(3, "undone", 1), row(4, "x", 9)])
    assert (state.events, state.done(), state.unfinished) == (4, (), None)


def test_an_event_table_refuses_a_transaction_twice(tmp_path: Path) -> None:
    schema = event_schema([("name", "text"), ("n", "number")])
    one, two = (EventTable(f"{tmp_path}/events", schema) for _ in range(2))
    one.append({"name": "a", "n": 1}, txn=Txn("app", 1))
    assert [r["name"] for r in two.read()] == ["a"]
    one.append({"name": "b", "n": 2}, txn=Txn("app", 2))
    with pytest.raises(CommitConflict):
        two.append({"name": "c", "n": 2}, txn=Txn("app", 2))
    assert sorted(r["name"] for r in two.read()) == ["a", "b"]


def test_event_tables_without_a_transaction_take_everybody(tmp_path: Path) -> None:
    schema = event_schema([("name", "text")])
    one, two = (EventTable(f"{tmp_path}/events", schema) for _ in range(2))
    one.append({"name": "a"})
    two.append({"name": "b"})
    one.append({"name": "c"})
    assert sorted(r["name"] for r in one.read()) == ["a", "b", "c"]
    assert [r["name"] for r in one.read(name="b")] == ["b"]


def test_many_small_files_are_joined_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltaworks.engines.deltars.event_table.table._MAX_FILES", 3)
    table = EventTable(f"{tmp_path}/events", event_schema([("n", "number")]))
    for n in range(5):
        table.append({"n": n})
    table.compact()
    assert sorted(r["n"] for r in table.read()) == [0, 1, 2, 3, 4]
    assert sorted(r["n"] for r in EventTable(f"{tmp_path}/events", table.schema).read()) == [
        *range(5)
    ]


def test_a_damaged_ledger_is_named_and_not_taken_for_empty(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.planned(entry(1), LedgerState())
    (tmp_path / "_deltaworks/batches/_delta_log/00000000000000000001.json").write_text("")
    with pytest.raises(DamagedTable, match="commit 1 is an empty file"):
        ledger(tmp_path).state()


def test_a_full_disk_is_told_before_delta_rs_panics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltaworks.storage.folders._MIN_FREE_BYTES", 1 << 62)
    with pytest.raises(StorageError, match="no space left"):
        ledger(tmp_path).planned(entry(1), LedgerState())


def test_two_who_join_the_files_of_one_ledger_double_no_event(tmp_path: Path) -> None:
    location = str(tmp_path / "events")
    schema = event_schema((("n", "number"),))
    first = EventTable(location, schema)
    for n in range(66):
        first.append({"n": n})
    second = EventTable(location, schema)
    second.read()
    first.compact()
    second.compact()  # from a handle that has not heard of it
    assert sorted(row["n"] for row in EventTable(location, schema).read()) == list(range(66))


@pytest.mark.parametrize("place", ["warehouse/sales/t", "data/t"])
def test_the_places_of_a_restore_and_of_pins_go_with_the_project(
    tmp_path: Path, place: str
) -> None:
    old, new = tmp_path / "old", tmp_path / "elsewhere" / "new"
    (old / "warehouse").mkdir(parents=True)
    new.parent.mkdir()
    books = ledger(old / "warehouse")
    pins = {f"{old}/{place}": Pin("made", 4), "s3://lake/t": Pin("other", 5)}
    state = books.planned(entry(1, pins=pins), LedgerState())
    books.restore(RESTORING, replace(RESTORE, location=f"{old}/{place}"), state, AT)
    old.rename(new)
    found = ledger(new / "warehouse").state()
    assert [one.location for one in found.restoring] == [f"{new}/{place}"]
    assert dict(found.batch(1).pins) == {
        f"{new}/{place}": Pin("made", 4),
        "s3://lake/t": Pin("other", 5),
    }


def test_a_place_far_from_the_warehouse_stays_where_it_is(tmp_path: Path) -> None:
    books = ledger(tmp_path / "warehouse")
    books.restore(RESTORING, RESTORE, LedgerState(), AT)
    assert books.state().restoring[0].location == "/lake/t"
