"""Runs a plan: takes its locks, decides from the ledger what to do, does it, records it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypedDict

from deltaworks.engines.lock import LockSet, lock_of, locked, pipeline_lock
from deltaworks.errors import (
    ConfigError,
    DeltaworksError,
    GuardError,
    Interrupted,
)
from deltaworks.model.events import RunFinished, RunStarted, Warned
from deltaworks.model.results import FAILED, SKIPPED, SUCCEEDED, BatchResult, RunResult
from deltaworks.pipeline.stages import Plan
from deltaworks.runtime.batches import Batches, NewBatch, unread, with_loads
from deltaworks.runtime.boundary import halt_boundary
from deltaworks.runtime.bounds import (
    is_incremental,
    nothing_new,
    read_bounds,
    refuse_changed_files,
    take_bounds,
    why_gone,
)
from deltaworks.runtime.decide import (
    Abandon,
    Complete,
    Intent,
    Look,
    Redo,
    Skip,
    Step,
    decide,
    finish_only,
)
from deltaworks.runtime.halt import BY_USER
from deltaworks.runtime.ledger import BatchEntry, LedgerState
from deltaworks.runtime.quarantine import Choice
from deltaworks.runtime.reentry import way_back
from deltaworks.runtime.restore import settle_restores
from deltaworks.runtime.trust import verify_sinks
from deltaworks.runtime.undo import settle_undos
from deltaworks.runtime.workplace import Workplace, new_run

NewSinks = Literal["ask", "backfill", "from-now"]
_MOST_RESULTS = 1_000
"""Batches that a run which follows its source tells of; the ledger has them all."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the caller says about one run."""

    batch_id: str | None = None
    again: bool = False
    full_refresh: bool = False
    finish_only: bool = False
    start: str = ""
    """Where increments start, instead of where the last batch ended."""
    new_sinks: NewSinks = "ask"
    """What a sink gets that was added after batches had landed in others."""
    replay: Choice | None = None
    """Bring these rows back from quarantine, instead of reading the sources."""
    changes: Mapping[str, str] = field(default_factory=dict)
    parked_run: str = ""
    """Commit what this run had to park, and do nothing else."""
    timeout: timedelta | None = None
    """Stop the run when it takes longer."""
    follow: timedelta | None = None
    """Go on reading what is new, and look for it so often, until somebody stops the run."""


class RunWords(TypedDict, total=False):
    """What a caller may say of a run in Python, as keywords; see `RunOptions`."""

    batch_id: str | None
    again: bool
    full_refresh: bool
    start: str
    new_sinks: NewSinks
    timeout: timedelta | None
    follow: timedelta | None


def run_plan(plan: Plan, place: Workplace, options: RunOptions) -> RunResult:
    """Run a pipeline once; a failure is a result too."""
    return _Run(plan, place, options).run()


def abandon_batch(plan: Plan, place: Workplace, run_id: str) -> BatchEntry:
    """Give up the batch that a run left unfinished; one that landed anywhere is not given up."""
    return _Run(plan, place, RunOptions()).abandon(run_id)


