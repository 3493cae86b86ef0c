"""Trust, then verify: the tables must still hold what the ledger says landed in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deltaworks.contracts.context import ProjectContext
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import GuardError
from deltaworks.model.commit import SinkState
from deltaworks.model.table_info import CommitRecord
from deltaworks.model.table_ref import OWN_FOLDER
from deltaworks.pipeline.stages import Load, Plan
from deltaworks.runtime.ledger.evidence import Writer, ahead, ways_out
from deltaworks.runtime.ledger.state import BatchEntry, LedgerState, SinkEntry
from deltaworks.runtime.source_bounds import is_incremental

_MAX_COMMITS = 1_000


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the ledger knows of one sink: the last commit of each kind that it wrote there."""

    label: str
    writer: Writer
    entry: BatchEntry
    sink: SinkEntry
    state: LedgerState

    @property
    def choices(self) -> str:
        """What one can do about a table that is not what the ledger knows."""
        way = ways_out(self.label, is_table=self.sink.version is not None)
        return f"put the table back as it was, {way}"

    @property
    def version(self) -> int | None:
        """The newest version of this very table that is the ledger's own doing."""
        name, table = self.writer.sink, self.sink.identity
        undone = [
            entry.undone.get(name)
            for entry in self.state.batches
            if (there := entry.sink(name)) is not None and there.identity == table
        ]
        ours = [r for r in self.state.restored if r.table_id == table]
        restored = [r.version for r in ours if name in r.sinks]
        sinks = [entry.sink(name) for entry in self.state.committed(name)]
        landed = [sink.version for sink in sinks if sink is not None]
        versions = [*landed, *undone, *restored]
        return max((v for v in versions if v is not None), default=None)


def verify_sinks(
    plan: Plan, project_ctx: ProjectContext, state: LedgerState, *, project: str
) -> None:
    """Refuse to go on when a table was changed by hand, or when its ledger is lost or older."""
    if not state.batches:
        _refuse_unknown_batches(plan, project_ctx, state, project)
    verify_tables(plan, project_ctx, state, project=project)
    _refuse_half_reverted(plan, state)


def verify_tables(
    plan: Plan, project_ctx: ProjectContext, state: LedgerState, *, project: str
) -> None:
    """Refuse to build upon a table that was changed by hand, or is ahead of its ledger."""
    for load in plan.loads:
        if load.plugin.tracks_batches:
            _verify(load, project_ctx, state, Writer(project, plan.pipeline.name, load.name))


def _refuse_unknown_batches(
    plan: Plan, project_ctx: ProjectContext, state: LedgerState, project: str
) -> None:
    """Batches of this pipeline that no ledger knows: read once more, they might land twice."""
    for load in plan.loads:
        once = load.plugin.is_append() or is_incremental(plan)
        if any(load.name in one.sinks for one in state.restored):
            continue  # it was accepted
        if once and _holds_batches_of(load, project_ctx, project, plan.pipeline.name):
            label = load.plugin.target(project_ctx).label
            raise GuardError(
                f'"{label}" holds batches of this pipeline, and the ledger knows of none',
                hint=f"put {project_ctx.warehouse}/{OWN_FOLDER} back from a backup, "
                + ways_out(label, is_table=load.plugin.state(project_ctx, "").version is not None),
            )


def _holds_batches_of(load: Load, project_ctx: ProjectContext, project: str, pipeline: str) -> bool:
    state = load.plugin.state(project_ctx, "")
    if state.version is None:
        return any(f":{project}:{pipeline}:{load.name}:" in writer for writer in state.writers)
    records = DeltaRsEngine(project_ctx.stores).history(
        load.plugin.target(project_ctx).location, limit=_MAX_COMMITS
    )
    writer = Writer(project, pipeline, load.name)
    return any("project" in r.user_metadata and writer.made(r) for r in records)


