"""Taking back one run: its rows go, and what it had changed is as before.

Nothing is rewound: what the run had read counts as read. As with a restore the intent stands in
the ledger first, and one that was cut off is settled by the next to come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from deltaworks.contracts.context import BatchWrite, ProjectContext, RunContext
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import GuardError
from deltaworks.model.commit import TAKEN_OUT, Txn, UndoInfo
from deltaworks.pipeline.stages import Load, Plan
from deltaworks.redact import safe_json
from deltaworks.runtime.batch.verify_sinks import verify_tables
from deltaworks.runtime.environment import RunEnv, new_run, start_engine
from deltaworks.runtime.error_boundary import step_boundary
from deltaworks.runtime.ledger.evidence import Writer
from deltaworks.runtime.ledger.parking import forget_parked
from deltaworks.runtime.ledger.state import (
    DONE,
    NOT_UNDONE,
    UNDOING,
    UNDONE,
    BatchEntry,
    LedgerState,
    SinkEntry,
)
from deltaworks.runtime.ledger.table import Ledger
from deltaworks.runtime.quarantine.table import Quarantine
from deltaworks.runtime.recovery.restore import settle_restores
from deltaworks.storage.locks.file_lock import lock_of, locked, pipeline_lock
from deltaworks.version import __version__


@dataclass(frozen=True, kw_only=True)
class UndoResult:
    """What undoing a run did, or would do."""

    run_id: str
    batches: tuple[int, ...]
    """The batches of the run, newest first, which is the order they are undone in."""
    applied: bool
    tables: tuple[tuple[str, UndoInfo], ...]

    def to_json(self) -> dict[str, Any]:
        """A plain document for programs."""
        return {
            "run_id": self.run_id,
            "batch": self.batches[0],
            "batches": list(self.batches),
            "applied": self.applied,
            "tables": [
                {
                    "table": label,
                    "version": info.version,
                    "rows_removed": info.rows_removed,
                    "rows_put_back": info.rows_put_back,
                }
                for label, info in self.tables
            ],
        }


@dataclass(frozen=True, kw_only=True)
class _Undo:
    """The undo of batches of one run, under its locks."""

    plan: Plan
    place: RunEnv
    ledger: Ledger
    quarantine: Quarantine
    ctx: RunContext
    require_locks: Callable[[], None]
    """Raises when another driver has taken over."""

    def look(self, entry: BatchEntry, state: LedgerState) -> list[tuple[str, UndoInfo]]:
        """What would happen in each table; raises where it cannot."""
        begun = entry if entry.n in state.undoing else replace(entry, undo_event=state.events + 1)
        self.quarantine.require_returns([entry], (entry.n,))
        return self._take_out(begun, apply=False)

    def carry_out(
        self, entry: BatchEntry, state: LedgerState
    ) -> tuple[LedgerState, list[tuple[str, UndoInfo]]]:
        """Take one batch out of all its sinks; the ledger knows before and after."""
        if entry.n not in state.undoing:
            detail = {"quarantine_version": self.quarantine.version()}
            state = self._record(UNDOING, entry, state, detail)
        entry = state.batch(entry.n)
        self.require_locks()
        tables = self._take_out(entry, apply=True)
        settle_quarantine(entry, self.quarantine)
        project = self.place.config.project_id
        found = undo_versions(entry, self.plan, self.ctx.project_ctx, project=project)
        versions = {"versions": found}
        return self._record(UNDONE, entry, state, versions), tables

    def _record(
        self, kind: str, entry: BatchEntry, state: LedgerState, detail: dict[str, Any]
    ) -> LedgerState:
        return self.ledger.undo(kind, entry, state, self.place.clock.now(), detail=detail)

    def _take_out(self, entry: BatchEntry, *, apply: bool) -> list[tuple[str, UndoInfo]]:
        found = []
        for load, sink in _committed(entry, self.plan):
            batch = _write(
                entry,
                sink,
                run_id=self.ctx.run_id,
                project=self.place.config.project_id,
                pipeline=self.plan.pipeline.name,
            )
            with step_boundary(load, self.plan.pipeline.origin.file):
                info = load.plugin.undo(self.ctx, sink.version or 0, batch, apply=apply)
            found.append((load.plugin.target(self.ctx.project_ctx).label, info))
        return found


def undo_run(run_id: str, plan: Plan, place: RunEnv, *, apply: bool) -> UndoResult:
    """Take a run's batches out of their sinks, newest first; without `apply` only look.

    Each batch goes out of all its sinks or of none.
    """
    from deltaworks.engines.spark.session.connect import held

    config, name = place.config, plan.pipeline.name
    ledger = place.ledger(name)
    paths = [pipeline_lock(config.warehouse, name)]
    paths.extend(
        lock_of(p) for load in plan.loads if (p := load.plugin.lock_path(place.project_ctx))
    )
    wait = config.locks.wait_seconds
    with locked(paths, wait_seconds=wait, notify=place.notify, stores=config.stores) as locks:
        state = settle_restores(ledger, ledger.state(), place.quarantine(name), place.clock.now())
        entries = _batches_of(run_id, state)
        _refuse_unfinished(state)
        _refuse_two_generations(state)
        _refuse_unknown_loads(plan, place.project_ctx, state)
        verify_tables(plan, place.project_ctx, state, project=config.project_id)
        ctx = start_engine(place, new_run(name, place), connectors=plan.connectors, keep_log=True)
        with held(ctx.spark):
            undo = _Undo(
                plan=plan,
                place=place,
                ledger=ledger,
                quarantine=place.quarantine(name),
                ctx=ctx,
                require_locks=locks.require,
            )
            tables = undo.look(entries[0], state)
            if apply:
                tables = _carry_out(undo, entries, state)
            else:
                tables.extend(t for entry in entries[1:] for t in _looked(undo, entry, state))
    numbers = tuple(entry.n for entry in entries)
    return UndoResult(run_id=run_id, batches=numbers, applied=apply, tables=tuple(tables))


def _refuse_unfinished(state: LedgerState) -> None:
    if state.unfinished is not None:
        raise GuardError(
            f"batch {state.unfinished.n} is unfinished",
            hint=f"finish it first: deltaworks runs resume {state.unfinished.run_id}",
        )


def _refuse_unknown_loads(plan: Plan, project_ctx: ProjectContext, state: LedgerState) -> None:
    """A parked batch that was committed without its ledger's knowing would stay in that table."""
    loads = {load.name: load for load in plan.loads}
    for entry, sink in state.parked():
        load = loads.get(sink.name)
        if load and (load.plugin.state(project_ctx, sink.app_id).txn_version or 0) >= entry.n:
            raise GuardError(
                f'batch {entry.n}, which was parked, is in "{sink.name}", '
                "and the ledger does not know it yet",
                hint="run the pipeline once, then undo",
            )


