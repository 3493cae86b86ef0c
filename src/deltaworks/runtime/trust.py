"""Trust, then verify: the tables must still hold what the ledger says landed in them."""

from __future__ import annotations

from deltaworks.contracts.context import Site
from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.errors import GuardError
from deltaworks.pipeline.stages import Load, Plan
from deltaworks.runtime.ledger import BatchEntry, LedgerState, SinkEntry

_CHOICES = "put the table back as it was, or load everything anew with --full-refresh"


def verify_sinks(plan: Plan, site: Site, state: LedgerState) -> None:
    """Refuse to go on when a table was deleted, made anew, or set back by hand."""
    for load in plan.loads:
        last = _last_commit(state, load.name)
        if last is not None:
            _verify(load, site, *last)


def _last_commit(state: LedgerState, name: str) -> tuple[BatchEntry, SinkEntry] | None:
    """The newest batch that made a commit in a sink."""
    for entry in reversed(state.done()):
        for sink in entry.sinks:
            if sink.name == name and sink.committed:
                return entry, sink
    return None


def _verify(load: Load, site: Site, entry: BatchEntry, sink: SinkEntry) -> None:
    label = load.plugin.target(site).label
    now = load.plugin.state(site, sink.app_id)
    if not now.exists:
        raise GuardError(f'"{label}" is gone, though batch {entry.n} landed in it', hint=_CHOICES)
    if now.txn_version is None or now.txn_version < entry.n:
        raise GuardError(
            f'"{label}" does not hold batch {entry.n} any more: '
            "it was made anew or replaced by hand",
            hint=_CHOICES,
        )
    if sink.version is not None:
        _refuse_restored(load, site, label, sink.version)


def _refuse_restored(load: Load, site: Site, label: str, version: int) -> None:
    location = load.plugin.target(site).location
    for record in DeltaRsEngine().history(location, limit=50):
        if record.version > version and record.operation == "RESTORE":
            raise GuardError(
                f'"{label}" was set back to an older version by hand (in version {record.version})',
                hint="load everything anew with --full-refresh, or restore the newest version",
            )
