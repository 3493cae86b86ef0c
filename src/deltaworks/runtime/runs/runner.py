"""Runs a plan: takes its locks, decides from the ledger what to do, does it, records it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal, TypedDict, Unpack

from deltaworks.errors import ConfigError, DeltaworksError, GuardError, InputError, Interrupted
from deltaworks.model.batch import Bounds
from deltaworks.model.events import RunFinished, RunStarted, Warned
from deltaworks.model.results import SKIPPED, BatchResult, RunResult, status_of
from deltaworks.pipeline.stages import Plan
from deltaworks.runtime.batch.decide import (
    Abandon,
    Complete,
    Intent,
    PlanNew,
    Redo,
    Reload,
    Replace,
    Skip,
    Step,
    TableProbe,
    decide,
    finish_only,
    missed,
    reloads,
)
from deltaworks.runtime.batch.lifecycle import Batches, NewBatch, unread, with_loads
from deltaworks.runtime.batch.verify_sinks import verify_sinks
from deltaworks.runtime.cancellation import BY_USER, by_another_driver
from deltaworks.runtime.environment import RunEnv, new_run, was_streamed
from deltaworks.runtime.error_boundary import halt_boundary
from deltaworks.runtime.ledger.state import BatchEntry, LedgerState
from deltaworks.runtime.quarantine.replay import looked_up, replay_path
from deltaworks.runtime.quarantine.table import Choice, ReplayKwargs
from deltaworks.runtime.recovery.restore import settle_restores
from deltaworks.runtime.recovery.undo import settle_undos
from deltaworks.runtime.source_bounds import (
    is_incremental,
    nothing_new,
    refuse_changed_files,
    take_bounds,
    why_gone,
)
from deltaworks.storage.locks.file_lock import LockSet, lock_of, locked, pipeline_lock

NewSinks = Literal["ask", "backfill", "from-now"]
_MAX_RESULTS = 1_000
"""Batches that a run which follows its source tells of; the ledger has them all."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the caller says about one run."""

    batch_id: str | None = None
    again: bool = False
    full_refresh: bool = False
    drop_history: bool = False
    """Let a full refresh drop what the sources no longer hold."""
    finish_only: bool = False
    start: str = ""
    """Where increments start, instead of where the last batch ended."""
    new_sinks: NewSinks = "ask"
    """What a sink gets that was added after batches had landed in others."""
    replay: Choice | None = None
    """Bring these rows back from quarantine, instead of reading the sources."""
    changes: Mapping[str, str] = field(default_factory=dict)
    overwrite: bool = False
    """Let rows that come back overwrite those that later batches wrote."""
    parked_run: str = ""
    """Commit what this run had to park, and do nothing else."""
    timeout: timedelta | None = None
    """Stop the run when it takes longer."""
    follow: timedelta | None = None
    """Go on reading what is new, and look for it so often, until somebody stops the run."""


class RunKwargs(TypedDict, total=False):
    """What a caller may say of a run in Python, as keywords; see `RunOptions`."""

    batch_id: str | None
    again: bool
    full_refresh: bool
    drop_history: bool
    start: str
    new_sinks: NewSinks
    timeout: timedelta | None
    follow: timedelta | None


def replay_options(**words: Unpack[ReplayKwargs]) -> RunOptions:
    """What a run does that brings rows back from quarantine."""
    return RunOptions(
        replay=words.get("choice") or Choice(),
        changes=dict(words.get("changes") or {}),
        overwrite=words.get("overwrite", False),
    )


def run_plan(plan: Plan, place: RunEnv, options: RunOptions) -> RunResult:
    """Run a pipeline once; a failure is a result too."""
    return _Run(plan, place, options).run()


def abandon_batch(plan: Plan, place: RunEnv, run_id: str) -> BatchEntry:
    """Give up the batch that a run left unfinished; one that landed anywhere is not given up."""
    return _Run(plan, place, RunOptions()).abandon(run_id)


