"""Runs a plan: takes its locks, decides from the ledger what to do, does it, records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.errors import (
    DeltaworksError,
    GuardError,
    Interrupted,
    UnsupportedOperation,
)
from deltaworks.model.commit import CommitInfo
from deltaworks.model.events import BatchPlanned, RunFinished, RunStarted, Warned
from deltaworks.model.results import FAILED, SKIPPED, SUCCEEDED, BatchResult, RunResult
from deltaworks.model.table_ref import is_url
from deltaworks.pipeline.stages import Plan
from deltaworks.runtime.attempt import Attempt
from deltaworks.runtime.bounds import (
    is_incremental,
    nothing_new,
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
from deltaworks.runtime.ledger import (
    DONE,
    PLANNED,
    BatchEntry,
    Ledger,
    LedgerState,
    landed_sink,
    planned_sink,
)
from deltaworks.runtime.lock import LockSet, locked, pipeline_lock, table_lock
from deltaworks.runtime.quarantine import Choice
from deltaworks.runtime.records import RunRecords
from deltaworks.runtime.reentry import Way, way_back
from deltaworks.runtime.restore import settle_restores
from deltaworks.runtime.trust import verify_sinks
from deltaworks.runtime.undo import settle_undos
from deltaworks.runtime.workplace import Workplace, new_run, start_engine


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the caller says about one run."""

    batch_id: str | None = None
    again: bool = False
    full_refresh: bool = False
    finish_only: bool = False
    replay: Choice | None = None
    """Bring these rows back from quarantine, instead of reading the sources."""
    changes: Mapping[str, str] = field(default_factory=dict)


