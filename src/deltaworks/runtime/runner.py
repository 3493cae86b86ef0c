"""Runs a plan: decides what to do, evaluates a batch once, lands it, and records it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from deltaworks.clock import Clock
from deltaworks.config.project import ProjectConfig
from deltaworks.contracts.context import RunContext, Site
from deltaworks.errors import DeltaworksError, Interrupted, UnsupportedOperation
from deltaworks.model.batch import Bounds
from deltaworks.model.commit import CommitInfo
from deltaworks.model.events import (
    BatchPlanned,
    Committed,
    EngineStarted,
    EngineStarting,
    RunFinished,
    RunStarted,
    StageStarted,
    Warned,
)
from deltaworks.model.results import FAILED, SKIPPED, SUCCEEDED, BatchResult, RunResult
from deltaworks.model.table_ref import OWN_FOLDER, is_url
from deltaworks.observe.bus import Bus
from deltaworks.pipeline.stages import Load, Plan, Stage
from deltaworks.runtime.decide import (
    Abandon,
    Complete,
    Intent,
    Look,
    Redo,
    Skip,
    Step,
    decide,
)
from deltaworks.runtime.frames import Keeper
from deltaworks.runtime.ledger import (
    DONE,
    PLANNED,
    BatchEntry,
    Ledger,
    LedgerState,
    planned_sink,
)
from deltaworks.runtime.load import Landing, dropped_by_sinks, output_result
from deltaworks.runtime.lock import LockSet, locked, pipeline_lock, table_lock
from deltaworks.runtime.quality import failed, quality_error
from deltaworks.runtime.records import RunRecords
from deltaworks.runtime.session import SparkStarter
from deltaworks.runtime.trust import verify_sinks
from deltaworks.runtime.walk import Walker


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the caller says about one run."""

    batch_id: str | None = None
    again: bool = False
    full_refresh: bool = False


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """What every run of a project needs."""

    config: ProjectConfig
    clock: Clock
    bus: Bus
    spark: SparkStarter
    notify: Callable[[str], None]

    @property
    def site(self) -> Site:
        """Where the project's paths and tables are."""
        return Site(root=self.config.root, warehouse=self.config.warehouse)


def new_run_id(now: datetime) -> str:
    """Sorts by time, and is never given twice."""
    return f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def run_plan(plan: Plan, place: Workplace, options: RunOptions) -> RunResult:
    """Run a pipeline once; a failure is a result too."""
    return _Run(plan, place, options).run()


