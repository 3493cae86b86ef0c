"""Lands a batch: its quarantine slice first, then every sink that does not have it yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import stamina

from deltaworks.config.project import RetrySettings
from deltaworks.contracts.context import BatchWrite, RunContext, as_it_is
from deltaworks.contracts.sink import Sink
from deltaworks.engines.spark.delta.merge.small_batches import is_repeatable
from deltaworks.engines.spark.delta.schema_fit import frame_schema
from deltaworks.errors import (
    CommitConflict,
    ConstraintViolated,
    DeltaworksError,
    EngineError,
    GuardError,
    InputError,
    InternalError,
)
from deltaworks.model.commit import LANDED_BEFORE, CommitInfo, Txn
from deltaworks.model.results import OutputResult
from deltaworks.pipeline.stages import Load, Plan
from deltaworks.redact import safe_json
from deltaworks.runtime.cancellation import job_tag
from deltaworks.runtime.error_boundary import step_boundary
from deltaworks.runtime.evaluation.evaluator import Evaluation
from deltaworks.runtime.evaluation.frames import FrameCache, StepFrame
from deltaworks.runtime.ledger.evidence import Writer, landing, note_of
from deltaworks.runtime.ledger.parking import ParkingPlace, may_park
from deltaworks.runtime.ledger.state import BatchEntry, SinkEntry
from deltaworks.runtime.quarantine.table import SINK as QUARANTINE
from deltaworks.runtime.quarantine.table import Quarantine, write_quarantine
from deltaworks.runtime.source_bounds import FileWatch, is_incremental, source_changed
from deltaworks.storage.durability import make_durable
from deltaworks.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MAX_METADATA_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class Landing:
    """One batch on its way into its sinks."""

    plan: Plan
    ctx: RunContext
    entry: BatchEntry
    project: str
    profile: str
    keeper: FrameCache
    retries: RetrySettings
    blocked: frozenset[str]
    """Sinks that wait for an older batch which is parked; a newer one must not pass it."""
    warn: Callable[[str], None]
    require_locks: Callable[[], None]
    """Raises when another driver has taken over; asked last before each commit."""
    on_landed: Callable[[OutputResult], None]
    on_stage: Callable[[Load], None]

    def prepare(self, walked: Evaluation, landed: Mapping[str, CommitInfo]) -> None:
        """Evaluate what is read more than once, and see that every sink will take its rows."""
        self._keep(walked)
        if len(self.plan.loads) > 1 and not landed:
            self._verify(walked)

    def land(self, walked: Evaluation, landed: Mapping[str, CommitInfo]) -> dict[str, CommitInfo]:
        """Write the batch wherever it has not landed; answers how it landed in each sink."""
        if not landed and self.entry.sets_aside:
            self._quarantine(walked)
        results: dict[str, CommitInfo] = {}
        for load in self.plan.loads:
            sink = self._sink(load.name)
            if load.name in landed:
                results[load.name] = landed[load.name]
                continue
            self.on_stage(load)
            info = self._write(load, sink, walked.frames[load.inputs[0]])
            results[load.name] = info
            if load.plugin.is_persistent:
                self.on_landed(output_result(load, self.ctx, info))
        return results

    def _verify(self, walked: Evaluation) -> None:
        """Before the first sink is written, all must be willing to take the rows."""
        for load in self.plan.loads:
            frame = self._stamped(load, walked.frames[load.inputs[0]])
            with step_boundary(load, self.plan.pipeline.origin.file):
                load.plugin.verify(self.ctx, frame)

    def _stamped(self, load: Load, step: StepFrame) -> DataFrame:
        run_id, n = self.ctx.run_id, self.entry.n
        return audited(self.plan, load, step.frame, run_id=run_id, n=n)

    def _sink(self, name: str) -> SinkEntry:
        return next(sink for sink in self.entry.sinks if sink.name == name)

    def _keep(self, walked: Evaluation) -> None:
        """Rows that are read more than once are evaluated once."""
        readers: dict[str, int] = {}
        for load in self.plan.loads:
            times = 1 if self._may_read_once(load, walked.frames[load.inputs[0]]) else 2
            readers[load.inputs[0]] = readers.get(load.inputs[0], 0) + times
        for name, times in readers.items():
            step = walked.frames[name]
            if times > 1 and not step.kept:
                step.frame, step.kept = self.keeper.keep(step.frame), True

    def _may_read_once(self, load: Load, step: StepFrame) -> bool:
        """Whether rows need not be kept for a sink: it reads them once, or finds them again."""
        if not load.plugin.needs_cached_input():
            return True
        bounded = all(bounds.bounded for bounds in self.entry.bounds.values())
        return bounded and load.plugin.may_read_once() and is_repeatable(step.frame)

    def _quarantine(self, walked: Evaluation) -> None:
        app_id = self.entry.sinks[0].app_id.replace(
            f":{self.entry.sinks[0].name}:", f":{QUARANTINE}:"
        )
        write_quarantine(
            self.ctx,
            Quarantine.of(
                self.ctx.project_ctx.warehouse,
                project=self.project,
                pipeline=self.plan.pipeline.name,
                stores=self.ctx.project_ctx.stores,
            ),
            walked.rejects,
            entry=self.entry,
            txn=Txn(f"{app_id}:{self.ctx.run_id}", self.entry.n),
            user_metadata=self._metadata(QUARANTINE, ""),
            once=self._reads_all(),
        )

    def _reads_all(self) -> bool:
        """Whether the sources are read as a whole each time, so that rows are refused again."""
        adds = any(load.plugin.is_append() for load in self.plan.loads)
        return self.entry.reads_on and not adds and not is_incremental(self.plan)

    def _write(self, load: Load, sink: SinkEntry, step: StepFrame) -> CommitInfo:
        """Land the batch in one sink, trying again when another writer was faster."""
        if load.name in self.blocked:
            return self._park(load, step, "an older batch is parked")
        with step_boundary(load, self.plan.pipeline.origin.file):
            self._refuse_moved(load.plugin, sink)
        watch = self._watch(step)
        try:
            with watch:
                info = retried(
                    lambda attempt: self._try(load, sink, step, attempt, watch), self.retries
                )
        except DeltaworksError as error:
            if watch.problem:
                raise source_changed(watch.problem) from error
            if not isinstance(error, EngineError) or not may_park(load.plugin, error):
                raise
            return self._park(load, step, error.message)
        self._tell_late_change(load, watch)
        step.read = step.kept and info.committed
        _balance(load.name, step, info)
        return info

    def _watch(self, step: StepFrame) -> FileWatch:
        """Who looks after the files while rows are read; nobody, once they have been."""
        from deltaworks.engines.spark.session.jobs import cancel_jobs

        bounds = {} if step.read or self.entry.replay is not None else self.entry.bounds
        stop = partial(cancel_jobs, self.ctx.spark, job_tag(self.ctx.run_id))
        return FileWatch(self.plan, self.ctx.project_ctx, bounds, stop)

    def _tell_late_change(self, load: Load, watch: FileWatch) -> None:
        """Tell of a file that changed at the very end, maybe before its last row was read."""
        try:
            watch.confirm()
        except InputError as changed:
            self.warn(
                f'{changed.message}, just when batch {self.entry.n} landed in "{load.name}"; '
                "compare its rows with what was meant, or take it back with "
                "`deltaworks table undo`"
            )

    def _park(self, load: Load, step: StepFrame, reason: str) -> CommitInfo:
        """Keep the rows until they can be committed."""
        self.require_locks()
        place = ParkingPlace.of(self.ctx.project_ctx, self.plan.pipeline.name)
        manifest = {
            "run_id": self.ctx.run_id,
            "project": self.project,
            "pipeline": self.plan.pipeline.name,
            "target": load.plugin.target(self.ctx.project_ctx).location,
            "sources": {name: bounds.to_json() for name, bounds in self.entry.bounds.items()},
            "reason": reason,
        }
        with step_boundary(load, self.plan.pipeline.origin.file):
            parked, rows = place.park(
                step.frame,
                n=self.entry.n,
                sink=load.name,
                manifest=manifest,
                confirm=self._watch(step).confirm,
            )
        self.warn(
            f'batch {self.entry.n} is parked for sink "{load.name}", not loaded: {reason}; '
            "the next run tries again"
        )
        note = f"parked: {reason}"
        return CommitInfo(committed=False, parked=parked, rows_parked=rows, note=note)

    def _try(
        self, load: Load, sink: SinkEntry, step: StepFrame, attempt: int, watch: FileWatch
    ) -> CommitInfo:
        schema = frame_schema(step.frame).document
        batch = BatchWrite(
            n=self.entry.n,
            txn=Txn(sink.app_id, self.entry.n),
            user_metadata=self._metadata(load.name, schema, attempt=attempt),
            holds_rows=step.holds_rows or bool(step.count.known),
            replace=self.entry.replaces,
            keep=as_it_is if step.kept else self.keeper.keep,
            confirm=watch.confirm,
        )
        self.require_locks()
        try:
            with step_boundary(load, self.plan.pipeline.origin.file):
                info = load.plugin.write(self.ctx, self._stamped(load, step), batch)
            return replace(info, committed=True) if info.note == LANDED_BEFORE else info
        except ConstraintViolated as error:
            with step_boundary(load, self.plan.pipeline.origin.file):
                error.context["violations"] = load.plugin.violations(self.ctx, step.frame)
            raise
        except EngineError as error:
            names = {"project": self.project, "pipeline": self.plan.pipeline.name}
            landed = landing(load, self.ctx.project_ctx, self.entry, sink, **names)
            if landed is None:
                raise
            if landed.version is not None:
                make_durable(load.plugin.target(self.ctx.project_ctx).location, landed.version)
            note = f"the commit landed, though it was reported as failed: {error.message}"
            return replace(landed, note=note)

    def _refuse_moved(self, plugin: Sink, sink: SinkEntry) -> None:
        """Commit only where the writer's own last batch is the one the plan found.

        A sink that does not remember its batches, such as a topic, has none to compare with.
        """
        if not plugin.tracks_batches:
            return
        now = plugin.state(self.ctx.project_ctx, sink.app_id)
        if now.txn_version != sink.txn_found:
            raise GuardError(
                f'sink "{sink.name}" has moved on since this batch was planned '
                f"(batch {now.txn_version}, planned on {sink.txn_found})",
                hint="run it again",
            )

    def _metadata(self, step: str, schema: str, *, attempt: int = 1) -> str:
        """The commit's note: small, for the audit only."""
        note = {
            "deltaworks": __version__,
            "run_id": self.ctx.run_id,
            **note_of(self.entry, Writer(self.project, self.plan.pipeline.name, step)),
            "batch_id": self.entry.batch_id,
            "generation": self.entry.generation,
            "spec": self.entry.spec,
            "schema": _fingerprint(schema),
            "profile": self.profile,
            "attempt": attempt,
        }
        text = safe_json({key: value for key, value in note.items() if value not in (None, "")})
        if len(text.encode()) > _MAX_METADATA_BYTES:
            raise InternalError("the note of a commit is larger than it may be")
        return text


