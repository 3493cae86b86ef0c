"""Taking back one run: its rows go, and what it had changed is as before.

Nothing is rewound: what the run had read counts as read. As with a restore the intent stands in
the ledger first, and one that was cut off is settled by the next to come.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deltaworks.contracts.context import BatchWrite, RunContext, Site
from deltaworks.engines.lock import lock_of, locked, pipeline_lock
from deltaworks.errors import GuardError
from deltaworks.model.commit import Txn, UndoInfo
from deltaworks.pipeline.stages import Load, Plan
from deltaworks.redact import safe_json
from deltaworks.runtime.boundary import step_boundary
from deltaworks.runtime.ledger import (
    DONE,
    NOT_UNDONE,
    UNDOING,
    UNDONE,
    BatchEntry,
    Ledger,
    LedgerState,
    SinkEntry,
)
from deltaworks.runtime.workplace import Workplace, new_run, start_engine
from deltaworks.version import __version__


@dataclass(frozen=True, kw_only=True)
class UndoResult:
    """What undoing a run did, or would do."""

    run_id: str
    batch: int
    applied: bool
    tables: tuple[tuple[str, UndoInfo], ...]

    def to_json(self) -> dict[str, Any]:
        """A plain document for programs."""
        return {
            "run_id": self.run_id,
            "batch": self.batch,
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


def undo_run(run_id: str, plan: Plan, place: Workplace, *, apply: bool) -> UndoResult:
    """Take a run's batch out of all its sinks, or out of none; without `apply` only look."""
    from deltaworks.engines.spark.connection import held

    config, name = place.config, plan.pipeline.name
    ledger = place.ledger(name)
    paths = [pipeline_lock(config.warehouse, name)]
    paths.extend(lock_of(p) for load in plan.loads if (p := load.plugin.lock_path(place.site)))
    wait = config.locks.wait_seconds
    with locked(paths, wait_seconds=wait, notify=place.notify, stores=config.stores):
        state = ledger.state()
        entry = _batch_of(run_id, state)
        ctx = start_engine(place, new_run(name, place), connectors=plan.connectors, keep_log=True)
        with held(ctx.spark):
            tables = _take_out(entry, plan, ctx, apply=False)  # all allow it, or none is touched
            if apply:
                state = ledger.undo(UNDOING, entry, state, place.clock.now())
                tables = _take_out(entry, plan, ctx, apply=True)
                place.quarantine(name).clear(entry)
                ledger.undo(UNDONE, entry, state, place.clock.now())
    return UndoResult(run_id=run_id, batch=entry.n, applied=apply, tables=tuple(tables))


def _take_out(
    entry: BatchEntry, plan: Plan, ctx: RunContext, *, apply: bool
) -> list[tuple[str, UndoInfo]]:
    found = []
    for load, sink in _committed(entry, plan):
        batch = _write(entry, sink, run_id=ctx.run_id, pipeline=plan.pipeline.name)
        with step_boundary(load, plan.pipeline.origin.file):
            info = load.plugin.undo(ctx, sink.version or 0, batch, apply=apply)
        found.append((load.plugin.target(ctx.site).label, info))
    return found


def settle_undos(
    plan: Plan, site: Site, ledger: Ledger, state: LedgerState, now: datetime
) -> LedgerState:
    """Find out how undos ended that were cut off; one that is half done must be finished."""
    for n in state.undoing:
        entry = next(entry for entry in state.batches if entry.n == n)
        sinks = _committed(entry, plan)
        out = [
            load.plugin.state(site, _app_id(sink)).txn_version == entry.n for load, sink in sinks
        ]
        if any(out) and not all(out):
            raise GuardError(
                f"undoing batch {n} was cut off half way",
                hint=f"finish it: deltaworks table undo {entry.run_id} --apply",
            )
        state = ledger.undo(UNDONE if any(out) else NOT_UNDONE, entry, state, now)
    return state


def _batch_of(run_id: str, state: LedgerState) -> BatchEntry:
    for entry in state.batches:
        if entry.run_id == run_id:
            if entry.state == DONE and entry.generation == state.generation:
                return entry
            raise GuardError(f"batch {entry.n} of run {run_id} is {entry.state}, not done")
    raise GuardError(f"run {run_id} planned no batch", hint="`deltaworks runs list` shows runs")


def _committed(entry: BatchEntry, plan: Plan) -> list[tuple[Load, SinkEntry]]:
    """The sinks that a batch changed."""
    loads = {load.name: load for load in plan.loads}
    changed = [sink for sink in entry.sinks if sink.committed]
    for sink in changed:
        if sink.name not in loads:
            raise GuardError(f'sink "{sink.name}" is no longer in the pipeline')
        if sink.version is None:
            raise GuardError(f'the commit of batch {entry.n} in "{sink.name}" is not known')
    return [(loads[sink.name], sink) for sink in changed]


def _app_id(sink: SinkEntry) -> str:
    return f"{sink.app_id}:undo"


def _write(entry: BatchEntry, sink: SinkEntry, *, run_id: str, pipeline: str) -> BatchWrite:
    note = {
        "deltaworks": __version__,
        "run_id": run_id,
        "pipeline": pipeline,
        "step": sink.name,
        "undone_batch": entry.n,
    }
    return BatchWrite(n=entry.n, txn=Txn(_app_id(sink), entry.n), user_metadata=safe_json(note))
