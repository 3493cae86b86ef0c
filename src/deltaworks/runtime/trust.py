"""Trust, then verify: the tables must still hold what the ledger says landed in them."""

from __future__ import annotations

from deltaworks.contracts.context import Site
from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.errors import GuardError
from deltaworks.model.table_ref import OWN_FOLDER
from deltaworks.pipeline.stages import Load, Plan
from deltaworks.runtime.bounds import is_incremental
from deltaworks.runtime.ledger import REVERTED, BatchEntry, LedgerState, SinkEntry

_MOST_COMMITS = 1_000
_CHOICES = "put the table back as it was, or load everything anew with --full-refresh"


def verify_sinks(plan: Plan, site: Site, state: LedgerState, *, project: str) -> None:
    """Refuse to go on when a table was changed by hand, or when the books of it are lost."""
    if not state.batches:
        _refuse_unknown_batches(plan, site, project)
    for load in plan.loads:
        last = _last_commit(state, load.name)
        if last is not None and load.plugin.remembers:
            ours = frozenset(r.version for r in state.restored if r.sink == load.name)
            _verify(load, site, *last, ours=ours)
    _refuse_half_reverted(plan, state)


def _refuse_unknown_batches(plan: Plan, site: Site, project: str) -> None:
    """Batches of this pipeline that no ledger knows: read once more, they might land twice."""
    for load in plan.loads:
        once = load.plugin.adds_on_rerun() or is_incremental(plan)
        if once and _holds_batches_of(load, site, project, plan.pipeline.name):
            raise GuardError(
                f'"{load.plugin.target(site).label}" holds batches of this pipeline, '
                "and the ledger knows of none",
                hint=f"put {site.warehouse}/{OWN_FOLDER} back from a backup, "
                "or load everything anew with --full-refresh",
            )


def _holds_batches_of(load: Load, site: Site, project: str, pipeline: str) -> bool:
    state = load.plugin.state(site, "")
    if state.version is None:
        return any(f":{project}:{pipeline}:{load.name}:" in writer for writer in state.writers)
    records = DeltaRsEngine(site.stores).history(
        load.plugin.target(site).location, limit=_MOST_COMMITS
    )
    mine = (project, pipeline, load.name)
    notes = (record.user_metadata for record in records)
    return any(mine == (n.get("project"), n.get("pipeline"), n.get("step")) for n in notes)


def _refuse_half_reverted(plan: Plan, state: LedgerState) -> None:
    """Batches that one sink lost are loaded again, which another that appends would get twice."""
    last = max((entry.n for entry in state.done()), default=0)
    for entry in state.batches:
        if entry.state != REVERTED or entry.n < last:
            continue
        kept = {sink.name for sink in entry.sinks} - entry.reverted
        for load in plan.loads:
            if load.name in kept and load.plugin.adds_on_rerun():
                raise GuardError(
                    f'batch {entry.n} was taken out of "{min(entry.reverted)}" by a restore, '
                    f'and still is in "{load.name}", which appends',
                    hint=f'restore "{load.name}" to before that batch as well, '
                    "or load everything anew with --full-refresh",
                )


def _last_commit(state: LedgerState, name: str) -> tuple[BatchEntry, SinkEntry] | None:
    """The newest batch that made a commit in a sink."""
    for entry in reversed(state.done()):
        for sink in entry.sinks:
            if sink.name == name and sink.committed:
                return entry, sink
    return None


def _verify(
    load: Load, site: Site, entry: BatchEntry, sink: SinkEntry, *, ours: frozenset[int | None]
) -> None:
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
    if sink.version is not None and now.version != sink.version:
        _refuse_restored(load, site, label, sink.version, ours)


def _refuse_restored(
    load: Load, site: Site, label: str, version: int, ours: frozenset[int | None]
) -> None:
    location = load.plugin.target(site).location
    for record in DeltaRsEngine(site.stores).history(location, limit=50, after=version):
        if record.operation == "RESTORE" and record.version not in ours:
            raise GuardError(
                f'"{label}" was set back to an older version by hand (in version {record.version})',
                hint="put it back and use `deltaworks table restore`, "
                "or load everything anew with --full-refresh",
            )