def audited(plan: Plan, load: Load, frame: DataFrame, *, run_id: str, n: int) -> DataFrame:
    """Rows for a Delta table, with the run and batch that write them where that is asked."""
    from deltaworks.engines.spark.frames.audit_columns import stamped

    if not plan.pipeline.audit_columns or load.plugin.plugin_type() != "delta":
        return frame
    return stamped(frame, run_id=run_id, n=n)


def _fingerprint(schema: str) -> str:
    import hashlib

    return hashlib.sha256(schema.encode()).hexdigest()[:16] if schema else ""


def _balance(name: str, step: StepFrame, info: CommitInfo) -> None:
    """What a sink was given is what it accounts for."""
    counts = (info.rows_inserted, info.rows_updated, info.rows_deleted, info.rows_unchanged)
    rows = step.rows()
    if rows is None or not info.committed or info.rows_unchanged is None:
        return
    known = [count for count in counts if count is not None]
    total = sum(known) + sum(info.rows_dropped.values())
    if len(known) == len(counts) and total < rows:
        raise InternalError(
            f'sink "{name}" took {rows:,} rows and accounts for {total:,}',
            hint="please report this with the pipeline file",
        )


def output_result(load: Load, ctx: RunContext, info: CommitInfo) -> OutputResult:
    """How a batch landed, for the people and programs who read the result."""
    is_table = load.plugin.plugin_type() == "delta"
    label = load.plugin.target(ctx.project_ctx).label
    return OutputResult(
        sink=load.name,
        table=label if is_table else "",
        path="" if is_table else label,
        committed=info.committed,
        version=info.version,
        rows_inserted=info.rows_inserted,
        rows_updated=info.rows_updated,
        rows_deleted=info.rows_deleted,
        rows_unchanged=info.rows_unchanged,
        rows_parked=info.rows_parked,
        note=info.note,
        strategy=info.strategy,
        files=info.files,
        shown=info.shown,
    )


def dropped_by_sinks(landed: Mapping[str, CommitInfo]) -> int:
    """Rows that sinks left out by a named rule."""
    return sum(sum(info.rows_dropped.values()) for info in landed.values())


Answer = TypeVar("Answer")


def retried(work: Callable[[int], Answer], settings: RetrySettings) -> Answer:
    """What the work answers; it is told which attempt it is, and tried again after a conflict."""
    for attempt in stamina.retry_context(
        on=CommitConflict,
        attempts=settings.attempts,
        timeout=None,
        wait_initial=settings.wait_seconds,
        wait_max=settings.most_wait_seconds,
        wait_jitter=settings.wait_seconds,
    ):
        with attempt:
            return work(attempt.num)
    raise AssertionError("a retry ends with an answer or an error")
