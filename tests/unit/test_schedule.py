"""Several pipelines: which run, in which order, side by side or not, and which never do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from deltaworks.errors import DeltaworksError, Interrupted, RunError
from deltaworks.model.results import FAILED, SUCCEEDED, RunResult
from deltaworks.runtime.cancellation import CancellationToken, by_ctrl_c
from deltaworks.runtime.runs.schedule import Job, run_jobs


def result(name: str, error: DeltaworksError | None = None) -> RunResult:
    return RunResult(
        run_id="r",
        pipeline=name,
        status=FAILED if error else SUCCEEDED,
        started_at="",
        duration_s=0,
        error=error,
    )


class Yard:
    """Jobs that write down when they begin and end."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def job(
        self,
        name: str,
        *after: str,
        error: DeltaworksError | None = None,
        place: str = "",
        meet: Callable[[], object] = lambda: None,
    ) -> Job:
        def do() -> RunResult:
            with self._lock:
                self._now += 1
                self.most = max(self.most, self._now)
            meet()
            with self._lock:
                self._now -= 1
                self.seen.append(name)
            return result(name, error)

        places = frozenset([place or name])
        return Job(
            name=name, after=frozenset(after), places=places, do=do, halt=CancellationToken()
        )


@pytest.mark.parametrize("at_once", [1, 2])
def test_what_depends_on_a_failure_is_not_run_and_says_why(at_once: int) -> None:
    yard = Yard()
    jobs = [
        yard.job("orders", error=RunError("broken")),
        yard.job("totals", "orders"),
        yard.job("report", "totals"),
        yard.job("stock"),
        yard.job("stock_report", "stock"),
    ]
    results = run_jobs(jobs, at_once=at_once)
    assert [r.pipeline for r in results] == ["orders", "totals", "report", "stock", "stock_report"]
    assert [r.status for r in results] == [FAILED, "skipped", "skipped", SUCCEEDED, SUCCEEDED]
    assert [r.notes for r in results[1:3]] == [("not run: orders failed",)] * 2
    assert sorted(yard.seen) == ["orders", "stock", "stock_report"]


def test_independent_jobs_meet_and_no_more_than_asked_run_at_once() -> None:
    yard, gate = Yard(), threading.Barrier(2, timeout=20)
    run_jobs([yard.job(name, meet=gate.wait) for name in "abcd"], at_once=2)
    assert yard.most == 2
    assert sorted(yard.seen) == list("abcd")


def test_two_writers_of_one_table_never_meet() -> None:
    yard = Yard()
    jobs = [yard.job(name, place="t", meet=lambda: time.sleep(0.05)) for name in "abc"]
    run_jobs(jobs, at_once=3)
    assert (yard.most, yard.seen) == (1, ["a", "b", "c"])


def test_a_writer_ends_before_its_readers_begin() -> None:
    yard = Yard()
    jobs = [yard.job("w", meet=lambda: time.sleep(0.05)), yard.job("r", "w"), yard.job("x")]
    run_jobs(jobs, at_once=3)
    assert yard.seen == ["x", "w", "r"]


def test_a_job_that_is_not_among_them_is_not_waited_for() -> None:
    yard = Yard()
    assert run_jobs([yard.job("r", "elsewhere")], at_once=1)[0].status == SUCCEEDED


def test_after_ctrl_c_in_one_run_the_rest_is_not_run() -> None:
    yard = Yard()
    jobs = [yard.job("a", error=by_ctrl_c("in load")), yard.job("b")]
    results = run_jobs(jobs, at_once=1)
    assert [r.notes for r in results] == [(), ("not run: stopped by Ctrl-C",)]
    assert yard.seen == ["a"]


def test_a_run_that_somebody_cancelled_in_spark_stops_no_other() -> None:
    yard = Yard()
    run_jobs([yard.job("a", error=Interrupted("cancelled")), yard.job("b")], at_once=1)
    assert yard.seen == ["a", "b"]


def test_what_stops_a_run_before_it_begins_is_a_result_too() -> None:
    def refuse() -> RunResult:
        raise RunError("cannot begin")

    job = Job(name="a", after=frozenset(), places=frozenset(), do=refuse, halt=CancellationToken())
    (found,) = run_jobs([job], at_once=2)
    assert (found.run_id, found.status) == (None, FAILED)
    assert str(found.error) == "cannot begin"