class _Run:
    """One run, from the lock to the record."""

    def __init__(self, plan: Plan, place: Workplace, options: RunOptions) -> None:
        self.plan = plan
        self.place = place
        self.options = options
        self.now = place.clock.now()
        self.run_id = new_run_id(self.now)
        self.name = plan.pipeline.name
        self.records = RunRecords(place.config.warehouse, place.config.project_id)
        self.ledger = Ledger.open(
            place.config.warehouse, project=place.config.project_id, pipeline=self.name
        )
        self.batches: list[BatchResult] = []
        self.notes: list[str] = []
        self.current: BatchResult | None = None
        self.skipped = False

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
        self.place.bus.tell(RunFinished(run_id=self.run_id, pipeline=self.name, result=result))
        return result

    def _result(self, error: DeltaworksError | None, duration_s: float) -> RunResult:
        batches = [*self.batches]
        if self.current is not None:
            batches.append(self.current)
        status = FAILED if error else SKIPPED if self.skipped else SUCCEEDED
        if error is not None:
            error.context.setdefault("run_id", self.run_id)
        return RunResult(
            run_id=self.run_id,
            pipeline=self.name,
            status=status,
            started_at=self.now.isoformat(),
            duration_s=duration_s,
            batches=tuple(batches),
            notes=tuple(self.notes),
            error=error,
        )

    def _record_end(self, result: RunResult) -> None:
        """A run that could not even write its start has no end to write."""
        try:
            self.records.ended(result, self.place.clock.now())
        except DeltaworksError as problem:
            if result.error is None:
                raise
            self._warn(f"this run could not be recorded: {problem.message}")

    def _run_locked(self) -> None:
        config = self.place.config
        if is_url(config.warehouse):
            raise UnsupportedOperation(
                f'the warehouse "{config.warehouse}" is on an object store, '
                "which this release does not write",
                hint="use a local folder",
            )
        paths = [pipeline_lock(config.warehouse, self.name)]
        locations = [load.plugin.lock_path(self.place.site) for load in self.plan.loads]
        paths.extend(table_lock(location) for location in locations if location)
        wait = config.locks.wait_seconds
        with locked(paths, wait_seconds=wait, notify=self.place.notify) as locks:
            self.records.started(self.run_id, self.name, self.now)
            self.place.bus.tell(RunStarted(run_id=self.run_id, pipeline=self.name))
            self._work(locks)

    def _work(self, locks: LockSet) -> None:
        state = self.ledger.state()
        bounds = self._bounds()
        intent = Intent(
            bounds=bounds,
            spec=self.plan.pipeline.fingerprint(),
            batch_id=self.options.batch_id,
            again=self.options.again,
            full_refresh=self.options.full_refresh,
            adds_on_rerun=any(load.plugin.adds_on_rerun() for load in self.plan.loads),
        )
        if not self.options.full_refresh:
            verify_sinks(self.plan, self.place.site, state)
        steps = decide(state, intent, Look(landed=self._landed, gone=self._gone))
        self.skipped = all(isinstance(step, Skip) for step in steps)
        for step in steps:
            state = self._take(step, state, intent, locks)

    def _take(self, step: Step, state: LedgerState, intent: Intent, locks: LockSet) -> LedgerState:
        now = self.place.clock.now()
        if isinstance(step, Skip):
            self.notes.append(f"skipped: {step.reason}")
            self.batches.append(_skipped_batch(step.entry))
            return state
        if isinstance(step, Abandon):
            self._warn(f"batch {step.entry.n} was never written and is given up: {step.reason}")
            return self.ledger.abandoned(step.entry, state, now)
        if isinstance(step, Complete):
            self._warn(f"batch {step.entry.n} had landed before the last run was cut off")
            infos = {sink.name: self._landed_info(sink.name) for sink in step.entry.sinks}
            self.batches.append(_completed_batch(step.entry))
            return self.ledger.done(step.entry, state, infos, now)
        if isinstance(step, Redo):
            self._warn(f"batch {step.entry.n} was cut off and is finished now")
            return self._execute(step.entry, state, step.landed, locks)
        entry = self._new_entry(state, intent)
        state = self.ledger.planned(entry, state)
        detail = ", ".join(f"{name}: {b.summary()}" for name, b in entry.bounds.items())
        self.place.bus.tell(
            BatchPlanned(run_id=self.run_id, pipeline=self.name, n=entry.n, detail=detail)
        )
        return self._execute(entry, state, frozenset(), locks)

    def _bounds(self) -> dict[str, Bounds]:
        found = {}
        for stage in self.plan.sources:
            try:
                found[stage.name] = stage.plugin.bounds(self.place.site, None)
            except DeltaworksError as error:
                raise error.at(self.plan.pipeline.origin.file, stage.line) from error.__cause__
        return found

    def _new_entry(self, state: LedgerState, intent: Intent) -> BatchEntry:
        generation = state.generation + (1 if intent.full_refresh else 0)
        sinks = []
        for load in self.plan.loads:
            app_id = self.ledger.app_id(load.name, generation)
            sinks.append(
                planned_sink(load.name, app_id, load.plugin.state(self.place.site, app_id))
            )
        return BatchEntry(
            n=state.next_batch,
            batch_id=intent.batch_id,
            run_id=self.run_id,
            spec=intent.spec,
            generation=generation,
            state=PLANNED,
            bounds=intent.bounds,
            sinks=tuple(sinks),
            at=self.place.clock.now(),
            replaces=intent.full_refresh,
        )

    def _landed(self, entry: BatchEntry) -> frozenset[str]:
        """The sinks whose own transaction says that a batch is in."""
        found = set()
        for load in self.plan.loads:
            for sink in entry.sinks:
                if sink.name == load.name:
                    now = load.plugin.state(self.place.site, sink.app_id)
                    if now.txn_version == entry.n:
                        found.add(sink.name)
        return frozenset(found)

    def _landed_info(self, name: str) -> CommitInfo:
        load = next((load for load in self.plan.loads if load.name == name), None)
        version = load.plugin.state(self.place.site, "").version if load else None
        return CommitInfo(committed=True, version=version)

    def _gone(self, entry: BatchEntry) -> str:
        """Why a recorded batch cannot be read again; empty when it can."""
        sources = {stage.name: stage.plugin for stage in self.plan.sources}
        for name, bounds in entry.bounds.items():
            if name not in sources:
                return f'source "{name}" is no longer in the pipeline'
            if problem := sources[name].still_there(self.place.site, bounds):
                return problem
        return ""

    def _execute(
        self, entry: BatchEntry, state: LedgerState, landed: frozenset[str], locks: LockSet
    ) -> LedgerState:
        """Evaluate a batch once and land it."""
        self.current = BatchResult(n=entry.n, id=entry.batch_id, state=PLANNED)
        ctx = self._context(entry, locks)
        keeper = Keeper()
        walker = Walker(
            self.plan,
            ctx,
            bounds=entry.bounds,
            clock=self.place.clock,
            keeper=keeper,
            on_stage=self._tell_stage,
        )
        try:
            infos = self._evaluate_and_land(walker, entry, ctx, keeper, landed)
            return self.ledger.done(entry, state, infos, self.place.clock.now())
        except DeltaworksError as error:
            raise walker.explained(error) from error.__cause__
        except KeyboardInterrupt:
            self._cancel(ctx)
            raise
        finally:
            keeper.release()

    def _evaluate_and_land(
        self,
        walker: Walker,
        entry: BatchEntry,
        ctx: RunContext,
        keeper: Keeper,
        landed: frozenset[str],
    ) -> dict[str, CommitInfo]:
        walked = walker.walk()
        checks = tuple(walked.checks)
        partial = BatchResult(n=entry.n, id=entry.batch_id, state=PLANNED, checks=checks)
        self.current = partial
        if failed(checks):
            line = next(s.line for s in self.plan.stages if s.name == failed(checks)[0].name)
            raise quality_error(checks, file=self.plan.pipeline.origin.file, line=line)
        for check in checks:
            if not check.passed and check.on_fail == "warn":
                self._warn(f'check "{check.name}": {check.detail}')
        if problem := self._gone(entry):
            raise _changed_while_reading(problem)
        landing = Landing(
            plan=self.plan,
            ctx=ctx,
            entry=entry,
            project=self.place.config.project_id,
            profile=self.place.config.profile,
            keeper=keeper,
            on_landed=lambda output: self.place.bus.tell(
                Committed(run_id=self.run_id, pipeline=self.name, n=entry.n, output=output)
            ),
            on_stage=self._tell_stage,
        )
        infos = landing.land(walked, landed)
        dropped = walked.rows_dropped()
        self.current = None
        self.batches.append(
            replace(
                partial,
                state=DONE,
                rows_read=walked.rows_read(),
                rows_quarantined=walked.rows_quarantined(),
                rows_dropped=None if dropped is None else dropped + dropped_by_sinks(infos),
                steps=walked.steps(),
                outputs=tuple(
                    output_result(load, ctx, infos[load.name]) for load in self.plan.loads
                ),
            )
        )
        return infos

    def _context(self, entry: BatchEntry, locks: LockSet) -> RunContext:
        from deltaworks.engines.spark.progress import rows_so_far
        from deltaworks.engines.spark.session import jvm_process

        if not self.place.spark.started:
            self.place.bus.tell(EngineStarting(run_id=self.run_id, pipeline=self.name))
        logs = Path(self.place.config.warehouse) / OWN_FOLDER / "logs"
        spark = self.place.spark.session(log_file=logs / f"spark-{self.run_id}.log")
        jvm = jvm_process(spark)
        if jvm is not None:
            locks.name_jvm(*jvm)
        self.place.bus.tell(
            EngineStarted(
                run_id=self.run_id, pipeline=self.name, rows_so_far=lambda: rows_so_far(spark)
            )
        )
        return RunContext(
            site=self.place.site,
            spark=spark,
            run_id=self.run_id,
            now=self.now,
            bounds=entry.bounds,
        )

    def _cancel(self, ctx: RunContext) -> None:
        from deltaworks.engines.spark.session import cancel_work

        cancel_work(ctx.spark)

    def _tell_stage(self, stage: Stage | Load) -> None:
        self.place.bus.tell(
            StageStarted(run_id=self.run_id, pipeline=self.name, stage=stage.name, kind=stage.kind)
        )

    def _warn(self, message: str) -> None:
        self.notes.append(message)
        self.place.bus.tell(Warned(run_id=self.run_id, pipeline=self.name, message=message))


def _changed_while_reading(problem: str) -> DeltaworksError:
    from deltaworks.errors import InputError

    return InputError(
        f"a source changed while it was read: {problem}",
        hint="run it again when nobody writes there; nothing was committed",
    )


def _skipped_batch(entry: BatchEntry) -> BatchResult:
    return BatchResult(n=entry.n, id=entry.batch_id, state=SKIPPED)


def _completed_batch(entry: BatchEntry) -> BatchResult:
    return BatchResult(n=entry.n, id=entry.batch_id, state=DONE)