def _refuse_two_generations(state: LedgerState) -> None:
    """While one table has a full refresh and another has what was before it, no batch is in all."""
    for entry in state.half_out():
        if entry.replaces and entry.reverted:
            raise GuardError(
                f'batch {entry.n} was taken out of some sinks and still is in "{min(entry.kept)}"',
                hint=f'restore "{min(entry.kept)}" to before that batch as well, then undo',
            )


def _carry_out(
    undo: _Undo, entries: list[BatchEntry], state: LedgerState
) -> list[tuple[str, UndoInfo]]:
    tables: list[tuple[str, UndoInfo]] = []
    for done, entry in enumerate(entries):
        try:
            undo.look(entry, state)  # all its tables allow it, or none is touched
        except GuardError as error:
            if not done:
                raise
            undone = ", ".join(str(one.n) for one in entries[:done])
            raise GuardError(
                f"batch {undone} of this run was undone, and batch {entry.n} cannot be: "
                f"{error.message}",
                hint=error.hint,
            ) from error
        state, more = undo.carry_out(entry, state)
        tables.extend(more)
    return tables


def _looked(undo: _Undo, entry: BatchEntry, state: LedgerState) -> list[tuple[str, UndoInfo]]:
    """What an older batch would give up; what newer ones of the run changed again is not known."""
    try:
        return undo.look(entry, state)
    except GuardError:
        return []


def settle_quarantine(entry: BatchEntry, quarantine: Quarantine) -> None:
    """What an undone batch had quarantined or parked goes; what it had settled returns."""
    quarantine.take_back(entry, gone=(entry.n,), key=_key(entry))
    for parked in (sink.parked for sink in entry.sinks if sink.parked):
        forget_parked(parked, quarantine.stores)


def _key(entry: BatchEntry) -> str:
    return f"undo-{entry.undo_event}"


def undo_versions(
    entry: BatchEntry, plan: Plan, project_ctx: ProjectContext, *, project: str
) -> dict[str, int | None]:
    """The versions of the commits that took a batch out, by sink; None where it made none."""
    found: dict[str, int | None] = {
        sink.name: None
        for sink in entry.sinks
        if not sink.committed and sink.name not in entry.undone
    }
    for load, sink in _committed(entry, plan):
        location = load.plugin.target(project_ctx).location
        records = DeltaRsEngine(project_ctx.stores).history(location, after=sink.version or -1)
        mine = (entry.n, entry.undo_event)
        writer = Writer(project, plan.pipeline.name, sink.name)  # others have such numbers too
        versions = [
            record.version
            for record in filter(writer.made, records)
            if (record.user_metadata.get("undone_batch"), record.user_metadata.get("undo")) == mine
        ]
        found[sink.name] = min(versions, default=None)
    return found


