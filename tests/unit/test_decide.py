"""Finish, skip or plan: every case of what a run does with what the ledger says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from deltaworks.errors import GuardError
from deltaworks.model.batch import FILES, UNBOUNDED, Bounds, FileStamp
from deltaworks.runtime.batch.decide import (
    Abandon,
    Complete,
    Intent,
    PlanNew,
    Redo,
    Replace,
    Skip,
    Step,
    TableProbe,
    decide,
    finish_only,
)
from deltaworks.runtime.ledger.state import (
    ABANDONED,
    DONE,
    PLANNED,
    BatchEntry,
    LedgerState,
    SinkEntry,
)

AT = datetime(2026, 1, 2, 10, 2, tzinfo=UTC)


def files(*sizes: int) -> dict[str, Bounds]:
    stamps = tuple(FileStamp(f"/data/{size}.csv", size, 1) for size in sizes)
    return {"source": Bounds(kind=FILES, identity="/data/*.csv", files=stamps)}


def entry(n: int = 1, *, state: str = DONE, **fields: Any) -> BatchEntry:
    sinks = tuple(
        SinkEntry(name=name, app_id=name, identity="t", txn_found=None) for name in ("one", "two")
    )
    known: dict[str, Any] = {
        "batch_id": None,
        "run_id": "r",
        "spec": "spec",
        "generation": 0,
        "bounds": files(1),
        "sinks": sinks,
        "at": AT,
    }
    return BatchEntry(n=n, state=state, **{**known, **fields})


def steps(
    batches: Iterable[BatchEntry],
    *,
    landed: Iterable[str] = (),
    gone: str = "",
    generation: int = 0,
    **intent: Any,
) -> tuple[Step, ...]:
    known: dict[str, Any] = {"bounds": files(1), "spec": "spec"}
    return decide(
        LedgerState(batches=tuple(batches), generation=generation, events=9),
        Intent(**{**known, **intent}),
        TableProbe(landed=lambda _: frozenset(landed), gone=lambda _: gone),
    )


def names(found: tuple[Step, ...]) -> list[str]:
    return [type(step).__name__ for step in found]


CUT = entry(state=PLANNED)
BOTH = ("one", "two")


def test_the_first_run_plans_its_batch() -> None:
    assert steps([]) == (PlanNew(),)


def test_an_abandoned_batch_is_nothing_to_finish() -> None:
    assert steps([entry(state=ABANDONED)]) == (PlanNew(),)


class TestFinish:
    def test_a_batch_that_landed_everywhere_is_completed_and_was_the_retry(self) -> None:
        assert steps([CUT], landed=BOTH) == (Complete(CUT),)

    def test_after_completing_another_runs_batch_this_one_plans_its_own(self) -> None:
        assert steps([CUT], landed=BOTH, bounds=files(2)) == (Complete(CUT), PlanNew())

    def test_an_incremental_run_goes_on_after_completing(self) -> None:
        assert steps([CUT], landed=BOTH, incremental=True) == (Complete(CUT), PlanNew())

    def test_a_batch_that_landed_nowhere_is_redone_when_it_is_still_wanted(self) -> None:
        assert steps([CUT]) == (Redo(CUT, frozenset()),)

    def test_a_batch_that_landed_nowhere_is_given_up_when_the_spec_changed(self) -> None:
        found = steps([CUT], spec="new")
        assert names(found) == ["Abandon", "PlanNew"]
        assert isinstance(found[0], Abandon)
        assert found[0].reason == "the pipeline has changed since"

    def test_a_batch_that_landed_nowhere_is_given_up_when_the_sources_changed(self) -> None:
        found = steps([CUT], bounds=files(1, 2))
        assert names(found) == ["Abandon", "PlanNew"]

    def test_a_source_without_bounds_is_never_the_same_again(self) -> None:
        unbounded = {"source": Bounds(kind=UNBOUNDED, identity="query")}
        cut = replace(CUT, bounds=unbounded)
        assert names(steps([cut], bounds=unbounded)) == ["Abandon", "PlanNew"]

    def test_a_batch_that_landed_in_some_sinks_is_redone_for_the_rest(self) -> None:
        assert steps([CUT], landed=["one"]) == (Redo(CUT, frozenset({"one"})),)

    def test_it_is_redone_from_its_own_bounds_before_new_ones(self) -> None:
        found = steps([CUT], landed=["one"], bounds=files(2))
        assert found == (Redo(CUT, frozenset({"one"})), PlanNew())

    def test_half_landed_with_another_spec_is_refused_with_the_choices(self) -> None:
        with pytest.raises(GuardError, match="the pipeline has changed since") as caught:
            steps([CUT], landed=["one"], spec="new")
        assert "--full-refresh" in caught.value.hint
        assert caught.value.exit_code == 5

    def test_half_landed_with_inputs_gone_is_refused_with_the_choices(self) -> None:
        with pytest.raises(GuardError, match='file "x" is gone'):
            steps([CUT], landed=["one"], gone='file "x" is gone')

    def test_the_batch_id_says_whether_it_was_the_retry(self) -> None:
        cut = replace(CUT, batch_id="monday")
        assert steps([cut], landed=BOTH, batch_id="monday", bounds=files(2)) == (Complete(cut),)
        assert steps([cut], landed=BOTH, batch_id="tuesday") == (Complete(cut), PlanNew())
        assert steps([cut], landed=BOTH) == (Complete(cut), PlanNew())


class TestFullRefresh:
    def test_it_gives_up_what_landed_nowhere(self) -> None:
        found = steps([CUT], full_refresh=True, gone="gone", spec="new")
        assert names(found) == ["Abandon", "PlanNew"]

    def test_it_replaces_what_landed_in_some_sinks_and_gives_it_up_no_sooner(self) -> None:
        found = steps([CUT], landed=["one"], full_refresh=True, gone="gone", spec="new")
        assert found == (Replace(CUT), PlanNew())

    def test_it_replaces_what_no_table_can_prove(self) -> None:
        def unknown(_: BatchEntry) -> frozenset[str]:
            raise GuardError("ahead")

        state = LedgerState(batches=(CUT,), events=9)
        intent = Intent(bounds=files(1), spec="spec", full_refresh=True)
        look = TableProbe(landed=unknown, gone=lambda _: "")
        assert decide(state, intent, look) == (Replace(CUT), PlanNew())
        with pytest.raises(GuardError):
            decide(state, replace(intent, full_refresh=False), look)

    def test_one_that_was_cut_off_is_given_up_by_an_ordinary_run(self) -> None:
        cut = replace(CUT, replaces=True, generation=1)
        found = steps([entry(), replace(cut, n=2)], is_append=True)
        assert names(found) == ["Abandon", "Skip"]

    def test_an_older_batch_is_finished_after_a_refresh_that_was_cut_off(self) -> None:
        refresh = replace(CUT, n=2, replaces=True, generation=1)
        state = LedgerState(batches=(CUT, refresh), events=9)
        found = {1: frozenset({"one"}), 2: frozenset[str]()}
        look = TableProbe(landed=lambda batch: found[batch.n], gone=lambda _: "")
        intent = Intent(bounds=files(2), spec="spec")
        names_of = names(decide(state, intent, look))
        assert names_of == ["Abandon", "Redo", "PlanNew"]

    def test_its_own_retry_is_redone(self) -> None:
        cut = replace(CUT, replaces=True)
        assert steps([cut], full_refresh=True) == (Redo(cut, frozenset()),)

    def test_it_skips_nothing(self) -> None:
        done = entry(batch_id="monday")
        assert steps([done], batch_id="monday", full_refresh=True) == (PlanNew(),)
        assert steps([entry()], is_append=True, full_refresh=True) == (PlanNew(),)


class TestSkip:
    def test_a_batch_id_that_is_done_is_skipped(self) -> None:
        done = entry(3, batch_id="monday")
        found = steps([done, entry(4)], batch_id="monday", bounds=files(7), spec="new")
        assert isinstance(found[0], Skip)
        assert found[0].entry == done
        assert found[0].reason == (
            'batch id "monday" is done since 2026-01-02 10:02:00 UTC (batch 3)'
        )

    def test_the_id_wins_over_bounds(self) -> None:
        done = entry(batch_id="monday")
        assert steps([done], batch_id="tuesday", is_append=True) == (PlanNew(),)

    def test_an_id_of_an_earlier_generation_is_free_again(self) -> None:
        done = entry(batch_id="monday", generation=0)
        assert steps([done], generation=1, batch_id="monday") == (PlanNew(),)

    def test_an_append_of_the_very_same_is_skipped(self) -> None:
        found = steps([entry(7)], is_append=True)
        assert isinstance(found[0], Skip)
        assert found[0].reason == (
            "batch 7 loaded exactly this at 2026-01-02 10:02:00 UTC; --again loads it once more"
        )

    @pytest.mark.parametrize(
        "intent",
        [
            {"is_append": False},
            {"is_append": True, "again": True},
            {"is_append": True, "bounds": files(2)},
            {"is_append": True, "spec": "new"},
        ],
    )
    def test_anything_else_runs(self, intent: dict[str, Any]) -> None:
        assert steps([entry(7)], **intent) == (PlanNew(),)

    def test_only_the_last_batch_counts_for_an_append(self) -> None:
        older, newer = entry(1), entry(2, bounds=files(2))
        assert steps([older, newer], is_append=True) == (PlanNew(),)

    def test_an_incremental_run_with_nothing_new_is_skipped(self) -> None:
        found = steps([entry(7)], incremental=True, nothing_new=True, bounds=files())
        assert isinstance(found[0], Skip)
        assert found[0].reason == "nothing is new since batch 7"

    def test_a_first_incremental_run_is_never_skipped(self) -> None:
        assert steps([], incremental=True, nothing_new=True, bounds=files()) == (PlanNew(),)


def only_finish(
    batches: Iterable[BatchEntry], *, landed: Iterable[str] = (), gone: str = "", spec: str = "spec"
) -> tuple[Step, ...]:
    look = TableProbe(landed=lambda _: frozenset(landed), gone=lambda _: gone)
    return finish_only(LedgerState(batches=tuple(batches)), spec, look)


class TestFinishOnly:
    def test_what_landed_is_completed_and_the_rest_redone(self) -> None:
        assert only_finish([CUT], landed=BOTH) == (Complete(CUT),)
        assert only_finish([CUT], landed=["one"]) == (Redo(CUT, frozenset({"one"})),)
        assert only_finish([CUT]) == (Redo(CUT, frozenset()),)

    def test_with_nothing_unfinished_there_is_nothing_to_do(self) -> None:
        with pytest.raises(GuardError, match="no batch of this pipeline is unfinished"):
            only_finish([entry()])

    @pytest.mark.parametrize(
        ("change", "words"),
        [({"spec": "new"}, "the pipeline has changed"), ({"gone": "it is gone"}, "it is gone")],
    )
    def test_what_cannot_be_read_again_is_refused_with_the_way_out(
        self, change: dict[str, str], words: str
    ) -> None:
        with pytest.raises(GuardError, match=words) as caught:
            only_finish([CUT], **change)
        assert "deltaworks runs abandon r" in caught.value.hint
