"""Checkpoints, compaction, restore, backfill and the map of epochs, beside a live stream (S10)."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from deltaworks.engines.deltars.write.epoch_table import EpochTable
from deltaworks.errors import CommitConflict, GuardError, StorageError
from deltaworks.model.events import Event, Warned
from deltaworks.model.table_ref import TableRef
from deltaworks.streams.maintenance import MaintenancePlan
from deltaworks.streams.opening import NewTable, StreamOptions, open_stream
from tests.streams.tables import QUICK, SCHEMA, batch, ids, opened, table
from tests.workbench import Workbench

BUSY = MaintenancePlan(checkpoint_every=5, compact_files=5)


def checkpoints(folder: Path) -> int:
    return len(list((folder / "t" / "_delta_log").glob("*.checkpoint*.parquet")))


def test_small_files_are_joined_and_the_log_folded_beside_the_stream(tmp_path: Path) -> None:
    with opened(tmp_path, upkeep=BUSY) as sink:
        for n in range(40):
            sink.write(batch(n))
            sink.commit_epoch(n)
            time.sleep(0.005)
    assert ids(tmp_path) == list(range(40))
    assert checkpoints(tmp_path) >= 2
    assert len(table(tmp_path).file_uris()) < 40
    operations = [entry["operation"] for entry in table(tmp_path).history()]
    assert "OPTIMIZE" in operations
    with opened(tmp_path, upkeep=BUSY) as sink:
        assert sink.last_committed_epoch == 39


def test_no_epoch_waits_for_upkeep_and_no_reader_sees_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, started = threading.Event(), threading.Event()
    compact = EpochTable.compact

    def held(self: EpochTable, note: dict[str, Any], *, small_bytes: int) -> int:
        started.set()
        slow.wait(10)
        return compact(self, note, small_bytes=small_bytes)

    monkeypatch.setattr(EpochTable, "compact", held)
    with opened(tmp_path, upkeep=BUSY) as sink:
        for n in range(20):
            sink.write(batch(n))
            sink.commit_epoch(n)
            if n == 5:
                assert started.wait(5)
            assert ids(tmp_path) == list(range(n + 1))
        slow.set()
    assert ids(tmp_path) == list(range(20))


@pytest.mark.parametrize(
    ("error", "told"), [(StorageError("no space"), True), (CommitConflict("faster"), False)]
)
def test_upkeep_that_fails_is_told_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, told: bool
) -> None:
    def fail(*_: Any, **__: Any) -> int:
        raise error

    heard: list[Event] = []
    monkeypatch.setattr(EpochTable, "compact", fail)
    ref = TableRef("t", f"{tmp_path}/t")
    options = StreamOptions(writer_id="w", limits=QUICK, upkeep=BUSY)
    with open_stream(ref, options, new_table=NewTable(schema=SCHEMA), tell=heard.append) as sink:
        for n in range(7):
            sink.write(batch(n))
            sink.commit_epoch(n)
    warned = [event.message for event in heard if isinstance(event, Warned)]
    assert warned == (["maintenance of the table failed this time: no space"] if told else [])
    assert ids(tmp_path) == list(range(7))


def test_upkeep_can_be_left_to_others(tmp_path: Path) -> None:
    with opened(tmp_path, upkeep=MaintenancePlan(checkpoint_every=0)) as sink:
        for n in range(25):
            sink.commit_epoch(n)
    assert checkpoints(tmp_path) == 0
    with opened(tmp_path, upkeep=MaintenancePlan(checkpoint_every=5, compact_files=0)) as sink:
        for n in range(25, 31):
            sink.write(batch(n))
            sink.commit_epoch(n)
    assert checkpoints(tmp_path) == 1
    assert len(table(tmp_path).file_uris()) == 6


def test_history_is_filled_in_beside_the_live_stream(tmp_path: Path) -> None:
    with opened(tmp_path, "live") as live, opened(tmp_path, "backfill-2025") as backfill:
        for n in range(3):
            live.write(batch(n))
            live.commit_epoch(100 + n)
            backfill.write(batch(1000 + n))
            backfill.commit_epoch(n)
        assert (live.last_committed_epoch, backfill.last_committed_epoch) == (102, 2)
    assert ids(tmp_path) == [0, 1, 2, 1000, 1001, 1002]


def test_epochs_and_their_versions_can_be_asked_for(desk: Workbench) -> None:
    with desk.open().stream("events", writer_id="a", schema=SCHEMA) as sink:
        for n in (7, 8, 9):
            sink.write(batch(n))
            sink.commit_epoch(n)
    answer = desk.cli("stream", "epochs", "events", "--json")
    assert answer.code == 0, answer.stderr
    found = [(e["writer_id"], e["epoch"], e["version"], e["rows"]) for e in answer.json["epochs"]]
    assert found == [("a", 7, 1, 1), ("a", 8, 2, 1), ("a", 9, 3, 1)]
    restored = desk.cli("table", "restore", "events", "--version", "2", "--apply")
    assert restored.code == 0, restored.stderr
    shown = desk.cli("stream", "epochs", "events").stdout.splitlines()
    assert shown[0].split() == ["writer", "epoch", "version", "rows", "time", "kept"]
    assert [line.split()[-1] for line in shown[1:]] == ["yes", "yes", "no"]
    with desk.open().stream("events", writer_id="a") as sink:
        assert sink.last_committed_epoch == 8
    assert desk.cli("stream", "epochs", "nothing").code == 1


def test_a_restore_of_ours_is_known_even_when_the_log_has_forgotten_it(desk: Workbench) -> None:
    with desk.open().stream("events", writer_id="a", schema=SCHEMA) as sink:
        for n in (1, 2, 3):
            sink.commit_epoch(n)
    desk.open().restore("events", version=1, apply=True)
    folder = desk.table("events")
    from deltalake import DeltaTable

    DeltaTable(str(folder)).create_checkpoint()
    for path in sorted((folder / "_delta_log").glob("*.json")):
        path.unlink()
    with pytest.raises(GuardError, match="its log no longer shows to which version"):
        desk.open().stream("events", writer_id="a")


@pytest.mark.parametrize("cleans", [True, False])
def test_a_log_that_expired_is_removed_unless_the_table_keeps_it(
    tmp_path: Path, cleans: bool
) -> None:
    settings = {
        "delta.logRetentionDuration": "interval 0 seconds",
        "delta.enableExpiredLogCleanup": str(cleans).lower(),
    }
    with opened(tmp_path, properties=settings, upkeep=BUSY) as sink:
        for n in range(12):
            sink.write(batch(n))
            sink.commit_epoch(n)
    first = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    assert first.exists() is not cleans
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 11
    assert ids(tmp_path) == list(range(12))


def test_of_two_who_would_join_the_same_files_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """delta-rs notices no conflict between two compactions, and rows would be there twice."""
    compact, both, joined = EpochTable.compact, threading.Barrier(2, timeout=1), list[int]()

    def together(self: EpochTable, note: dict[str, Any], *, small_bytes: int) -> int:
        with suppress(threading.BrokenBarrierError):
            both.wait()  # until the other is here too, which it must never be
        joined.append(compact(self, note, small_bytes=small_bytes))
        return joined[-1]

    monkeypatch.setattr(EpochTable, "compact", together)
    plan = MaintenancePlan(checkpoint_every=6, compact_files=2)
    with opened(tmp_path, "a", upkeep=plan) as one, opened(tmp_path, "b", upkeep=plan) as two:
        for n in range(6):
            for start, sink in ((0, one), (100, two)):
                sink.write(batch(start + n))
                sink.commit_epoch(n)
    assert ids(tmp_path) == [*range(6), *range(100, 106)]
    assert joined


def test_on_an_object_store_nobody_joins_files_unasked(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with opened(f"file://{tmp_path}", upkeep=MaintenancePlan(checkpoint_every=70)) as sink:
        for n in range(75):
            sink.write(batch(n))
            sink.commit_epoch(n)
    assert len(table(tmp_path).file_uris()) == 75
    assert checkpoints(tmp_path) == 1


def test_four_streams_that_all_look_after_one_table_are_read_right_throughout(
    tmp_path: Path,
) -> None:
    opened(tmp_path).close()
    plan = MaintenancePlan(checkpoint_every=4, compact_files=4)

    def stream(start: int) -> None:
        with opened(tmp_path, f"w{start}", upkeep=plan) as sink:
            for n in range(20):
                sink.write(batch(start + n))
                sink.commit_epoch(n)

    threads = [threading.Thread(target=stream, args=(1000 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        seen = ids(tmp_path)
        whole = [
            1000 * i + n for i in range(4) for n in range(sum(one // 1000 == i for one in seen))
        ]
        assert seen == whole
    assert ids(tmp_path) == [1000 * i + n for i in range(4) for n in range(20)]