class _Run:
    """One run, from the lock to the record."""

    def __init__(self, plan: Plan, place: Workplace, options: RunOptions) -> None:
        self.plan = plan
        self.place = place
        self.options = options
        self.run_name = new_run(plan.pipeline.name, place)
        self.name = plan.pipeline.name
        self.records = place.records()
        self.ledger = place.ledger(self.name)
        self.quarantine = place.quarantine(self.name)
        self.results: list[BatchResult] = []
        self.notes: list[str] = []
        self.skipped = False
        self.recorded = False

    def run(self) -> RunResult:
        start = self.place.clock.monotonic()
        error: DeltaworksError | None = None
        try:
            halt = self.place.halt
            wording = self.plan.pipeline.origin.wording()
            limited = halt.within(self.options.timeout)
            with wording, halt.hearing_ctrl_c(), limited, halt_boundary(halt):
                self._run_locked()
        except DeltaworksError as problem:
            error = problem
        except KeyboardInterrupt:
            error = Interrupted(
                "stopped by Ctrl-C; no table was left half written",
                hint="run it again: it goes on where it stopped",
                context={BY_USER: True},
            )
        result = self._result(error, self.place.clock.monotonic() - start)
        self._record_end(result)
        self.place.bus.tell(
            RunFinished(run_id=self.run_name.run_id, pipeline=self.name, result=result)
        )
        return result

    def abandon(self, run_id: str) -> BatchEntry:
        path = pipeline_lock(self.place.config.warehouse, self.name)
        wait = self.place.config.locks.wait_seconds
        stores = self.place.config.stores
        with locked([path], wait_seconds=wait, notify=self.place.notify, stores=stores) as locks:
            state, batches = self.ledger.state(), self._batches(locks)
            entry = state.unfinished
            if entry is None or entry.run_id != run_id:
                raise GuardError(f"run {run_id} left no batch unfinished")
            if landed := batches.landed(entry):
                raise GuardError(
                    f"batch {entry.n} has landed in {', '.join(sorted(landed))}",
                    hint=f"finish it with `deltaworks runs resume {run_id}`",
                )
            batches.give_up(entry, state)
            return entry

    def _result(self, error: DeltaworksError | None, duration_s: float) -> RunResult:
        status = FAILED if error else SKIPPED if self.skipped else SUCCEEDED
        return RunResult(
            run_id=self.run_name.run_id if self.recorded else None,  # else nobody could look it up
            pipeline=self.name,
            status=status,
            started_at=self.run_name.now.isoformat(),
            duration_s=duration_s,
            batches=tuple(self.results),
            notes=tuple(self.notes),
            error=error,
        )

    def _record_end(self, result: RunResult) -> None:
        """A run that could not even write its start has no end to write."""
        if not self.recorded:
            return
        try:
            self.records.ended(result, self.place.clock.now())
        except DeltaworksError as problem:
            if result.error is None:
                raise
            self._warn(f"this run could not be recorded: {problem.message}")

    def _run_locked(self) -> None:
        config = self.place.config
        locations = [load.plugin.lock_path(self.place.site) for load in self.plan.loads]
        paths = [pipeline_lock(config.warehouse, self.name)]
        paths.extend(lock_of(location) for location in locations if location)
        with locked(
            paths,
            wait_seconds=config.locks.wait_seconds,
            notify=self.place.notify,
            while_waiting=self.place.halt.obey,
            stores=config.stores,
        ) as locks:
            ledger = self._begin()
            self.recorded = True
            self.place.bus.tell(RunStarted(run_id=self.run_name.run_id, pipeline=self.name))
            self._work(self._batches(locks), ledger)

    def _begin(self) -> Future[LedgerState]:
        """Record that the run began; the ledger is read meanwhile, which changes nothing."""
        with ThreadPoolExecutor(1) as aside:
            ledger = aside.submit(copy_context().run, self.ledger.state)
            self.records.started(self.run_name.run_id, self.name, self.run_name.now)
        return ledger

    def _batches(self, locks: LockSet) -> Batches:
        return Batches(
            plan=self.plan,
            place=self.place,
            run=self.run_name,
            ledger=self.ledger,
            locks=locks,
            warn=self._warn,
            results=self.results,
        )

    def _work(self, batches: Batches, ledger: Future[LedgerState]) -> None:
        if self.options.follow is not None and not is_incremental(self.plan):
            raise ConfigError(
                "no source of this pipeline reads increments, so that there is nothing to follow",
                hint="say `incremental: true` at the source, or run it without --follow",
            )
        state = ledger.result()
        now = self.place.clock.now()
        state = settle_restores(self.ledger, state, self.quarantine, now)
        state = settle_undos(self.plan, self.place.site, self.ledger, state, now)
        if not self.options.full_refresh:
            project = self.place.config.project_id
            verify_sinks(self.plan, self.place.site, state, project=project)
        if self.options.parked_run:
            self._load_parked(self.options.parked_run, state, batches)
            return
        if not self.options.full_refresh:
            state = batches.load_parked(state)
        if self.options.replay is not None:
            self._replay(self.options.replay, state, batches)
            return
        if state.unfinished is None and not self.options.finish_only:
            state = self._welcome(state, batches)
        for step in (steps := self._steps(state, batches)):
            state = self._take(step, state, batches)
        self.skipped = self.skipped or all(isinstance(step, Skip) for step in steps)
        if is_incremental(self.plan) and not self.options.finish_only:
            self._read_on(state, batches)

    def _read_on(self, state: LedgerState, batches: Batches) -> None:
        """Read in further batches what one was not to hold; as a follower, also what comes."""
        last = state.done()[-1:]
        left = sum(bounds.waiting for entry in last for bounds in entry.bounds.values())
        follow = self.options.follow
        while left > 0 or follow is not None:
            if left <= 0 and follow is not None:
                self.place.halt.pause(follow)
            bounds = take_bounds(self.plan, self.place.site, state)
            left -= sum(taken.messages for taken in bounds.values())
            if nothing_new(self.plan, bounds):
                left = 0
                continue
            self.skipped = False
            state = batches.plan_new(NewBatch(plan=self.plan, bounds=bounds), state)
            del self.results[:-_MOST_RESULTS]

    def _steps(self, state: LedgerState, batches: Batches) -> tuple[Step, ...]:
        look = Look(landed=batches.landed, gone=batches.gone)
        if self.options.finish_only:
            return finish_only(state, self.plan.fingerprint(self.place.site), look)
        return decide(state, self._intent(state), look)

    def _intent(self, state: LedgerState) -> Intent:
        """What this run would do next, were nothing unfinished."""
        read_before = LedgerState() if self.options.full_refresh else state
        start = self.options.start
        bounds = take_bounds(self.plan, self.place.site, read_before, start=start)
        refuse_changed_files(self.plan, bounds)
        return Intent(
            bounds=bounds,
            spec=self.plan.fingerprint(self.place.site),
            batch_id=self.options.batch_id,
            again=self.options.again or bool(start),
            full_refresh=self.options.full_refresh,
            adds_on_rerun=any(load.plugin.adds_on_rerun() for load in self.plan.loads),
            incremental=is_incremental(self.plan),
            nothing_new=nothing_new(self.plan, bounds),
        )

    def _load_parked(self, run_id: str, state: LedgerState, batches: Batches) -> None:
        """Commit what one run parked, and what was parked before it."""
        numbers = [entry.n for entry, _ in state.parked() if entry.run_id == run_id]
        if not numbers:
            raise GuardError(f"run {run_id} has no batch that is parked")
        batches.load_parked(state, up_to=max(numbers))

    def _replay(self, choice: Choice, state: LedgerState, batches: Batches) -> None:
        """Bring rows back from quarantine as a batch of their own."""
        if state.unfinished is not None:
            raise GuardError(
                f"batch {state.unfinished.n} is unfinished",
                hint=f"finish it first: deltaworks runs resume {state.unfinished.run_id}",
            )
        replay = self.quarantine.pick(choice, self.options.changes)
        if replay is None:
            self.notes.append("skipped: no such row is in quarantine")
            self.skipped = True
            return
        way = way_back(self.plan, self.quarantine.entries(replay))
        site = self.place.site
        bounds = {
            stage.name: stage.plugin.bounds(site, None)
            for stage in way.plan.sources
            if stage.name not in way.steps
        }
        batches.plan_new(NewBatch(plan=way.plan, bounds=bounds, replay=replay), state)

    def _take(self, step: Step, state: LedgerState, batches: Batches) -> LedgerState:
        if isinstance(step, Skip):
            self.notes.append(f"skipped: {step.reason}")
            batches.results.append(unread(step.entry, SKIPPED))
            return state
        if isinstance(step, Abandon):
            self._warn(f"batch {step.entry.n} was never written and is given up: {step.reason}")
            return batches.give_up(step.entry, state)
        if isinstance(step, Complete):
            self._warn(f"batch {step.entry.n} had landed before the last run was cut off")
            return batches.complete(step.entry, state)
        if isinstance(step, Redo):
            self._warn(f"batch {step.entry.n} was cut off and is finished now")
            return batches.execute(step.entry, state, step.landed)
        return self._plan_new(state, batches)

    def _welcome(self, state: LedgerState, batches: Batches) -> LedgerState:
        """Give sinks that are new what the others have, if the caller says so."""
        known = {sink.name for entry in state.done() for sink in entry.sinks}
        keepers = [load.name for load in self.plan.loads if load.plugin.keeps]
        new = [name for name in keepers if name not in known]
        if not (new and known and is_incremental(self.plan)) or self.options.full_refresh:
            return state
        if self.options.new_sinks == "from-now":
            return state
        if self.options.new_sinks == "ask":
            raise GuardError(
                f'sink "{new[0]}" is new, and what was read so far is only in the others',
                hint="say --new-sinks backfill to load it there as well, "
                "or --new-sinks from-now to start with what comes next",
            )
        bounds = read_bounds(self.plan, self.place.site, state)
        if problem := why_gone(self.plan, self.place.site, bounds):
            raise GuardError(
                f'what was read so far cannot be loaded into "{new[0]}": {problem}',
                hint="say --new-sinks from-now, or load everything anew with --full-refresh",
            )
        plan = with_loads(self.plan, set(new))
        return batches.plan_new(NewBatch(plan=plan, bounds=bounds, backfill=True), state)

    def _plan_new(self, state: LedgerState, batches: Batches) -> LedgerState:
        state = self._welcome(state, batches)
        intent = self._intent(state)  # anew, because a batch finished just now moves the start
        if intent.nothing_new and not state.done():
            self.notes.append("skipped: there is nothing to read yet")
            self.skipped = True
        if intent.nothing_new:
            return state
        new = NewBatch(
            plan=self.plan,
            bounds=intent.bounds,
            batch_id=intent.batch_id,
            full_refresh=intent.full_refresh,
        )
        return batches.plan_new(new, state)

    def _warn(self, message: str) -> None:
        self.notes.append(message)
        self.place.bus.tell(
            Warned(run_id=self.run_name.run_id, pipeline=self.name, message=message)
        )
