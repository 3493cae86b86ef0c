"""The batches of one run: planned, executed, completed or given up, each step in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from deltaworks.contracts.context import BatchWrite, RunContext
from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.engines.lock import LockSet
from deltaworks.errors import DeltaworksError, EngineError
from deltaworks.model.batch import Bounds, Replay
from deltaworks.model.commit import CommitInfo, Txn
from deltaworks.model.events import BatchPlanned
from deltaworks.model.results import BatchResult, MaintenanceResult
from deltaworks.pipeline.stages import Load, Plan
from deltaworks.redact import safe_json
from deltaworks.runtime.attempt import Attempt, reads_of
from deltaworks.runtime.boundary import step_boundary
from deltaworks.runtime.bounds import take_pins, why_gone, why_unpinned
from deltaworks.runtime.ledger import (
    DONE,
    PLANNED,
    BatchEntry,
    Ledger,
    LedgerState,
    SinkEntry,
    landed_sink,
    planned_sink,
)
from deltaworks.runtime.load import audited
from deltaworks.runtime.parking import forget_parked, parked_rows
from deltaworks.runtime.reentry import Way, way_back
from deltaworks.runtime.workplace import RunName, Workplace, start_engine


@dataclass(frozen=True, kw_only=True)
class NewBatch:
    """What a batch is to be, before it has a number."""

    plan: Plan
    bounds: Mapping[str, Bounds]
    batch_id: str | None = None
    full_refresh: bool = False
    replay: Replay | None = None
    backfill: bool = False


@dataclass(kw_only=True)
class Batches:
    """What one run does to batches of its pipeline, and what came of each."""

    plan: Plan
    place: Workplace
    run: RunName
    ledger: Ledger
    locks: LockSet
    warn: Callable[[str], None]
    results: list[BatchResult] = field(default_factory=list)
    blocked: set[str] = field(default_factory=set)
    """Sinks that still wait for a batch which is parked."""

    def plan_new(self, new: NewBatch, state: LedgerState) -> LedgerState:
        """Write down what a batch will read and where it goes, then execute it."""
        entry = self._entry(new, state)
        self._warn_unbounded(entry)
        state = self.ledger.planned(entry, state)
        detail = ", ".join(f"{name}: {b.summary()}" for name, b in entry.bounds.items())
        self.place.bus.tell(
            BatchPlanned(
                run_id=self.run.run_id, pipeline=self.run.pipeline, n=entry.n, detail=detail
            )
        )
        return self.execute(entry, state, frozenset())

    def _warn_unbounded(self, entry: BatchEntry) -> None:
        """Rows that nobody could recognise would be appended by every run."""
        appends = any(load.plugin.adds_on_rerun() for load in self.plan.loads)
        for name, bounds in entry.bounds.items():
            if appends and not bounds.bounded and entry.batch_id is None:
                self.warn(
                    f'"{name}" is not bounded: each run appends what it gives then; '
                    "with --batch-id a batch lands once"
                )

    def _entry(self, new: NewBatch, state: LedgerState) -> BatchEntry:
        generation = state.next_generation if new.full_refresh else state.generation
        sinks = []
        for load in new.plan.loads:
            app_id = self.ledger.app_id(load.name, generation)
            found = load.plugin.state(self.place.site, app_id)
            sinks.append(planned_sink(load.name, app_id, found))
        return BatchEntry(
            n=state.next_batch,
            batch_id=new.batch_id,
            run_id=self.run.run_id,
            spec=self.plan.fingerprint(self.place.site),
            generation=generation,
            state=PLANNED,
            bounds=new.bounds,
            sinks=tuple(sinks),
            at=self.place.clock.now(),
            replaces=new.full_refresh,
            replay=new.replay,
            backfill=new.backfill,
            pins=take_pins(self.plan, self.place.site),
        )

    def execute(self, entry: BatchEntry, state: LedgerState, landed: frozenset[str]) -> LedgerState:
        """Evaluate a batch once, land it where it has not landed, and say so in the ledger."""
        from deltaworks.engines.spark.connection import held

        attempt = Attempt.at(
            entry,
            self._plan_of(entry),
            self.place,
            self.run,
            twin=state.twin_of(entry) if entry.replay is None else None,
            way=self._way(entry),
            blocked=frozenset(self.blocked),
            warn=self.warn,
            require_locks=self.locks.require,
        )
        pinned = {place: pin.version for place, pin in entry.pins.items()}
        ctx = replace(self._engine(), pinned=pinned)
        with held(ctx.spark):
            infos = self._made(attempt, ctx, entry, state, landed)
            state = self._done(entry, state, infos)
            self.results[-1] = self._maintained(attempt.result, ctx)
        return state

    def _made(
        self,
        attempt: Attempt,
        ctx: RunContext,
        entry: BatchEntry,
        state: LedgerState,
        landed: frozenset[str],
    ) -> Mapping[str, CommitInfo]:
        """What an attempt committed; one that failed before that is given up."""
        from deltaworks.engines.spark.lost_jvm import reaching_jvm
        from deltaworks.engines.spark.session import jvm_process

        with reaching_jvm():
            jvm = jvm_process(ctx.spark)
        if jvm is not None:
            self.locks.name_jvm(*jvm)
        try:
            with reaching_jvm():
                return attempt.make(ctx, landed)
        except DeltaworksError:
            if not (attempt.may_have_landed or landed or self.place.halt.asked):
                self.give_up(entry, state)  # so the next run starts clean
            raise
        finally:
            ctx.until_end.close()
            self.results.append(attempt.result)

    def _maintained(self, result: BatchResult, ctx: RunContext) -> BatchResult:
        """Look after the tables a batch went into; the rows are in, whatever comes of it."""
        loads = {load.name: load for load in self.plan.loads}
        outputs = []
        for output in result.outputs:
            done: list[MaintenanceResult] = []
            try:
                if output.committed:
                    self._maintain(loads[output.sink], ctx, done)
            except DeltaworksError as error:
                self.warn(f'"{output.sink}" was loaded, but not looked after: {error.message}')
                done.append(MaintenanceResult(operation="after_load", note=error.message))
            outputs.append(replace(output, maintenance=tuple(done)))
        return replace(result, outputs=tuple(outputs))

    def _maintain(self, load: Load, ctx: RunContext, done: list[MaintenanceResult]) -> None:
        note = {"run_id": self.run.run_id, "pipeline": self.run.pipeline, "maintenance": load.name}
        with step_boundary(load, self.plan.pipeline.origin.file):
            done.extend(load.plugin.maintain(ctx, safe_json(note)))

    def _engine(self) -> RunContext:
        """A session for this run, whose jobs can be cancelled apart from those of others."""
        ctx = start_engine(self.place, self.run, connectors=self.plan.connectors, keep_log=True)
        self.place.halt.take(ctx.spark, self.run.run_id)
        return ctx

    def load_parked(self, state: LedgerState, *, up_to: int | None = None) -> LedgerState:
        """Commit what was parked, in the order in which it came; what still fails stays."""
        for entry, sink in state.parked():
            if sink.name in self.blocked or (up_to is not None and entry.n > up_to):
                continue
            try:
                landed = self._load_parked(entry, sink)
            except EngineError as error:
                self.blocked.add(sink.name)
                if up_to is not None:
                    raise
                self.warn(f"batch {entry.n} stays parked: {error.message}")
                continue
            state = self.ledger.loaded_later(entry, landed, state, self.place.clock.now())
            forget_parked(sink.parked, self.place.config.stores)
            self.warn(f'batch {entry.n}, which was parked, is in "{sink.name}" now')
        return state

    def _load_parked(self, entry: BatchEntry, sink: SinkEntry) -> SinkEntry:
        from deltaworks.engines.spark.connection import held

        load = next((load for load in self.plan.loads if load.name == sink.name), None)
        if load is None:
            raise EngineError(f'sink "{sink.name}" is no longer in the pipeline')
        ctx = self._engine()
        note = {"run_id": self.run.run_id, "pipeline": self.run.pipeline, "step": sink.name}
        batch = BatchWrite(
            n=entry.n,
            txn=Txn(sink.app_id, entry.n),
            user_metadata=safe_json({**note, "batch": entry.n, "parked_by": entry.run_id}),
            replace=entry.replaces,
        )
        with held(ctx.spark), step_boundary(load, self.plan.pipeline.origin.file):
            rows = parked_rows(ctx, sink.parked)
            rows = audited(self.plan, load, rows, run_id=self.run.run_id, n=entry.n)
            info = load.plugin.write(ctx, rows, batch)
        return landed_sink(sink, info, load.plugin.state(self.place.site, sink.app_id))

    def complete(self, entry: BatchEntry, state: LedgerState) -> LedgerState:
        """Write down that a batch landed, as far as the tables tell."""
        infos = {sink.name: self._landed_info(sink.name, entry.n) for sink in entry.sinks}
        self.results.append(unread(entry, DONE))
        return self._done(entry, state, infos)

    def give_up(self, entry: BatchEntry, state: LedgerState) -> LedgerState:
        """Record that a batch will never land, and take back what it set aside."""
        self.place.quarantine(self.run.pipeline).clear(entry)
        return self.ledger.abandoned(entry, state, self.place.clock.now())

    def landed(self, entry: BatchEntry) -> frozenset[str]:
        """The sinks whose own transaction says that a batch is in.

        Those that keep nothing go with the others: what is in need not be shown again.
        """
        app_ids = {sink.name: sink.app_id for sink in entry.sinks}
        loads = [load for load in self.plan.loads if load.name in app_ids]
        found = {
            load.name
            for load in loads
            if load.plugin.state(self.place.site, app_ids[load.name]).txn_version == entry.n
        }
        shown = {load.name for load in loads if not load.plugin.keeps}
        return frozenset(found | shown if found else ())

    def gone(self, entry: BatchEntry) -> str:
        """Why what a batch read cannot be read again identically; empty when it can."""
        return why_gone(self.plan, self.place.site, entry.bounds) or why_unpinned(
            entry.pins, self.place.config.stores
        )

    def _plan_of(self, entry: BatchEntry) -> Plan:
        """The plan with only those sinks that the batch goes to."""
        names = {sink.name for sink in entry.sinks}
        return with_loads(self.plan, names)

    def _way(self, entry: BatchEntry) -> Way | None:
        if entry.replay is None:
            return None
        quarantine = self.place.quarantine(self.run.pipeline)
        return way_back(self.plan, quarantine.entries(entry.replay))

    def _done(
        self, entry: BatchEntry, state: LedgerState, infos: Mapping[str, CommitInfo]
    ) -> LedgerState:
        """A batch has landed: what it makes out of date goes, then it is done."""
        quarantine = self.place.quarantine(self.run.pipeline)
        if entry.replay is not None:
            quarantine.forget(entry.replay, n=entry.n)
        if entry.replaces:
            quarantine.forget_older(entry.generation)
            for _, sink in state.parked():
                forget_parked(sink.parked, self.place.config.stores)
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

    def _landed_info(self, name: str, n: int) -> CommitInfo:
        load = next(load for load in self.plan.loads if load.name == name)
        if not load.plugin.keeps:
            return CommitInfo(committed=False)
        if load.plugin.state(self.place.site, "").version is None:
            return CommitInfo(committed=True)
        location, mine = load.plugin.target(self.place.site).location, self.run.pipeline
        for record in DeltaRsEngine(self.place.config.stores).history(location, limit=50):
            note = record.user_metadata
            if (note.get("pipeline"), note.get("step"), note.get("batch")) == (mine, name, n):
                return CommitInfo(committed=True, version=record.version)
        return CommitInfo(committed=True)


def with_loads(plan: Plan, names: set[str]) -> Plan:
    """A plan with only some of its sinks."""
    kept = (stage for stage in plan.stages if not isinstance(stage, Load) or stage.name in names)
    return replace(plan, stages=tuple(kept))


def unread(entry: BatchEntry, state: str) -> BatchResult:
    """A batch that this run did not read; its counts are not known."""
    return BatchResult(n=entry.n, id=entry.batch_id, state=state, reads=reads_of(entry))