class _Run:
    """One run, from the lock to the record."""

    def __init__(self, plan: Plan, place: RunEnv, options: RunOptions) -> None:
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
        self.stopped = False
        self.recorded = False
        self.blocked: set[str] = set()

    def run(self) -> RunResult:
        start = self.place.clock.monotonic()
        error: DeltaworksError | None = None
        try:
            halt = self.place.halt
            wording = self.plan.pipeline.origin.wording()
            limited = halt.within(self.options.timeout)
            with wording, halt.handle_sigint(), limited, halt_boundary(halt):
                self._run_locked()
        except DeltaworksError as problem:
            error = problem
        except KeyboardInterrupt:
            error = Interrupted(
                "stopped by Ctrl-C; no table was left half written",
                hint="run it again: it goes on where it stopped",
                context={BY_USER: True},
            )
        if error is not None and BY_USER in error.context and self.options.follow is not None:
            self.notes.append(error.message)  # there is no other end to a run that follows
            error, self.stopped = None, True
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
        waits = bool(self.blocked) or any(result.parked for result in self.results)
        return RunResult(
            run_id=self.run_name.run_id if self.recorded else None,  # else nobody could look it up
            pipeline=self.name,
            status=status_of(error, parked=waits, stopped=self.stopped, skipped=self.skipped),
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
        locations = [load.plugin.lock_path(self.place.project_ctx) for load in self.plan.loads]
        paths = [pipeline_lock(config.warehouse, self.name)]
        paths.extend(lock_of(location) for location in locations if location)
        with locked(
            paths,
            wait_seconds=config.locks.wait_seconds,
            notify=self.place.notify,
            while_waiting=self.place.halt.raise_if_cancelled,
            when_lost=lambda: self.place.halt.ask(by_another_driver),
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
            blocked=self.blocked,
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
        state = settle_undos(
            self.plan,
            self.place.project_ctx,
            self.ledger,
            state,
            quarantine=self.quarantine,
            now=now,
            is_refresh=self.options.full_refresh,
        )
        if not self.options.full_refresh:
            project = self.place.config.project_id
            verify_sinks(self.plan, self.place.project_ctx, state, project=project)
        batches.seen = (self.quarantine.clear_unknown(state),)
        if self.options.parked_run:
            self._load_parked(self.options.parked_run, state, batches)
            return
        if self.options.full_refresh:
            state = batches.note_parked(state)
        else:
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
            bounds = take_bounds(self.plan, self.place.project_ctx, state)
            refuse_changed_files(self.plan, bounds)
            left -= sum(taken.messages for taken in bounds.values())
            if nothing_new(self.plan, bounds):
                left = 0
                continue
            self.skipped = False
            self.blocked |= {sink.name for _, sink in state.parked()}
            state = batches.plan_new(NewBatch(plan=self.plan, bounds=bounds), state)
            del self.results[:-_MAX_RESULTS]

    def _steps(self, state: LedgerState, batches: Batches) -> tuple[Step, ...]:
        look = TableProbe(landed=batches.landed, gone=batches.gone)
        if self.options.finish_only:
            return finish_only(state, self.plan.fingerprint(self.place.project_ctx), look)
        return decide(state, self._intent(state), look)

    def _intent(self, state: LedgerState) -> Intent:
        """What this run would do next, were nothing unfinished."""
        read_before = LedgerState() if self.options.full_refresh else state
        start = self.options.start
        bounds = take_bounds(self.plan, self.place.project_ctx, read_before, start=start)
        refuse_changed_files(self.plan, bounds)
        self._refuse(state, bounds)
        if start and self.options.full_refresh and nothing_new(self.plan, bounds):
            raise InputError(
                f"there is nothing to load from {start} on", hint="load an earlier part"
            )
        return Intent(
            bounds=bounds,
            spec=self.plan.fingerprint(self.place.project_ctx),
            batch_id=self.options.batch_id,
            again=self.options.again or bool(start),
            full_refresh=self.options.full_refresh,
            is_append=any(load.plugin.is_append() for load in self.plan.loads),
            sinks=frozenset(load.name for load in self.plan.loads),
            incremental=is_incremental(self.plan),
            nothing_new=nothing_new(self.plan, bounds),
            starts_anew=bool(start),
        )

    def _refuse(self, state: LedgerState, bounds: Mapping[str, Bounds]) -> None:
        """Refuse to double what a stream has read, and to drop what nobody can read again."""
        if self.options.full_refresh and not self.options.drop_history:
            from deltaworks.runtime.recovery.lost_history import refuse_lost_history

            refuse_lost_history(self.plan, state, bounds)
        elif not self.options.full_refresh and was_streamed(self.place.config.warehouse):
            from deltaworks.runtime.streams.shared_position import refuse_streamed

            refuse_streamed(self.plan, self.place, state, bounds)

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
        state = self._welcome(state, batches)
        replay = self.quarantine.pick(choice, self.options.changes)
        if replay is None:
            self.notes.append("skipped: no such row is in quarantine")
            self.skipped = True
            return
        if again := {entry.n for entry in state.outstanding()} & set(replay.batches):
            raise GuardError(
                f"batch {min(again)} was taken out by a restore, and its rows are read again",
                hint="run the pipeline once, then replay what it refuses",
            )
        from deltaworks.runtime.quarantine.later_rows import with_versions

        way = replay_path(self.plan, self.quarantine.entries(replay))
        known = with_versions(replay, state, [load.name for load in way.plan.loads])
        replay = replace(known, overwrite=self.options.overwrite)
        new = NewBatch(plan=way.plan, bounds=looked_up(way, self.place.project_ctx), replay=replay)
        batches.plan_new(new, state)

    def _repeat(
        self, entry: BatchEntry, names: set[str], state: LedgerState, batches: Batches
    ) -> LedgerState:
        """Bring sinks the rows that a replay brought to the others."""
        assert entry.replay is not None
        plan = with_loads(self.plan, names)
        way = replay_path(plan, self.quarantine.entries(entry.replay))
        new = NewBatch(
            plan=way.plan,
            bounds=looked_up(way, self.place.project_ctx),
            replay=replace(entry.replay, overwrite=True),  # as it went to the others
            backfill=True,
            covers=(entry.n,),
        )
        return batches.plan_new(new, state)

    def _take(self, step: Step, state: LedgerState, batches: Batches) -> LedgerState:
        if isinstance(step, Skip):
            self.notes.append(f"skipped: {step.reason}")
            batches.results.append(unread(step.entry, SKIPPED))
            return state
        if isinstance(step, PlanNew):
            return self._plan_new(state, batches)
        if isinstance(step, Reload):
            return self._reload(step.entry, state, batches)
        return self._settle(step, state, batches)

    def _settle(
        self, step: Complete | Redo | Replace | Abandon, state: LedgerState, batches: Batches
    ) -> LedgerState:
        """Bring a batch that was planned before to its end."""
        entry = step.entry
        if isinstance(step, Abandon):
            self._warn(f"batch {entry.n} was never written and is given up: {step.reason}")
            return batches.give_up(entry, state)
        if isinstance(step, Complete):
            self._warn(f"batch {entry.n} had landed before the last run was cut off")
            return batches.complete(entry, state)
        if isinstance(step, Redo):
            self._warn(f"batch {entry.n} was cut off and is finished now")
            return batches.execute(entry, state, batches.landings(entry))
        self._warn(f"batch {entry.n} landed in some sinks only; this full refresh replaces it")
        return state

    def _reload(self, entry: BatchEntry, state: LedgerState, batches: Batches) -> LedgerState:
        """Bring a batch back to the sinks that a restore took it out of, as it was read."""
        sinks = frozenset(load.name for load in self.plan.loads)
        if entry not in reloads(state, sinks):
            return state  # a batch that was finished just now did it
        lacking = {load.name for load in self.plan.loads} & state.lacking(entry)
        self._warn(f"batch {entry.n} was taken out by a restore and is loaded again")
        return self._backfill([entry], lacking, state, batches)

    def _backfill(
        self, entries: list[BatchEntry], names: set[str], state: LedgerState, batches: Batches
    ) -> LedgerState:
        """Bring sinks what a few batches read, or one replay brought, as one batch of its own."""
        if entries[0].replay is not None:
            return self._repeat(entries[0], names, state, batches)
        from deltaworks.runtime.recovery.backfill import bounds_of

        bounds = bounds_of(self.plan, self.place.project_ctx, entries)
        if problem := why_gone(self.plan, self.place.project_ctx, bounds):
            raise GuardError(
                f'what was read so far cannot be loaded into "{min(names)}": {problem}',
                hint="say --new-sinks from-now, or reload everything with --full-refresh",
            )
        return batches.plan_new(
            NewBatch(
                plan=with_loads(self.plan, names),
                bounds=bounds,
                backfill=True,
                covers=tuple(entry.n for entry in entries),
                judges=all(entry.is_out(state.generation) for entry in entries),
            ),
            state,
        )

    def _welcome(self, state: LedgerState, batches: Batches) -> LedgerState:
        """Give sinks that are new, or were left out for a while, what the others have."""
        if not is_incremental(self.plan) or self.options.full_refresh:
            return state
        if self.options.new_sinks == "from-now":
            return state
        from deltaworks.runtime.recovery.backfill import new_sink, segments

        lacking: dict[tuple[int, ...], set[str]] = {}
        for load in (load for load in self.plan.loads if load.plugin.is_persistent):
            found = missed(state, load.name, adds=load.plugin.is_append())
            lacking.setdefault(tuple(entry.n for entry in found), set()).add(load.name)
        lacking.pop((), None)
        for name, numbers in sorted((name, ns) for ns, names in lacking.items() for name in names):
            if self.options.new_sinks == "ask" or state.is_stale(name):
                raise new_sink(name, numbers, state)
        for numbers, names in lacking.items():
            for run in segments(map(state.batch, numbers), state):
                state = self._backfill(run, names, state, batches)
        return state

    def _plan_new(self, state: LedgerState, batches: Batches) -> LedgerState:
        state = self._welcome(state, batches)
        intent = self._intent(state)  # anew, because a batch finished just now moves the start
        new = NewBatch(
            plan=self.plan,
            bounds=intent.bounds,
            batch_id=intent.batch_id,
            full_refresh=intent.full_refresh,
        )
        if intent.nothing_new and intent.starts_anew:
            point = self.options.start
            self.notes.append(f"nothing to load from {point} on; later runs go on from there")
            return batches.keep_start(new, state)
        if intent.nothing_new and not state.done():
            self.notes.append("skipped: there is nothing to read yet")
            self.skipped = True
        if intent.nothing_new:
            return state
        return batches.plan_new(new, state)

    def _warn(self, message: str) -> None:
        self.notes.append(message)
        run_id = self.run_name.run_id
        self.place.bus.tell(Warned(run_id=run_id, pipeline=self.name, message=message))
