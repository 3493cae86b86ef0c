"""All that can happen to a small warehouse was tried: no row is lost, doubled or hidden (B3).

The number of worlds is printed. What the decisions were before they were mended is put back one by
one, and each time the exploration must find a world in which a row is wrong.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Any

import pytest

from deltaworks.contracts.context import BatchWrite
from deltaworks.model.commit import CommitInfo, Txn
from deltaworks.redact import safe_json
from deltaworks.runtime.batch import decide
from deltaworks.runtime.batch import verify_sinks as trust
from deltaworks.runtime.ledger import evidence
from deltaworks.runtime.ledger.state import BatchEntry, LedgerState, SinkEntry
from deltaworks.runtime.quarantine import table as quarantine
from deltaworks.runtime.recovery import undo
from tests.protocol.explore import Explorer, Findings, Scope

SINGLE = (("a", "append"),)
FOLDER = (("a", "folder"),)
KEYED = (("a", "upsert"),)
BOTH = (("a", "append"), ("b", "append"))
MIXED = (("a", "append"), ("b", "upsert"))
SAMPLE = int(os.environ.get("DELTAWORKS_WORLDS", "400"))


def explored(modes: tuple[tuple[str, str], ...], depth: int, **budgets: int) -> Findings:
    """A scope in which only what is named can happen, besides runs."""
    given = tuple(sorted(budgets.items()))
    return Explorer(Scope(modes=modes, depth=depth, budgets=given)).explore()


@pytest.mark.parametrize(
    "modes", [SINGLE, KEYED, BOTH, MIXED], ids=["one", "keyed", "two", "mixed"]
)
def test_whatever_happens_every_row_is_where_it_belongs(
    modes: tuple[tuple[str, str], ...], capsys: pytest.CaptureFixture[str]
) -> None:
    found = Explorer(Scope(modes=modes, depth=4, max_worlds=SAMPLE)).explore()
    with capsys.disabled():
        sys.stdout.write(f" {found.worlds} worlds, {found.transitions} transitions")
    assert not found.wrong, found.wrong[0]
    assert found.worlds > SAMPLE / 2  # some worlds are met twice, with more left or less


@pytest.mark.parametrize("mode", ["append", "upsert", "overwrite"])
def test_pipelines_that_read_everything_each_time_hold_what_their_batches_read(mode: str) -> None:
    budgets = (("again", 1), ("back", 2), ("deliver", 1), ("named", 1), ("refresh", 1))
    scope = Scope(modes=(("a", mode),), depth=4, budgets=budgets, whole=True)
    found = Explorer(scope).explore()
    assert not found.wrong, found.wrong[0]
    assert found.worlds > 50


def test_two_pipelines_that_write_one_table_keep_apart() -> None:
    budgets = (("back", 3), ("deliver", 1))
    found = Explorer(Scope(modes=SINGLE, depth=5, budgets=budgets, shared=True)).explore()
    assert not found.wrong, found.wrong[0]
    assert found.worlds > 100


# ----------------------------------------------------------------- the old decisions, put back

REAL_RETURNING = quarantine.Quarantine._returning
REAL_LANDING = evidence.landing
REAL_BATCHES_OF = undo._batches_of
REAL_OTHER_TABLE = trust.refuse_other_table


def without_version(*given: Any, **more: Any) -> CommitInfo | None:
    return None if REAL_LANDING(*given, **more) is None else CommitInfo(committed=True)


def next_number(_: Any, __: Any, state: LedgerState, ___: Any) -> int:
    return state.next_batch


def given_up_at_once(entry: BatchEntry) -> decide.Abandon:
    return decide.Abandon(entry, "everything is reloaded")


def only_slices_go(self: Any, entry: BatchEntry, *, key: str, **_: Any) -> None:
    self.clear(entry, by=key)


def no_older_generation(self: Any, entry: BatchEntry, gone: Any) -> Any:
    return () if entry.replaces else REAL_RETURNING(self, entry, gone)


def growing_number(entry: BatchEntry, sink: SinkEntry, **_: Any) -> BatchWrite:
    note = safe_json({"step": sink.name, "undone_batch": entry.n, "undo": entry.undo_event})
    return BatchWrite(n=entry.n, txn=Txn(f"{sink.app_id}:undo", entry.n), user_metadata=note)


def only_the_first(run_id: str, state: LedgerState) -> list[BatchEntry]:
    return REAL_BATCHES_OF(run_id, state)[-1:]


def new_sinks_only(self: LedgerState, sink: str) -> tuple[BatchEntry, ...]:
    return self.loaded() if self.is_new(sink) else ()


def whatever_id(known: trust.Known, now: Any) -> None:
    REAL_OTHER_TABLE(replace(known, sink=replace(known.sink, identity="")), now)


PATCHES: dict[str, dict[str, Any]] = {
    "a batch that a later run finished has no version": {
        "batch.lifecycle.landing": without_version,
        "recovery.restore._with_versions": lambda _, __, state, ___: state,
    },
    "a table ahead of its ledger is not noticed": {
        "batch.lifecycle.Batches._number": next_number,
        "runs.runner.verify_sinks": lambda *_, **__: None,
    },
    "a full refresh gives up a half-landed batch at once": {
        "batch.decide.Replace": given_up_at_once
    },
    "rows of a replay that is taken back return nowhere": {
        "quarantine.table.Quarantine.take_back": only_slices_go
    },
    "the quarantine of an older generation is gone": {
        "quarantine.table.Quarantine._returning": no_older_generation
    },
    "an undo is known by a number that must grow": {"recovery.undo._write": growing_number},
    "only the first batch of a run is undone": {"recovery.undo._batches_of": only_the_first},
    "a batch before an undone one is passed by": {"ledger.state.LedgerState.holes": lambda _: ()},
    "a sink that was left out is not asked about": {
        "ledger.state.LedgerState.missed_by": new_sinks_only
    },
    "the id of a table is not compared": {"batch.verify_sinks.refuse_other_table": whatever_id},
    "a table is restored over what its ledger lost": {
        "recovery.restore._refuse_lost": lambda *_: None
    },
    "a table is not looked at before an undo": {
        "recovery.undo.verify_tables": lambda *_, **__: None
    },
    "a table that is replaced while a batch is loaded is not noticed": {
        "batch.lifecycle.refuse_meddling": lambda *_, **__: None,
        "ledger.evidence._refuse_meddled": lambda *_, **__: None,
    },
    "the quarantine keeps what a step did that never happened": {
        "quarantine.table.Quarantine.set_back": lambda *_, **__: None
    },
    "a refresh that a folder holds and its ledger lost is not noticed": {
        "batch.verify_sinks._refuse_unknown_writers": lambda *_: None
    },
}
TWO_KEYED = (("a", "upsert"), ("b", "upsert"))
SCOPES: dict[str, dict[str, Any]] = {
    "a batch that a later run finished has no version": {
        "modes": TWO_KEYED,
        "depth": 5,
        "deliver": 1,
        "back": 1,
        "death": 1,
    },
    "a table ahead of its ledger is not noticed": {
        "modes": SINGLE,
        "depth": 4,
        "deliver": 1,
        "foreign": 1,
    },
    "a full refresh gives up a half-landed batch at once": {
        "modes": BOTH,
        "depth": 2,
        "death": 1,
        "refresh": 1,
    },
    "rows of a replay that is taken back return nowhere": {
        "modes": SINGLE,
        "depth": 4,
        "deliver": 1,
        "replay": 1,
        "back": 1,
    },
    "the quarantine of an older generation is gone": {
        "modes": SINGLE,
        "depth": 4,
        "deliver": 1,
        "refresh": 1,
        "back": 1,
    },
    "an undo is known by a number that must grow": {
        "modes": KEYED,
        "depth": 5,
        "deliver": 1,
        "back": 2,
    },
    "only the first batch of a run is undone": {
        "modes": BOTH,
        "depth": 6,
        "deliver": 1,
        "sinks": 2,
        "back": 1,
    },
    "a batch before an undone one is passed by": {
        "modes": KEYED,
        "depth": 7,
        "deliver": 2,
        "back": 2,
    },
    "a sink that was left out is not asked about": {
        "modes": BOTH,
        "depth": 5,
        "deliver": 1,
        "sinks": 2,
    },
    "the id of a table is not compared": {"modes": SINGLE, "depth": 2, "foreign": 1},
    "a table is restored over what its ledger lost": {
        "modes": SINGLE,
        "depth": 5,
        "deliver": 1,
        "back": 2,
        "foreign": 1,
    },
    "a table that is replaced while a batch is loaded is not noticed": {
        "modes": SINGLE,
        "depth": 3,
        "deliver": 1,
        "foreign": 1,
    },
    "the quarantine keeps what a step did that never happened": {
        "modes": SINGLE,
        "depth": 4,
        "deliver": 1,
        "death": 1,
        "foreign": 1,
        "replay": 1,
    },
    "a refresh that a folder holds and its ledger lost is not noticed": {
        "modes": FOLDER,
        "depth": 4,
        "deliver": 1,
        "foreign": 1,
        "refresh": 1,
    },
    "a table is not looked at before an undo": {
        "modes": SINGLE,
        "depth": 5,
        "deliver": 1,
        "back": 1,
        "foreign": 1,
    },
}


@pytest.mark.parametrize("mistake", PATCHES)
def test_a_mistake_of_before_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = dict(SCOPES[mistake])
    modes, depth = scope.pop("modes"), scope.pop("depth")
    right = explored(modes, depth, **scope)
    assert not right.wrong, right.wrong[0]
    for name, stand_in in PATCHES[mistake].items():
        monkeypatch.setattr(f"deltaworks.runtime.{name}", stand_in)
    assert explored(modes, depth, **scope).wrong