def verify_again(
    plan: Plan,
    project_ctx: ProjectContext,
    state: LedgerState,
    found: Sequence[SinkEntry],
    *,
    project: str,
) -> None:
    """Verify tables that a batch is planned for, unless they are as the ledger left them."""
    sinks = {sink.name: sink for sink in found}
    for load in (load for load in plan.loads if load.plugin.tracks_batches and state.batches):
        writer = Writer(project, plan.pipeline.name, load.name)
        known, sink = _known(load, project_ctx, state, writer), sinks[load.name]
        is_same = known is not None and (known.sink.identity, known.version) == (
            sink.identity,
            sink.version_found,
        )
        if not is_same:
            _verify(load, project_ctx, state, writer)


def _known(
    load: Load, project_ctx: ProjectContext, state: LedgerState, writer: Writer
) -> Known | None:
    """What the ledger knows of a sink; None when no batch has made a commit there."""
    entry = next(reversed(state.committed(load.name)), None)
    sink = None if entry is None else entry.sink(load.name)
    if entry is None or sink is None:
        return None
    label = load.plugin.target(project_ctx).label
    return Known(label=label, writer=writer, entry=entry, sink=sink, state=state)


def _verify(load: Load, project_ctx: ProjectContext, state: LedgerState, writer: Writer) -> None:
    known = _known(load, project_ctx, state, writer)
    if known is None:
        _verify_first(load, project_ctx, state, writer)
        return
    now = load.plugin.state(project_ctx, known.sink.app_id)
    refuse_other_table(known, now)
    _refuse_unknown_writers(known, now)
    if known.version is not None and now.version is not None and now.version != known.version:
        location = load.plugin.target(project_ctx).location
        records = DeltaRsEngine(project_ctx.stores).history(location, after=known.version)
        refuse_unknown_commits(known, records)


def _verify_first(
    load: Load, project_ctx: ProjectContext, state: LedgerState, writer: Writer
) -> None:
    """A table in which the ledger knows of no commit must not hold batches of this pipeline."""
    now = load.plugin.state(project_ctx, "")
    if not (state.batches or state.restored) or now.version is None:
        return
    ref = load.plugin.target(project_ctx)
    accepted = [r for r in state.restored if "steps" in r.accept and load.name in r.sinks]
    engine = DeltaRsEngine(project_ctx.stores)
    if not accepted:
        records = engine.history(ref.location, limit=_MAX_COMMITS)
        _refuse_unknown_notes(ref.label, writer, state, records)
        return
    last = accepted[-1]
    after = -1 if last.version is None or last.table_id != now.identity else last.version
    records = engine.history(ref.location, limit=_MAX_COMMITS, after=after)
    for record in records:
        is_set_back = record.operation == "RESTORE" and (record.restored_to or 0) < after
        if is_set_back or (writer.made(record) and "batch" in record.user_metadata):
            raise GuardError(
                f'"{ref.label}" was set back or replaced by hand after it had been accepted',
                hint=f"put the table back as it was, {ways_out(ref.label)}",
            )


def refuse_other_table(known: Known, now: SinkState) -> None:
    """Refuse a table that is gone, another one, or not at the ledger's last batch."""
    entry, label = known.entry, known.label
    if not now.exists:
        raise GuardError(
            f'"{label}" is gone, though batch {entry.n} landed in it',
            hint=known.choices,
        )
    is_other = bool(known.sink.identity) and now.identity != known.sink.identity
    last = 0 if known.sink.accepted else entry.n
    if is_other or (now.txn_version or 0) < last:
        raise GuardError(
            f'"{label}" does not hold batch {entry.n} any more: '
            "it was recreated or replaced by hand",
            hint=known.choices,
        )
    planned = {batch.n for batch in known.state.all_unfinished()}
    waiting = {batch.n for batch, sink in known.state.parked() if sink.name == known.writer.sink}
    taken = [r.accept.get("txns", {}).get(known.writer.sink, 0) for r in known.state.restored]
    newest = max((entry.n, *taken))
    numbers = planned | waiting
    if now.txn_version is not None and now.txn_version > newest and now.txn_version not in numbers:
        raise ahead(label, now.txn_version, is_table=now.version is not None)
    if known.version is not None and now.version is not None and now.version < known.version:
        raise GuardError(
            f'"{label}" is at version {now.version}, though the ledger knows its version '
            f"{known.version}: an older copy of it was put back",
            hint=known.choices,
        )


