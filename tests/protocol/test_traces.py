"""Traces that once lost, doubled or hid a row: each is told again on tables in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from deltaworks.errors import DeltaworksError
from deltaworks.runtime.quarantine.table import Choice
from tests.protocol.explore import (
    Act,
    Explorer,
    Scope,
    _by_hand,
    _deliver,
    _older,
    _older_ledger,
    _recreate,
    _toggle,
    _undo,
    engines,
    problems,
)
from tests.protocol.world import Died, Process, World

ONE = (("a", "append"),)
FOLDER = (("a", "folder"),)
TWO = (("a", "append"), ("b", "append"))
MIXED = (("a", "append"), ("b", "upsert"))


def told(modes: Any, *steps: str, whole: bool = False) -> tuple[Process, list[str]]:
    """The world after some steps, and what was refused; `step!3` dies before its effect 3."""
    explorer = Explorer(Scope(modes=modes))
    world = World(modes=modes, sinks=tuple(name for name, _ in modes), whole=whole)
    refused = []
    with engines(explorer._process):
        for step in steps:
            words, _, dies = step.partition("!")
            process = Process(world, dies_before=int(dies) if dies else None)
            explorer.current = process
            try:
                take(process, words.split())
            except Died:
                pass
            except DeltaworksError as error:
                refused.append(f"{words}: {error.message}")
            world = process.world
    return process, refused


def take(process: Process, words: list[str]) -> None:
    """One step of a trace."""
    kind, *more = words
    runs: dict[str, dict[str, Any]] = {
        "run": {},
        "down": {"down": "".join(more)},
        "from": {"start": "".join(more)},
        "named": {"batch_id": "".join(more)},
        "refresh": {"full_refresh": True},
        "replay": {"replay": Choice()},
        "meddled": {"meanwhile": lambda p: take(p, more)},
    }
    if kind in runs:
        process.run(**{"new_sinks": "backfill", **runs[kind]})
        return
    steps: dict[str, Act] = {
        "deliver": _deliver,
        "older": _older_ledger,
        "oldcopy": _older("".join(more)),
        "recreate": _recreate("".join(more)),
        "toggle": _toggle,
        "unversioned": _without_versions,
        "foreign": lambda p: _foreign(p, *more),
        "drop": lambda p: _drop(p, *more),
        "byhand": lambda p: _set_back(p, *more),
        "restore": lambda p: p.restore(more[0], int(more[1])),
        "undo": lambda p: _undo(_runs(p)[int(more[0])])(p),
    }
    steps[kind](process)


def _runs(process: Process) -> list[str]:
    return list(dict.fromkeys(entry.run_id for entry in process.state().batches))


def _foreign(process: Process, name: str, *rows: str) -> None:
    process.commit(name, (*process.world.rows(name), *rows), txn=None)


def _set_back(process: Process, name: str, version: str) -> None:
    _by_hand(name, int(version))(process)


def _without_versions(process: Process) -> None:
    """The ledger says of undos only that they happened, as older versions wrote it."""
    documents = [json.loads(text) for text in process.world.events]
    for document in documents:
        if document["kind"] == "undone":
            document["detail"] = "{}"
    events = tuple(json.dumps(document, sort_keys=True) for document in documents)
    process.world = replace(process.world, events=events)


def _drop(process: Process, gone: str) -> None:
    tables = tuple((name, log) for name, log in process.world.tables if name != gone)
    incarnations = process.world.incarnations + 1
    process.world = replace(process.world, tables=tables, incarnations=incarnations)


def wrong(process: Process) -> Iterable[str]:
    """What is wrong with the world a trace ends in."""
    return problems(process)


@pytest.mark.parametrize(
    "trace",
    [
        "deliver, run, refresh, refresh, restore a 0, restore a 1, run",
        "deliver, run, refresh, replay, restore a 0, restore a 1, run",
        "deliver, run, refresh, restore a 0, restore a 1, restore a 0, run",
        "deliver, run, refresh, refresh, restore a 0, restore a 2, restore a 3, run",
        "deliver, run, replay, undo 0, restore a 0, run",
        "run, undo 0, deliver, refresh, replay, undo 1, restore a 1, run",
        "run, deliver, run, replay, undo 1, restore a 0, restore a 1, run",
        "deliver, run, replay, undo 0, restore a 0, restore a 2, restore a 1, run",
        "deliver, run, refresh, refresh, undo 2, replay, restore a 1, restore a 4, run",
    ],
)
def test_the_quarantine_follows_a_table_over_generations(trace: str) -> None:
    process, refused = told(ONE, *trace.split(", "))
    assert not refused
    assert not wrong(process)


def test_a_refresh_replaces_what_a_restore_left_of_a_later_generation() -> None:
    trace = "deliver, run, refresh, restore a 0, refresh, restore a 0, restore b 0, run"
    process, refused = told(TWO, *trace.split(", "))
    assert not refused
    assert process.world.quarantined() == ("f2",)
    assert not wrong(process)


def test_what_a_restore_left_is_there_again_when_the_refresh_after_it_is_undone() -> None:
    trace = "run, refresh, restore a 0, refresh, undo 2, restore b 1, run"
    _, refused = told(TWO, *trace.split(", "))
    assert refused == ['run: batch 2 was taken out of some sinks and still is in "b"']


def test_rows_of_an_older_generation_stay_out_of_quarantine_when_a_refresh_comes_back() -> None:
    trace = "deliver, run, refresh, refresh, undo 2, restore a 2, restore b 2, run"
    process, refused = told(TWO, *trace.split(", "))
    assert not refused
    assert process.world.quarantined() == ("f2",)
    assert not wrong(process)


def test_replayed_rows_stay_out_of_quarantine_when_a_refresh_is_undone_once_more() -> None:
    trace = "deliver, run, refresh, undo 1, replay, restore a 1, restore a 3, run"
    process, refused = told(TWO, *trace.split(", "))
    assert not refused
    assert not wrong(process)


def test_a_version_is_of_the_generation_that_landed_in_it_last() -> None:
    trace = "run, refresh, undo 1, restore a 0, deliver, run, replay, restore b 3"
    process, _ = told(TWO, *trace.split(", "))
    assert process.state().generation == 0
    process, _ = told(TWO, *trace.split(", "), "run", "refresh")
    assert not wrong(process)


def test_a_restore_over_three_generations_returns_rows_once() -> None:
    trace = "deliver, run, refresh, restore a 0, replay, refresh, restore a 1, restore a 2, run"
    process, _ = told(ONE, *trace.split(", "))
    assert process.world.quarantined() == ("f2",)


@pytest.mark.xfail(strict=True, reason="a batch of an older generation counts as in the table")
def test_a_replay_before_two_refreshes_returns_its_rows() -> None:
    trace = "deliver, run, replay, refresh, restore a 0, refresh, restore a 2, restore a 3, run"
    process, _ = told(ONE, *trace.split(", "))
    assert process.world.quarantined() == ("f2",)


def test_tables_of_two_generations_stop_a_run() -> None:
    trace = "run, deliver, refresh, refresh, restore a 0, restore b 1, run"
    _, refused = told(TWO, *trace.split(", "))
    assert refused == ['run: batch 2 was taken out of some sinks and still is in "b"']


def test_no_run_is_undone_while_tables_are_of_two_generations() -> None:
    process, refused = told(TWO, "run", "refresh", "restore a 0", "undo 0")
    assert refused == ['undo 0: batch 2 was taken out of some sinks and still is in "b"']
    assert process.world.rows("b") == ("f1", "p1")


@pytest.mark.parametrize(
    ("modes", "trace"),
    [
        (ONE, "run, deliver, down a, undo 1, run"),
        (ONE, "run, deliver, down a, undo 1!1, run"),
        (ONE, "run, deliver, down a, refresh!3, run"),
        (ONE, "run, deliver, down a, refresh!4, run"),
        (ONE, "run, deliver, run, deliver, down a, restore a 0, restore a 1, run"),
        (ONE, "run, deliver, down a, refresh, restore a 0, run"),
        (ONE, "down a, run!1, refresh, restore a 0, run"),
        (TWO, "run, deliver, down b, deliver, down b!2, run"),
        (TWO, "run, deliver, down b, deliver, down b!3, run"),
        (ONE, "run, deliver, run, restore a 0, down a, restore a 1, run"),
    ],
)
def test_rows_that_were_parked_have_one_fate(modes: Any, trace: str) -> None:
    process, refused = told(modes, *trace.split(", "))
    assert not refused
    assert not wrong(process)


def test_no_run_is_undone_whose_parked_batch_is_loaded_unknown_to_the_ledger() -> None:
    process, refused = told(TWO, "run", "deliver", "down b", "run!1", "undo 1", "run")
    assert len(refused) == 1
    assert "ledger does not know it yet" in refused[0]
    assert not [row for name in "ab" for row in process.world.rows(name) if row == "f2"]
    assert process.world.rows("a") == process.world.rows("b")


@pytest.mark.parametrize(
    "trace",
    [
        "run, deliver, run, deliver, run, undo 2, restore a 0, run",
        "run, deliver, run, deliver, run, undo 2, restore a 0, run, run",
        "run, deliver, run, restore a 0, run, restore a 1, restore a 3, run",
        "run, deliver, run, deliver, run, deliver, run, undo 3, restore a 1, run, run",
    ],
)
def test_a_batch_that_is_loaded_again_is_loaded_once(trace: str) -> None:
    process, refused = told(ONE, *trace.split(", "))
    assert not refused
    assert not wrong(process)
    assert process.world.quarantined() == ("f2",)


def test_a_batch_that_changed_nothing_in_one_sink_is_undone_as_a_whole() -> None:
    process, refused = told(MIXED, "run", "deliver", "foreign b p2", "run", "undo 1", "run")
    assert not refused
    assert process.state().batch(2).state == "undone"
    assert process.world.rows("a") == ("f1", "p1")


def test_an_undo_says_whose_it_is() -> None:
    """A pipeline of the same name in another project may write the same table."""
    process, _ = told(ONE, "run", "deliver", "run", "undo 1")
    assert json.loads(process.world.commits("a")[-1].note)["project"] == "shop"


@pytest.mark.parametrize("taken_back", ["undo 1", "restore a 0"])
def test_a_full_refresh_gets_out_when_a_table_was_deleted(taken_back: str) -> None:
    steps = ["run", "deliver", "run", taken_back, "drop a", "run", "refresh", "deliver", "run"]
    process, refused = told(ONE, *steps)
    assert len(refused) == 1
    assert "is gone" in refused[0]
    assert not wrong(process)


@pytest.mark.parametrize("ends", ["run, run", "run, run, toggle, run, run"])
def test_a_restored_batch_is_read_again_once_though_a_sink_was_taken_out(ends: str) -> None:
    trace = f"run, deliver, run, restore a 0, restore b 0, toggle, {ends}"
    process, refused = told(TWO, *trace.split(", "))
    assert not refused
    assert not wrong(process)


def test_rows_of_a_replay_stay_out_of_quarantine_when_only_its_backfill_is_taken_back() -> None:
    for trace in (
        "deliver, run, toggle, replay, toggle, run, restore b 0",
        "toggle, deliver, run, replay, toggle, run, restore b 0",
    ):
        process, refused = told(TWO, *trace.split(", "))
        assert not refused
        assert process.world.quarantined() == ()
        process, refused = told(TWO, *trace.split(", "), "run")
        assert not refused
        assert not wrong(process)


def test_rows_of_a_replay_return_to_quarantine_though_its_backfill_stays() -> None:
    trace = "deliver, run, toggle, replay, toggle, run, restore a 0"
    process, refused = told(TWO, *trace.split(", "))
    assert not refused
    assert process.world.quarantined() == ("f2",)


def test_a_batch_that_one_sink_has_by_a_backfill_is_not_read_again_into_it() -> None:
    trace = "run, toggle, deliver, run, toggle, run, restore a 0, run"
    process, refused = told(TWO, *trace.split(", "))
    assert refused == [
        'run: batch 2 was taken out of "a" by a restore, and still is in "b", which appends'
    ]
    process, refused = told(TWO, *trace.split(", ")[:-1], "restore b 0", "run")
    assert not refused
    assert not wrong(process)


def test_a_sink_that_kept_a_batch_does_not_get_it_twice_when_it_comes_back() -> None:
    trace = "run, deliver, run, restore a 0, toggle, run, toggle, run"
    process, refused = told(TWO, *trace.split(", "))
    assert not refused
    assert not wrong(process)
    trace = "run, deliver, run, restore a 0, toggle, deliver, run, toggle, run"
    process, refused = told(TWO, *trace.split(", "))
    assert refused == ['run: batch 3 read batch 2 again, which "b" still has']
    assert process.world.rows("b") == ("f1", "p1", "p2")


@pytest.mark.parametrize(
    "trace",
    [
        "deliver, run, refresh, older, restore a 0",
        "deliver, run, undo 0, older, restore a 0",
        "run, undo 0, older, refresh, restore a 1",
    ],
)
def test_no_table_is_restored_over_what_its_ledger_lost(trace: str) -> None:
    process, refused = told(ONE, *trace.split(", "))
    assert len(refused) == 1
    assert "is ahead of the ledger" in refused[0]
    process, refused = told(ONE, *trace.split(", "), "refresh")
    assert not wrong(process)


def test_no_run_is_undone_in_a_table_that_was_set_back_by_hand() -> None:
    process, refused = told(ONE, "run", "deliver", "run", "byhand a 0", "undo 0", "run")
    assert ["set back to an older version by hand" in one for one in refused] == [True, True]
    assert process.world.rows("a") == ("f1", "p1")


def test_a_version_after_a_restore_by_hand_is_no_place_to_go_to() -> None:
    trace = "run, deliver, run, byhand a 0, restore a 1, restore a 2"
    process, refused = told(ONE, *trace.split(", "))
    assert refused == [
        "restore a 2: version 2 comes after version 2, in which the table was set back by hand"
    ]
    assert process.world.rows("a") == ("f1", "p1", "p2")


def test_a_point_to_start_from_is_kept_though_nothing_is_there_yet() -> None:
    process, refused = told(ONE, "run", "deliver", "from 3", "run", "deliver", "run")
    assert not refused
    assert process.world.rows("a") == ("f1", "f3", "p1", "p3")


def test_a_point_is_kept_by_the_next_run_that_is_told_it() -> None:
    process, _ = told(ONE, "run", "deliver", "from 3!1", "from 3", "deliver", "run")
    assert process.world.rows("a") == ("f1", "f3", "p1", "p3")


def test_what_was_loaded_again_and_then_undone_stays_out() -> None:
    trace = "run, deliver, run, deliver, run, undo 2, restore a 0, run, undo 3, run"
    process, refused = told(ONE, *trace.split(", "))
    assert not refused
    assert process.world.rows("a") == ("f1", "p1")


@pytest.mark.parametrize("mode", ["append", "upsert", "overwrite"])
def test_a_whole_read_that_was_undone_is_not_read_again_until_it_changes(mode: str) -> None:
    modes = (("a", mode),)
    process, refused = told(modes, "run", "undo 0", "run", whole=True)
    assert not refused
    assert process.world.rows("a") == ()
    process, _ = told(modes, "run", "undo 0", "run", "deliver", "run", whole=True)
    assert process.world.rows("a") == ("f1", "p1", "p2")
    process, _ = told(modes, "run", "undo 0", "named x", whole=True)
    assert process.world.rows("a") == ("f1", "p1")


@pytest.mark.parametrize(
    "trace",
    [
        "deliver, run, run, undo 1, named x!3, run",
        "deliver, run, run!3, named x, undo 2, run",
        "deliver, run, run!3, named x!0, named x!1, run",
    ],
)
def test_refused_rows_stay_when_a_batch_that_judged_them_again_was_given_up(trace: str) -> None:
    process, _ = told((("a", "upsert"),), *trace.split(", "), whole=True)
    assert process.world.quarantined() == ("f2",)


def test_an_undo_of_an_older_ledger_has_the_version_of_its_commit() -> None:
    trace = "run, deliver, run, undo 1, unversioned, restore a 1, run"
    process, refused = told(ONE, *trace.split(", "))
    assert not refused
    assert process.world.rows("a") == ("f1", "p1", "p2")
    assert process.state().batch(2).state == "done"
    trace = "run, deliver, run, undo 1, unversioned, deliver, run, restore a 2, run"
    process, refused = told(ONE, *trace.split(", "))
    assert not refused
    assert process.world.rows("a") == ("f1", "f3", "p1", "p3")


@pytest.mark.parametrize(
    "trace",
    [
        "deliver, run, refresh!4, oldcopy a, run",
        "deliver, run, replay!3, oldcopy a, run",
        "deliver, run, deliver, run, undo 0!3, oldcopy a, run",
        "run, deliver, run, deliver, run, restore a 0!3, oldcopy a, run",
    ],
)
def test_the_quarantine_goes_back_with_an_older_copy_of_a_table(trace: str) -> None:
    """A process died after it had changed the quarantine, and its commit is not there any more."""
    process, refused = told(ONE, *trace.split(", "))
    assert not refused
    assert process.world.quarantined() == ("f2",)
    assert not wrong(process)


@pytest.mark.parametrize("step", ["byhand a 0", "recreate a"])
@pytest.mark.parametrize("kind", ["meddled", "down a, meddled"])
def test_a_table_that_is_set_back_while_a_batch_is_loaded_stops_the_run(
    step: str, kind: str
) -> None:
    trace = f"run, deliver, run, deliver, {kind} {step}, run"
    _, refused = told(ONE, *trace.split(", "))
    assert "while batch 3 was being loaded" in refused[0]
    assert len(refused) == 2
    process, _ = told(ONE, *trace.split(", "), "refresh")
    assert not wrong(process)


def test_a_table_that_is_replaced_after_a_batch_landed_in_it_stops_the_run() -> None:
    process, refused = told(TWO, "run!2", "meddled recreate a", "run")
    assert ["while batch 1 was being loaded" in one for one in refused] == [True, True]
    assert process.world.rows("a") == ()


def test_a_table_that_is_replaced_before_a_batch_is_planned_stops_the_run() -> None:
    _, refused = told(TWO, "down b", "deliver", "meddled recreate a")
    assert len(refused) == 1
    assert "does not hold batch 1 any more" in refused[0]


def test_a_folder_with_a_refresh_that_the_ledger_lost_stops_the_run() -> None:
    trace = "deliver, run, refresh, older, run"
    process, refused = told(FOLDER, *trace.split(", "))
    assert ["a full refresh landed there" in one for one in refused] == [True]
    process, _ = told(FOLDER, *trace.split(", "), "refresh")
    assert not wrong(process)


def test_a_folder_that_is_replaced_while_a_batch_is_loaded_stops_the_run() -> None:
    trace = "run, deliver, meddled recreate a, run"
    _, refused = told(FOLDER, *trace.split(", "))
    assert "while batch 2 was being loaded" in refused[0]
    assert len(refused) == 2
