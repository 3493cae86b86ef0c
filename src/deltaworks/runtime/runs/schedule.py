"""Runs several pipelines: in order, side by side where that is asked, none after a failed one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from deltaworks.errors import DeltaworksError
from deltaworks.model.results import FAILED, SKIPPED, RunResult
from deltaworks.runtime.cancellation import BY_USER, CancellationToken, by_ctrl_c


@dataclass(frozen=True, kw_only=True)
class Job:
    """A pipeline to run, and what that has to do with the others."""

    name: str
    after: frozenset[str]
    """Pipelines that write what this one reads."""
    places: frozenset[str]
    """What it writes; no two jobs write one place at the same time."""
    do: Callable[[], RunResult]
    halt: CancellationToken


def run_jobs(jobs: Sequence[Job], *, at_once: int) -> tuple[RunResult, ...]:
    """Run every job whose writers did not fail; one result for each, in the order given."""
    board = _Board(waiting=list(jobs))
    if at_once == 1:
        while (job := board.take()) is not None:
            board.finish(job, _result(job))
    else:
        with ThreadPoolExecutor(at_once, thread_name_prefix="deltaworks") as pool:
            _work(board, pool, at_once)
    return tuple(board.results[job.name] for job in jobs)


@dataclass(kw_only=True)
class _Board:
    """Which jobs wait, which run, and how the others ended."""

    waiting: list[Job]
    running: dict[str, Job] = field(default_factory=dict)
    results: dict[str, RunResult] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)
    """Why what reads a pipeline's tables is not run."""
    stopped: bool = False

    def take(self) -> Job | None:
        """The next job that can run now; those that never can are written down on the way."""
        for job in list(self.waiting):
            if not self._is_ready(job):
                continue
            self.waiting.remove(job)
            reason = self._why_not(job)
            if not reason:
                self.running[job.name] = job
                return job
            self.causes[job.name] = reason
            self.results[job.name] = _not_run(job.name, reason)
        return None

    def finish(self, job: Job, result: RunResult) -> None:
        """A job has ended."""
        self.running.pop(job.name, None)
        self.results[job.name] = result
        if result.error is not None:
            self.stopped = self.stopped or BY_USER in result.error.context
            self.causes[job.name] = f"{job.name} failed"

    def stop(self) -> None:
        """Let no further job begin, and ask those that run to stop."""
        self.stopped = True
        for job in tuple(self.running.values()):
            job.halt.ask(by_ctrl_c)

    def _is_ready(self, job: Job) -> bool:
        unfinished = {other.name for other in (*self.waiting, *self.running.values())}
        busy = {place for other in self.running.values() for place in other.places}
        return not job.after & unfinished and not job.places & busy

    def _why_not(self, job: Job) -> str:
        if self.stopped:
            return "stopped by Ctrl-C"
        return next((self.causes[name] for name in sorted(job.after) if name in self.causes), "")


def _work(board: _Board, pool: ThreadPoolExecutor, at_once: int) -> None:
    """Keep so many jobs running until none is left, or Ctrl-C stops them."""
    futures: dict[Future[RunResult], Job] = {}
    with _hearing_ctrl_c(board.stop):
        while True:
            while len(futures) < at_once and (job := board.take()) is not None:
                futures[pool.submit(_result, job)] = job
            if not futures:
                return
            for future in wait(futures, return_when=FIRST_COMPLETED).done:
                board.finish(futures[future], future.result())
                del futures[future]


@contextmanager
def _hearing_ctrl_c(stop: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C stop the jobs of other threads, of which it reaches none.

    Nothing is raised here: an exception that comes up while Python cleans up, as it does at any
    moment, is swallowed, and the jobs would go on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _result(job: Job) -> RunResult:
    """How a job ended; what stops it before its run begins is told in the same form."""
    try:
        return job.do()
    except DeltaworksError as error:
        return failed_before(job.name, error)


def failed_before(pipeline: str, error: DeltaworksError) -> RunResult:
    """A run that never began."""
    return RunResult(
        run_id=None,
        pipeline=pipeline,
        status=FAILED,
        started_at=datetime.now(UTC).isoformat(),
        duration_s=0.0,
        error=error,
    )


def _not_run(pipeline: str, reason: str) -> RunResult:
    return RunResult(
        run_id=None,
        pipeline=pipeline,
        status=SKIPPED,
        started_at=datetime.now(UTC).isoformat(),
        duration_s=0.0,
        notes=(f"not run: {reason}",),
    )