def _refuse_unknown_writers(known: Known, now: SinkState) -> None:
    """Refuse a sink without versions that holds a full refresh which the ledger does not know."""
    ours = known.sink.app_id.rpartition(":")[0]
    generations = {str(entry.generation) for entry in known.state.batches}
    for writer, _, generation in (name.rpartition(":") for name in now.writers):
        if writer == ours and generation not in generations:
            raise GuardError(
                f'"{known.label}" is ahead of the ledger: a full refresh landed there '
                "that is not in the ledger",
                hint="the ledger is older: put the newer one back, "
                + ways_out(known.label, is_table=now.version is not None),
            )


def refuse_unknown_commits(known: Known, records: Sequence[CommitRecord]) -> None:
    """Refuse restores that nobody told the ledger of, and batches of ours that it does not know."""
    restores = {r.restore_id for r in (*known.state.restored, *known.state.restoring)}
    for record in records:
        is_restore = record.operation == "RESTORE"
        if is_restore and record.user_metadata.get("restore") not in restores:
            _refuse_restore(known, record)
    _refuse_unknown_notes(known.label, known.writer, known.state, records)


def _refuse_unknown_notes(
    label: str, writer: Writer, state: LedgerState, records: Iterable[CommitRecord]
) -> None:
    tokens = {entry.token for entry in state.batches if entry.token}
    numbers = {entry.n for entry in state.batches}
    for note in (record.user_metadata for record in records if writer.made(record)):
        is_known = note["token"] in tokens if "token" in note else note.get("batch") in numbers
        if "batch" in note and not is_known:
            raise ahead(label, int(note["batch"]))
        if "undone_batch" in note and note["undone_batch"] not in _undone(state):
            raise ahead(label, int(note["undone_batch"]))


def _undone(state: LedgerState) -> set[int]:
    """The batches that the ledger knows were undone, or were about to be."""
    return {entry.n for entry in state.batches if entry.undo_event}


def _refuse_restore(known: Known, record: CommitRecord) -> None:
    """A restore of ours that took back only what others had written concerns no batch."""
    version, note = known.version, record.user_metadata
    if "restore" in note and version is not None and int(note.get("to", -1)) >= version:
        return
    raise _set_back(known.label, record)


def _set_back(label: str, record: CommitRecord) -> GuardError:
    return GuardError(
        f'"{label}" was set back to an older version by hand (in version {record.version})',
        hint=f"choose a version: `deltaworks table restore {label} --version N`, {ways_out(label)}",
    )


def _refuse_half_reverted(plan: Plan, state: LedgerState) -> None:
    """Batches that one sink lost are loaded again, which another that appends would get twice."""
    for entry in state.half_out():
        raise GuardError(
            f'batch {entry.n} was taken out of some sinks and still is in "{min(entry.kept)}"',
            hint=f'restore "{min(entry.kept)}" to before that batch as well, '
            "or reload everything with --full-refresh",
        )
    precise = {entry.n for entry in state.holes()}  # these go only where they are missing
    for entry in state.lost():
        for load in plan.loads:
            appends = load.name in _still_in(entry, state) and load.plugin.is_append()
            if appends and entry.n not in precise:
                raise GuardError(
                    f'batch {entry.n} was taken out of "{min(entry.reverted)}" by a restore, '
                    f'and still is in "{load.name}", which appends',
                    hint=f'restore "{load.name}" to before that batch as well, '
                    "or reload everything with --full-refresh",
                )


def _still_in(entry: BatchEntry, state: LedgerState) -> frozenset[str]:
    """The sinks that have a batch, by itself or by a backfill of their own."""
    fills = (one for one in state.done() if one.backfill and entry.n in one.covers)
    return entry.kept.union(*(fill.kept for fill in fills))
