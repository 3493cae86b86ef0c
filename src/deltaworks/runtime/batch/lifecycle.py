"""The batches of one run: planned, executed, completed or given up, each step in the ledger."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from deltaworks.contracts.context import BatchWrite, RunContext
from deltaworks.errors import DeltaworksError, EngineError, GuardError
from deltaworks.model.batch import Bounds, Replay
from deltaworks.model.commit import CommitInfo, Txn
from deltaworks.model.events import BatchPlanned
from deltaworks.model.results import BatchResult, MaintenanceResult
from deltaworks.pipeline.stages import Load, Plan
from deltaworks.redact import safe_json
from deltaworks.runtime.batch.attempt import Attempt, reads_of
from deltaworks.runtime.batch.load import audited
from deltaworks.runtime.batch.verify_sinks import verify_again
from deltaworks.runtime.environment import RunEnv, RunName, start_engine
from deltaworks.runtime.error_boundary import step_boundary
from deltaworks.runtime.ledger.evidence import Writer, ahead, landing, note_of, refuse_meddling
from deltaworks.runtime.ledger.parking import forget_parked, parked_rows
from deltaworks.runtime.ledger.state import DONE, PLANNED, BatchEntry, LedgerState, SinkEntry
from deltaworks.runtime.ledger.table import Ledger, landed_sink, planned_sink
from deltaworks.runtime.quarantine.replay import ReplayPath, replay_path
from deltaworks.runtime.source_bounds import take_pins, why_gone, why_unpinned
from deltaworks.storage.locks.file_lock import LockSet

_EARLIER = "landed in an earlier run"


@dataclass(frozen=True, kw_only=True)
class NewBatch:
    """What a batch is to be, before it has a number."""

    plan: Plan
    bounds: Mapping[str, Bounds]
    batch_id: str | None = None
    full_refresh: bool = False
    replay: Replay | None = None
    backfill: bool = False
    covers: tuple[int, ...] = ()
    judges: bool = False


@dataclass(kw_only=True)
class Batches:
    """What one run does to batches of its pipeline, and what came of each."""

    plan: Plan
    place: RunEnv
    run: RunName
    ledger: Ledger
    locks: LockSet
    warn: Callable[[str], None]
    results: list[BatchResult] = field(default_factory=list)
    blocked: set[str] = field(default_factory=set)
    """Sinks that still wait for a batch which is parked."""
    seen: tuple[int | None, ...] = ()
    """The version of the quarantine, once it was looked at and until this run may change it."""

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
        return self.execute(state.batch(entry.n), state, {})

    def keep_start(self, new: NewBatch, state: LedgerState) -> LedgerState:
        """Write down where increments start, although there is nothing to read from there yet."""
        entry = replace(self._entry(new, state), supersedes=())
        state = self.ledger.planned(entry, state)
        entry = state.batch(entry.n)
        self.results.append(unread(entry, DONE))
        sinks = [replace(sink, landed=True) for sink in entry.sinks]
        return self.ledger.done(entry, state, sinks, self.place.clock.now())

    def _warn_unbounded(self, entry: BatchEntry) -> None:
        """Rows that nobody could recognise would be appended by every run."""
        appends = any(load.plugin.is_append() for load in self.plan.loads)
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
            found = load.plugin.state(self.place.project_ctx, app_id)
            sinks.append(planned_sink(load.name, app_id, found))
        if not new.full_refresh:
            project = self.place.config.project_id
            verify_again(new.plan, self.place.project_ctx, state, sinks, project=project)
        entry = BatchEntry(
            n=self._number(new, state, sinks),
            batch_id=new.batch_id,
            run_id=self.run.run_id,
            spec=self.plan.fingerprint(self.place.project_ctx),
            generation=generation,
            state=PLANNED,
            bounds=new.bounds,
            sinks=tuple(sinks),
            at=self.place.clock.now(),
            token=secrets.token_hex(8),
            replaces=new.full_refresh,
            replay=new.replay,
            backfill=new.backfill,
            covers=new.covers or self._read_again(new, state),
            judges=new.judges,
            quarantine_version=self._quarantine_version(),
            pins=take_pins(self.plan, self.place.project_ctx),
        )
        return replace(entry, supersedes=self._superseded(entry, state))

    def _quarantine_version(self) -> int | None:
        seen, self.seen = self.seen, ()
        return seen[0] if seen else self.place.quarantine(self.run.pipeline).version()

    def _read_again(self, new: NewBatch, state: LedgerState) -> tuple[int, ...]:
        """Batches that restores took out, and that a batch which reads on reads again."""
        if new.full_refresh or new.backfill or new.replay is not None:
            return ()
        holes = {entry.n for entry in state.holes()}
        return tuple(entry.n for entry in state.outstanding() if entry.n not in holes)

    def _number(self, new: NewBatch, state: LedgerState, sinks: Sequence[SinkEntry]) -> int:
        """A number above all that the sinks know; a table ahead of its ledger is refused."""
        taken = max((sink.txn_found or 0 for sink in sinks), default=0)
        if taken < state.next_batch:
            return state.next_batch
        if new.full_refresh:
            return taken + 1
        found = next(sink for sink in sinks if sink.txn_found == taken)
        load = next(load for load in new.plan.loads if load.name == found.name)
        label = load.plugin.target(self.place.project_ctx).label
        raise ahead(label, taken, is_table=found.version_found is not None)

    def _superseded(self, entry: BatchEntry, state: LedgerState) -> tuple[int, ...]:
        """Batches whose rows are read again, so that what they had refused is judged again.

        They are those that a restore took out of some sinks, and those that read the very same,
        where landing it once more adds nothing: the tables that checks look into, and the time,
        may be others now.
        """
        if not entry.reads_on:
            return ()
        again = tuple(other.n for other in state.outstanding() if other.kept)
        if any(load.plugin.is_append() for load in self.plan.loads):
            return again
        return (*again, *(other.n for other in state.same_reads(entry)))

    def execute(
        self, entry: BatchEntry, state: LedgerState, landed: Mapping[str, CommitInfo]
    ) -> LedgerState:
        """Evaluate a batch once, land it where it has not landed, and say so in the ledger."""
        from deltaworks.engines.spark.session.connect import held

        entry = _after_later_loads(entry, state)
        attempt = Attempt.at(
            entry,
            self._plan_of(entry),
            self.place,
            self.run,
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
        landed: Mapping[str, CommitInfo],
    ) -> Mapping[str, CommitInfo]:
        """What an attempt committed; one that failed before that is given up."""
        from deltaworks.engines.spark.errors.lost_jvm import reaching_jvm
        from deltaworks.engines.spark.session.start import jvm_process

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
                self.warn(
                    f'"{output.sink}" was loaded, but its maintenance failed: {error.message}'
                )
                done.append(MaintenanceResult(operation="after_load", note=error.message))
            outputs.append(replace(output, maintenance=tuple(done)))
        return replace(result, outputs=tuple(outputs))

    def _maintain(self, load: Load, ctx: RunContext, done: list[MaintenanceResult]) -> None:
        note = {"run_id": self.run.run_id, "pipeline": self.run.pipeline, "maintenance": load.name}
        with step_boundary(load, self.plan.pipeline.origin.file):
            self.locks.require()
            done.extend(load.plugin.maintain(ctx, safe_json(note)))

    def _engine(self) -> RunContext:
        """A session for this run, whose jobs can be cancelled apart from those of others."""
        ctx = start_engine(self.place, self.run, connectors=self.plan.connectors, keep_log=True)
        self.place.halt.take(ctx.spark, self.run.run_id)
        return ctx

    def load_parked(self, state: LedgerState, *, up_to: int | None = None) -> LedgerState:
        """Commit what was parked, in the order in which it came; what still fails stays."""
        if any(one.replaces and self.landed(one) for one in state.all_unfinished()):
            return state  # a full refresh is in the tables, which has replaced it
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

    def note_parked(self, state: LedgerState) -> LedgerState:
        """Write down which parked batches have been committed by a run that was cut off.

        A full refresh replaces them, and their versions of the tables stay.
        """
        loads = {load.name: load for load in self.plan.loads}
        for entry, sink in state.parked():
            if (load := loads.get(sink.name)) is None:
                continue
            try:
                info = self._landing(load, entry, sink)
            except GuardError:
                continue  # whatever the table holds of it
            if info is not None:
                now = load.plugin.state(self.place.project_ctx, sink.app_id)
                landed = landed_sink(sink, info, now)
                state = self.ledger.loaded_later(entry, landed, state, self.place.clock.now())
                forget_parked(sink.parked, self.place.config.stores)
        return state

    def _load_parked(self, entry: BatchEntry, sink: SinkEntry) -> SinkEntry:
        from deltaworks.engines.spark.session.connect import held

        load = next((load for load in self.plan.loads if load.name == sink.name), None)
        if load is None:
            raise EngineError(f'sink "{sink.name}" is no longer in the pipeline')
        project_ctx = self.place.project_ctx
        before = load.plugin.state(project_ctx, sink.app_id)
        if (landed := self._landing(load, entry, sink)) is not None:
            return landed_sink(sink, landed, before)
        ctx = self._engine()
        note = {**note_of(entry, self._writer(sink)), "run_id": self.run.run_id}
        batch = BatchWrite(
            n=entry.n,
            txn=Txn(sink.app_id, entry.n),
            user_metadata=safe_json({**note, "parked_by": entry.run_id}),
            replace=entry.replaces,
        )
        with held(ctx.spark), step_boundary(load, self.plan.pipeline.origin.file):
            rows = parked_rows(ctx, sink.parked)
            rows = audited(self.plan, load, rows, run_id=self.run.run_id, n=entry.n)
            self.locks.require()
            info = load.plugin.write(ctx, rows, batch)
        now = load.plugin.state(project_ctx, sink.app_id)
        as_now = replace(sink, version_found=before.version, txn_found=before.txn_version)
        refuse_meddling(load, project_ctx, entry, as_now, info=info, now=now)
        return landed_sink(sink, info, now)

    def complete(self, entry: BatchEntry, state: LedgerState) -> LedgerState:
        """Write down that a batch landed, as far as the tables tell."""
        self.results.append(unread(entry, DONE))
        return self._done(entry, state, self.landings(entry))

    def give_up(self, entry: BatchEntry, state: LedgerState) -> LedgerState:
        """Record that a batch will never land, and take back what it had quarantined.

        Not by a run that was overtaken: the batch and its slice may be another's by now.
        """
        self.locks.require()
        self.seen = ()
        self.place.quarantine(self.run.pipeline).give_up(entry)
        return self.ledger.abandoned(entry, state, self.place.clock.now())

    def landed(self, entry: BatchEntry) -> frozenset[str]:
        """The sinks that provably hold a batch."""
        return frozenset(self.landings(entry))

    def landings(self, entry: BatchEntry) -> dict[str, CommitInfo]:
        """How a batch landed in the sinks that provably hold it.

        Those that keep nothing go with the others: what is in need not be shown again.
        """
        found: dict[str, CommitInfo] = {}
        shown: dict[str, CommitInfo] = {}
        for load in self.plan.loads:
            if (sink := entry.sink(load.name)) is None:
                continue
            if not load.plugin.is_persistent:
                shown[load.name] = CommitInfo(committed=False, note="not shown again")
            elif (info := self._landing(load, entry, sink)) is not None:
                found[load.name] = replace(info, note=_EARLIER)
        return {**found, **shown} if found else {}

    def _landing(self, load: Load, entry: BatchEntry, sink: SinkEntry) -> CommitInfo | None:
        return landing(
            load,
            self.place.project_ctx,
            entry,
            sink,
            project=self.place.config.project_id,
            pipeline=self.run.pipeline,
        )

    def _settle_earlier(self, entry: BatchEntry, infos: Mapping[str, CommitInfo]) -> None:
        """The commit of a run that was cut off may have lost files in a power cut: look first."""
        from deltaworks.storage.durability import make_durable, torn_files

        for load in self.plan.loads:
            info = infos.get(load.name)
            if info is None or info.note != _EARLIER or info.version is None:
                continue
            ref = load.plugin.target(self.place.project_ctx)
            if torn := torn_files(ref.location, info.version):
                raise GuardError(
                    f'"{ref.label}" holds batch {entry.n} in version {info.version}, '
                    f"and file {torn[0]} of it is missing or cut short",
                    hint="put the file back, or reload everything with --full-refresh",
                )
            make_durable(ref.location, info.version)

    def _writer(self, sink: SinkEntry) -> Writer:
        return Writer(self.place.config.project_id, self.run.pipeline, sink.name)

    def gone(self, entry: BatchEntry) -> str:
        """Why what a batch read cannot be read again identically; empty when it can."""
        return why_gone(self.plan, self.place.project_ctx, entry.bounds) or why_unpinned(
            entry.pins, self.place.config.stores
        )

    def _plan_of(self, entry: BatchEntry) -> Plan:
        """The plan with only those sinks that the batch goes to."""
        names = {sink.name for sink in entry.sinks}
        return with_loads(self.plan, names)

    def _way(self, entry: BatchEntry) -> ReplayPath | None:
        if entry.replay is None:
            return None
        quarantine = self.place.quarantine(self.run.pipeline)
        return replay_path(self._plan_of(entry), quarantine.entries(entry.replay))

    def _done(
        self, entry: BatchEntry, state: LedgerState, infos: Mapping[str, CommitInfo]
    ) -> LedgerState:
        """A batch has landed: what it makes out of date goes, then it is done."""
        self._settle_earlier(entry, infos)
        sinks = self._landed_sinks(entry, infos)
        self.seen = ()
        quarantine = self.place.quarantine(self.run.pipeline)
        quarantine.leave(entry)
        if entry.replaces:
            for _, sink in state.parked():
                forget_parked(sink.parked, self.place.config.stores)
        return self.ledger.done(entry, state, sinks, self.place.clock.now())

    def _landed_sinks(self, entry: BatchEntry, infos: Mapping[str, CommitInfo]) -> list[SinkEntry]:
        """The sinks of a batch as they are now; each must be the table that it was planned for."""
        loads = {load.name: load for load in self.plan.loads}
        found = []
        for sink in entry.sinks:
            load, info = loads[sink.name], infos[sink.name]
            now = load.plugin.state(self.place.project_ctx, sink.app_id)
            refuse_meddling(load, self.place.project_ctx, entry, sink, info=info, now=now)
            found.append(landed_sink(sink, info, now))
        return found


def _after_later_loads(entry: BatchEntry, state: LedgerState) -> BatchEntry:
    """A batch as if planned now: older ones may have been parked then, and loaded meanwhile."""

    def found(sink: SinkEntry) -> SinkEntry:
        older = [
            other.n
            for other in state.batches
            if other.n < entry.n and other.generation == entry.generation
            if (there := other.sink(sink.name)) is not None
            if there.committed and not there.accepted
        ]
        newest = max(older, default=0)
        return replace(sink, txn_found=newest) if newest > (sink.txn_found or 0) else sink

    return replace(entry, sinks=tuple(map(found, entry.sinks)))


def with_loads(plan: Plan, names: set[str]) -> Plan:
    """A plan with only some of its sinks."""
    kept = (stage for stage in plan.stages if not isinstance(stage, Load) or stage.name in names)
    return replace(plan, stages=tuple(kept))


def unread(entry: BatchEntry, state: str) -> BatchResult:
    """A batch that this run did not read; its counts are not known."""
    return BatchResult(n=entry.n, id=entry.batch_id, state=state, reads=reads_of(entry))