def run_plan(plan: Plan, place: Workplace, options: RunOptions) -> RunResult:
    """Run a pipeline once; a failure is a result too."""
    if is_url(place.config.warehouse):
        raise UnsupportedOperation(
            f'the warehouse "{place.config.warehouse}" is on an object store, '
            "which this release does not write",
            hint="use a local folder",
        )
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
        project = place.config.project_id
        self.records = RunRecords(place.config.warehouse, project)
        self.ledger = Ledger.open(place.config.warehouse, project=project, pipeline=self.name)
        self.quarantine = place.quarantine(self.name)
        self.batches: list[BatchResult] = []
        self.notes: list[str] = []
        self.skipped = False
        self.recorded = False

    def run(self) -> RunResult:
        start = self.place.clock.monotonic()
        error: DeltaworksError | None = None
        try:
            self._run_locked()
        except DeltaworksError as problem:
            error = problem
        except KeyboardInterrupt:
            error = Interrupted(
                "stopped by Ctrl-C; no table was left half written",
                hint="run it again: it goes on where it stopped",
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
        with locked([path], wait_seconds=wait, notify=self.place.notify):
            state = self.ledger.state()
            entry = state.unfinished
            if entry is None or entry.run_id != run_id:
                raise GuardError(f"run {run_id} left no batch unfinished")
            if landed := self._landed(entry):
                raise GuardError(
                    f"batch {entry.n} has landed in {', '.join(sorted(landed))}",
                    hint=f"finish it with `deltaworks runs resume {run_id}`",
                )
            self._give_up(entry, state)
            return entry

    def _result(self, error: DeltaworksError | None, duration_s: float) -> RunResult:
        status = FAILED if error else SKIPPED if self.skipped else SUCCEEDED
        return RunResult(
            run_id=self.run_name.run_id if self.recorded else None,  # else nobody could look it up
            pipeline=self.name,
            status=status,
            started_at=self.run_name.now.isoformat(),
            duration_s=duration_s,
            batches=tuple(self.batches),
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
        paths.extend(table_lock(location) for location in locations if location)
        wait = config.locks.wait_seconds
        with locked(paths, wait_seconds=wait, notify=self.place.notify) as locks:
            self.records.started(self.run_name.run_id, self.name, self.run_name.now)
            self.recorded = True
            self.place.bus.tell(RunStarted(run_id=self.run_name.run_id, pipeline=self.name))
            self._work(locks)

    def _work(self, locks: LockSet) -> None:
        state = self.ledger.state()
        now = self.place.clock.now()
        state = settle_restores(self.ledger, state, self.quarantine, now)
        state = settle_undos(self.plan, self.place.site, self.ledger, state, now)
        if not self.options.full_refresh:
            verify_sinks(self.plan, self.place.site, state)
        if self.options.replay is not None:
            self._replay(self.options.replay, state, locks)
            return
        steps = self._steps(state)
        self.skipped = all(isinstance(step, Skip) for step in steps)
        for step in steps:
            state = self._take(step, state, locks)

    def _steps(self, state: LedgerState) -> tuple[Step, ...]:
        look = Look(landed=self._landed, gone=self._gone)
        if self.options.finish_only:
            return finish_only(state, self.plan.pipeline.fingerprint(), look)
        return decide(state, self._intent(state), look)

    def _intent(self, state: LedgerState) -> Intent:
        """What this run would do next, were nothing unfinished."""
        read_before = LedgerState() if self.options.full_refresh else state
        bounds = take_bounds(self.plan, self.place.site, read_before)
        refuse_changed_files(self.plan, bounds)
        return Intent(
            bounds=bounds,
            spec=self.plan.pipeline.fingerprint(),
            batch_id=self.options.batch_id,
            again=self.options.again,
            full_refresh=self.options.full_refresh,
            adds_on_rerun=any(load.plugin.adds_on_rerun() for load in self.plan.loads),
            incremental=is_incremental(self.plan),
            nothing_new=nothing_new(self.plan, bounds),
        )

    def _replay(self, choice: Choice, state: LedgerState, locks: LockSet) -> None:
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
        intent = Intent(bounds=bounds, spec=self.plan.pipeline.fingerprint())
        entry = replace(self._new_entry(state, intent, way.plan), replay=replay)
        self._execute(entry, self._planned(entry, state), frozenset(), locks)

    def _take(self, step: Step, state: LedgerState, locks: LockSet) -> LedgerState:
        if isinstance(step, Skip):
            self.notes.append(f"skipped: {step.reason}")
            self.batches.append(_unread(step.entry, SKIPPED))
            return state
        if isinstance(step, Abandon):
            self._warn(f"batch {step.entry.n} was never written and is given up: {step.reason}")
            return self._give_up(step.entry, state)
        if isinstance(step, Complete):
            self._warn(f"batch {step.entry.n} had landed before the last run was cut off")
            return self._complete(step.entry, state)
        if isinstance(step, Redo):
            self._warn(f"batch {step.entry.n} was cut off and is finished now")
            return self._execute(step.entry, state, step.landed, locks)
        return self._plan_new(state, locks)

    def _plan_new(self, state: LedgerState, locks: LockSet) -> LedgerState:
        intent = self._intent(state)  # anew, because a batch finished just now moves the start
        if intent.nothing_new and state.done():
            return state
        entry = self._new_entry(state, intent, self.plan)
        return self._execute(entry, self._planned(entry, state), frozenset(), locks)

    def _planned(self, entry: BatchEntry, state: LedgerState) -> LedgerState:
        state = self.ledger.planned(entry, state)
        detail = ", ".join(f"{name}: {b.summary()}" for name, b in entry.bounds.items())
        self.place.bus.tell(
            BatchPlanned(run_id=self.run_name.run_id, pipeline=self.name, n=entry.n, detail=detail)
        )
        return state

    def _new_entry(self, state: LedgerState, intent: Intent, plan: Plan) -> BatchEntry:
        generation = state.next_generation if intent.full_refresh else state.generation
        sinks = []
        for load in plan.loads:
            app_id = self.ledger.app_id(load.name, generation)
            found = load.plugin.state(self.place.site, app_id)
            sinks.append(planned_sink(load.name, app_id, found))
        return BatchEntry(
            n=state.next_batch,
            batch_id=intent.batch_id,
            run_id=self.run_name.run_id,
            spec=intent.spec,
            generation=generation,
            state=PLANNED,
            bounds=intent.bounds,
            sinks=tuple(sinks),
            at=self.place.clock.now(),
            replaces=intent.full_refresh,
        )

    def _execute(
        self, entry: BatchEntry, state: LedgerState, landed: frozenset[str], locks: LockSet
    ) -> LedgerState:
        """Evaluate a batch once, land it, and say so in the ledger."""
        from deltaworks.engines.spark.session import jvm_process

        attempt = Attempt.at(
            entry,
            self.plan,
            self.place,
            self.run_name,
            twin=state.twin_of(entry) if entry.replay is None else None,
            way=self._way(entry),
            warn=self._warn,
        )
        ctx = start_engine(self.place, self.run_name, keep_log=True)
        jvm = jvm_process(ctx.spark)
        if jvm is not None:
            locks.name_jvm(*jvm)
        try:
            infos = attempt.make(ctx, landed)
        except DeltaworksError:
            if not attempt.may_have_landed and not landed:
                self._give_up(entry, state)  # so the next run starts clean
            raise
        finally:
            self.batches.append(attempt.result)
        return self._done(entry, state, infos)

    def _way(self, entry: BatchEntry) -> Way | None:
        if entry.replay is None:
            return None
        return way_back(self.plan, self.quarantine.entries(entry.replay))

    def _done(
        self, entry: BatchEntry, state: LedgerState, infos: Mapping[str, CommitInfo]
    ) -> LedgerState:
        """A batch has landed: what it makes out of date in quarantine goes, then it is done."""
        if entry.replay is not None:
            self.quarantine.forget(entry.replay, n=entry.n)
        if entry.replaces:
            self.quarantine.forget_older(entry.generation)
        plugins = {load.name: load.plugin for load in self.plan.loads}
        sinks = [
            landed_sink(
                sink,
                infos[sink.name],
                plugins[sink.name].state(self.place.site, sink.app_id),
            )
            for sink in entry.sinks
        ]
        return self.ledger.done(entry, state, sinks, self.place.clock.now())

    def _landed(self, entry: BatchEntry) -> frozenset[str]:
        """The sinks whose own transaction says that a batch is in."""
        app_ids = {sink.name: sink.app_id for sink in entry.sinks}
        return frozenset(
            load.name
            for load in self.plan.loads
            if load.name in app_ids
            and load.plugin.state(self.place.site, app_ids[load.name]).txn_version == entry.n
        )

    def _gone(self, entry: BatchEntry) -> str:
        return why_gone(self.plan, self.place.site, entry.bounds)

    def _complete(self, entry: BatchEntry, state: LedgerState) -> LedgerState:
        """Write down that a batch landed, as far as the tables tell."""
        infos = {sink.name: self._landed_info(sink.name, entry.n) for sink in entry.sinks}
        self.batches.append(_unread(entry, DONE))
        return self._done(entry, state, infos)

    def _landed_info(self, name: str, n: int) -> CommitInfo:
        load = next(load for load in self.plan.loads if load.name == name)
        if load.plugin.state(self.place.site, "").version is None:
            return CommitInfo(committed=True)
        location = load.plugin.target(self.place.site).location
        for record in DeltaRsEngine().history(location, limit=50):
            note = record.user_metadata
            if (note.get("pipeline"), note.get("step"), note.get("batch")) == (self.name, name, n):
                return CommitInfo(committed=True, version=record.version)
        return CommitInfo(committed=True)

    def _give_up(self, entry: BatchEntry, state: LedgerState) -> LedgerState:
        """Record that a batch will never land, and take back what it set aside."""
        self.quarantine.clear(entry)
        return self.ledger.abandoned(entry, state, self.place.clock.now())

    def _warn(self, message: str) -> None:
        self.notes.append(message)
        self.place.bus.tell(
            Warned(run_id=self.run_name.run_id, pipeline=self.name, message=message)
        )


def _unread(entry: BatchEntry, state: str) -> BatchResult:
    """A batch that this run did not read; its counts are not known."""
    return BatchResult(n=entry.n, id=entry.batch_id, state=state)