def settle_undos(
    plan: Plan,
    project_ctx: ProjectContext,
    ledger: Ledger,
    state: LedgerState,
    *,
    quarantine: Quarantine,
    now: datetime,
    is_refresh: bool = False,
) -> LedgerState:
    """Find out how undos ended that were cut off; one that is half done must be finished.

    A full refresh replaces what such a one left, so that it is only written down how far it got.
    """
    for n in state.undoing:
        entry = state.batch(n)
        changed = _committed(entry, plan, gone_too=is_refresh)
        out = [sink for load, sink in changed if _is_out(load, project_ctx, entry, sink)]
        if out and len(out) < len(changed) and not is_refresh:
            raise GuardError(
                f"undoing batch {n} was cut off half way",
                hint=f"finish it: deltaworks table undo {entry.run_id} --apply",
            )
        committed = [s for s in entry.sinks if s.committed and s.name not in entry.undone]
        if len(out) < len(committed):
            quarantine.set_back(entry.quarantine_before, by=_key(entry))
        if committed and not out:
            state = ledger.undo(NOT_UNDONE, entry, state, now)
            continue
        if is_whole := len(out) == len(committed):
            settle_quarantine(entry, quarantine)
        done = entry if is_whole else replace(entry, sinks=tuple(out))
        versions = undo_versions(done, plan, project_ctx, project=ledger.project)
        state = ledger.undo(UNDONE, entry, state, now, detail={"versions": versions})
    return state


def _is_out(load: Load, project_ctx: ProjectContext, entry: BatchEntry, sink: SinkEntry) -> bool:
    """Whether a table's transaction says that the undo happened there."""
    if load.plugin.state(project_ctx, _app_id(sink, entry)).txn_version == entry.undo_event:
        return True
    before = load.plugin.state(project_ctx, f"{sink.app_id}:undo")  # as older versions wrote it
    return before.txn_version == entry.n


def _batches_of(run_id: str, state: LedgerState) -> list[BatchEntry]:
    """The batches of a run that can be undone, newest first."""
    made = [entry for entry in reversed(state.batches) if entry.run_id == run_id]
    found = [e for e in made if e.state == DONE and e.generation == state.generation]
    if found:
        return found
    for entry in made:
        was = "replaced by a full refresh" if entry.state == DONE else entry.state
        raise GuardError(f"batch {entry.n} of run {run_id} is {was}: nothing is left to undo")
    raise GuardError(f"run {run_id} planned no batch", hint="`deltaworks runs list` shows runs")


def _committed(
    entry: BatchEntry, plan: Plan, *, gone_too: bool = False
) -> list[tuple[Load, SinkEntry]]:
    """The sinks that a batch changed; they must be in the pipeline, unless `gone_too`."""
    loads = {load.name: load for load in plan.loads}
    changed = [sink for sink in entry.sinks if sink.committed and sink.name not in entry.undone]
    for sink in changed:
        if sink.name not in loads and not gone_too:
            raise GuardError(
                f'sink "{sink.name}" is no longer in the pipeline, and batch {entry.n} is in it',
                hint="put the sink back into the file, undo the batch, then take it out again",
            )
        if sink.version is None or sink.accepted:
            raise GuardError(
                f'the commit of batch {entry.n} in "{sink.name}" is not known',
                hint="set the table back to a version: deltaworks table restore",
            )
    return [(loads[sink.name], sink) for sink in changed if sink.name in loads]


def _app_id(sink: SinkEntry, entry: BatchEntry) -> str:
    """A writer of its own for each batch: older batches may be undone after newer ones."""
    return f"{sink.app_id}:undo:{entry.n}"


def _write(
    entry: BatchEntry, sink: SinkEntry, *, run_id: str, project: str, pipeline: str
) -> BatchWrite:
    note = {
        "deltaworks": __version__,
        "run_id": run_id,
        "project": project,
        "pipeline": pipeline,
        "step": sink.name,
        "undone_batch": entry.n,
        TAKEN_OUT: entry.token,
        "undo": entry.undo_event,
    }
    txn = Txn(_app_id(sink, entry), entry.undo_event)
    return BatchWrite(n=entry.n, txn=txn, user_metadata=safe_json(note))
