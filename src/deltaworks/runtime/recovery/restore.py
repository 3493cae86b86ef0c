"""Setting a table back, and what that means for the batches that had landed in it.

The intent stands in the ledger before the table is touched, and the outcome after it. A restore
that was cut off between the two is settled by the next one to come: the table tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.commit_protocol import committer_of, require_committer
from deltaworks.engines.deltars.log.commits import version_at
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.deltars.write import restore as deltars
from deltaworks.errors import ConfigError, GuardError, TableNotFound
from deltaworks.model.table_info import CommitRecord, TableInfo
from deltaworks.model.table_ref import TableRef
from deltaworks.runtime.environment import RunEnv, new_run
from deltaworks.runtime.ledger.evidence import Writer, ahead, commit_of, unknown_landing
from deltaworks.runtime.ledger.parking import forget_parked
from deltaworks.runtime.ledger.state import (
    DONE,
    NOT_RESTORED,
    RESTORED,
    RESTORING,
    REVERTED,
    UNDONE,
    BatchEntry,
    LedgerState,
    Restore,
    SinkEntry,
    after_restore,
)
from deltaworks.runtime.ledger.table import Ledger
from deltaworks.runtime.quarantine.table import Quarantine
from deltaworks.storage.locks.file_lock import lock_of, locked, pipeline_lock


@dataclass(frozen=True, kw_only=True)
class Affected:
    """A pipeline that loses batches in one of its sinks."""

    ledger: Ledger
    state: LedgerState
    restore: Restore


@dataclass(frozen=True, kw_only=True)
class RestoreResult:
    """What a restore did, or would do."""

    table: str
    version_from: int
    version_to: int
    applied: bool
    version: int | None
    pipelines: tuple[tuple[str, tuple[int, ...]], ...]
    """The pipelines whose next run loads these batches again."""

    def to_json(self) -> dict[str, Any]:
        """A plain document for programs."""
        return {
            "table": self.table,
            "version_from": self.version_from,
            "version_to": self.version_to,
            "applied": self.applied,
            "version": self.version,
            "pipelines": [
                {"pipeline": name, "batches": list(batches)} for name, batches in self.pipelines
            ],
        }


def wanted_version(
    ref: TableRef, *, version: int | None, timestamp: datetime | None, stores: Stores = NO_STORES
) -> int:
    """The version to go to, by its number or by a timestamp."""
    if timestamp is not None:
        _existing(ref, stores)
        return version_at(ref.location, timestamp, stores)
    if version is None:
        raise ConfigError("say which version to restore", hint="a version, or a timestamp")
    return version


def restore_table(ref: TableRef, version: int, place: RunEnv, *, apply: bool) -> RestoreResult:
    """Set a table back to a version; without `apply` only say what that would do."""
    table = _standing(ref, version, place.config.stores)
    restore_id = new_run("restore", place).run_id
    warehouse, wait = place.config.warehouse, place.config.locks.wait_seconds
    found = _affected(table, version, place, restore_id, settle=False)
    if not apply:
        return _result(ref, table, version, found, made=None)
    names = {one.ledger.pipeline for one in found}
    paths = [lock_of(ref.location), *(pipeline_lock(warehouse, name) for name in names)]
    stores = place.config.stores
    with locked(paths, wait_seconds=wait, notify=place.notify, stores=stores) as locks:
        table = _standing(ref, version, stores)
        found = _affected(table, version, place, restore_id, settle=True)
        if others := {one.ledger.pipeline for one in found} - names:
            raise GuardError(f'pipeline "{min(others)}" wrote it meanwhile', hint="try again")
        _require_returns(found, place)
        locks.require()  # after the look that the commit builds upon
        made = _carry_out(table, version, found, place, restore_id)
        return _result(ref, table, version, found, made=made)


def settle_restores(
    ledger: Ledger, state: LedgerState, quarantine: Quarantine, now: datetime
) -> LedgerState:
    """Find out how restores ended that were cut off, and write it down."""
    for restore in state.restoring:
        is_accepted = "steps" in restore.accept  # then nothing is to be done to the table
        made = restore.version if is_accepted else _commit_of(restore, quarantine.stores)
        kind = NOT_RESTORED if made is None else RESTORED
        if kind == RESTORED:
            settle_quarantine(state, restore, quarantine)
        else:
            quarantine.set_back(restore.quarantine_version, by=restore.restore_id)
        state = ledger.restore(kind, replace(restore, version=made), state, now)
    return state


def _standing(ref: TableRef, version: int, stores: Stores) -> TableInfo:
    table = _existing(ref, stores)
    if version == table.version:
        raise ConfigError(f'"{ref.label}" is at version {version} already')
    DeltaRsEngine(stores).info(ref.location, version=version)  # raises with the range there is
    return table


def _existing(ref: TableRef, stores: Stores) -> TableInfo:
    table = DeltaRsEngine(stores).info(ref.location)
    if table is None:
        raise TableNotFound(f'"{ref.label}" is not a Delta table', hint=f"looked in {ref.location}")
    return table


def _affected(
    table: TableInfo, version: int, place: RunEnv, restore_id: str, *, settle: bool
) -> list[Affected]:
    """Every pipeline of this warehouse that has landed in the table since a version.

    Under the locks, a restore that was cut off before is settled first.
    """
    from deltaworks.runtime.ledger.table_contents import refuse_before_acceptance

    found = []
    engine = DeltaRsEngine(place.config.stores)
    for ledger in Ledger.everyone(place.config.warehouse, place.config.stores):
        state = ledger.state()
        if settle and state.restoring:
            quarantine = place.quarantine(ledger.pipeline, project=ledger.project)
            state = settle_restores(ledger, state, quarantine, place.clock.now())
        refuse_before_acceptance(table.table_id, version, state)
        state = _with_versions(table, ledger, state, engine)
        unsettled = unknown_landing(
            state, table, lambda app_id: engine.transaction(table.location, app_id)
        )
        restore = affected(table, version, state, restore_id)
        if restore is not None:
            unsettled = unsettled or state.unfinished
            quarantine = place.quarantine(ledger.pipeline, project=ledger.project)
            restore = replace(restore, quarantine_version=quarantine.version())
            found.append(Affected(ledger=ledger, state=state, restore=restore))
            _refuse_half_undone(state)
            _refuse_unknown_rows(table, version, ledger, state, engine)
        if unsettled is not None:
            raise GuardError(
                f'batch {unsettled.n} of pipeline "{ledger.pipeline}" is unfinished',
                hint=f"finish it first: deltaworks runs resume {unsettled.run_id}",
            )
    return found


def _refuse_unknown_rows(
    table: TableInfo, version: int, ledger: Ledger, state: LedgerState, engine: DeltaRsEngine
) -> None:
    """A version with rows of a batch that was never finished has no place in the ledger.

    What the ledger lost cannot be taken back either: nobody knows what it did to the quarantine.
    """
    landed = _landed(state, table)
    finished = [entry for entry in state.batches if not entry.superseded]
    refreshed = [int(sink.version or 0) for entry, sink in landed if entry.replaces]
    accepted = [r for r in state.restored if "steps" in r.accept and r.table_id == table.table_id]
    since = max((r.version for r in accepted if r.version is not None), default=-1)
    for record in engine.history(table.location, after=since):
        note, at = record.user_metadata, record.version
        if at <= version and any(at < other <= version for other in refreshed):
            continue
        if _is_mine(note, ledger):
            _refuse_lost(table, state, record)
        if at > version:
            continue
        _refuse_set_back(table, version, state, record)
        if _is_mine(note, ledger) and "batch" in note and not _knows(finished, note):
            raise GuardError(
                f"version {version} holds rows of batch {note['batch']}, which was never finished",
                hint=f"choose a version before {at}, or one after the full refresh",
            )


def _refuse_lost(table: TableInfo, state: LedgerState, record: CommitRecord) -> None:
    """Refuse a commit of a pipeline that its ledger knows nothing of."""
    note = record.user_metadata
    if "batch" in note and not _knows(state.batches, note):
        raise ahead(table.location, int(note["batch"]))
    undone = {entry.n for entry in state.batches if entry.undo_event}
    if "undone_batch" in note and note["undone_batch"] not in undone:
        raise ahead(table.location, int(note["undone_batch"]))


def _refuse_set_back(
    table: TableInfo, version: int, state: LedgerState, record: CommitRecord
) -> None:
    """Refuse a version that somebody made by setting the table back without the ledger's knowing.

    It does no harm where only commits of others went, or where a restore of ours went further.
    """
    at, known = record.version, {restore.restore_id for restore in state.restored}
    note = record.user_metadata
    if record.operation != "RESTORE" or note.get("restore") in known:
        return
    landed = [sink.version for _, sink in _landed(state, table) if (sink.version or 0) < at]
    last = max((made for made in landed if made is not None), default=None)
    is_ours = "restore" in note and int(note.get("to", -1)) >= (-1 if last is None else last)
    further = [r for r in state.restored if r.table_id == table.table_id and r.version_to < at]
    is_past = any(at < r.version <= version for r in further if r.version is not None)
    if last is not None and not is_ours and not is_past:
        raise GuardError(
            f"version {version} comes after version {at}, in which the table was set back by hand",
            hint=f"choose a version before {at}, or reload everything with --full-refresh",
        )


def _is_mine(note: Mapping[str, Any], ledger: Ledger) -> bool:
    return (note.get("project"), note.get("pipeline")) == (ledger.project, ledger.pipeline)


def _knows(entries: Iterable[BatchEntry], note: Mapping[str, Any]) -> bool:
    """Whether a commit is of one of some batches; notes of older versions have a number only."""
    if "token" in note:
        return any(entry.token == note["token"] for entry in entries)
    return any(entry.n == note["batch"] for entry in entries)


def _refuse_half_undone(state: LedgerState) -> None:
    for n in state.undoing:
        raise GuardError(
            f"undoing batch {n} was cut off",
            hint=f"finish it: deltaworks table undo {state.batch(n).run_id} --apply",
        )


def _with_versions(
    table: TableInfo, ledger: Ledger, state: LedgerState, engine: DeltaRsEngine
) -> LedgerState:
    """The state with the versions of all commits in a table; older ledgers left some out."""
    missing = {entry.n for entry, sink in _landed(state, table) if sink.version is None}
    undone = [entry for entry, sink in _landed(state, table) if _lacks_undo(entry, sink)]
    if not missing and not undone:
        return state
    records = engine.history(table.location)
    state = _with_undos(state, undone, records, ledger)

    def found(entry: BatchEntry, sink: SinkEntry) -> SinkEntry:
        if entry.n not in missing or sink.identity != table.table_id or not sink.committed:
            return sink
        record = commit_of(records, entry, Writer(ledger.project, ledger.pipeline, sink.name))
        if record is None and records[-1].version > 0:
            return replace(sink, version=records[-1].version - 1)  # older than the log goes back
        if record is None:
            raise GuardError(
                f'the commit of batch {entry.n} of pipeline "{ledger.pipeline}" is not known, '
                "so that nobody can say whether its rows would go",
                hint="reload everything with --full-refresh instead",
            )
        return replace(sink, version=record.version)

    batches = tuple(
        replace(entry, sinks=tuple(found(entry, sink) for sink in entry.sinks))
        for entry in state.batches
    )
    return replace(state, batches=batches)


def _lacks_undo(entry: BatchEntry, sink: SinkEntry) -> bool:
    return sink.name in entry.undone and entry.undone[sink.name] is None


def _with_undos(
    state: LedgerState,
    undone: Sequence[BatchEntry],
    records: Sequence[CommitRecord],
    ledger: Ledger,
) -> LedgerState:
    """The state with the versions of undos, which ledgers of older versions left out."""
    found = [
        (name, record.version, entry.n)
        for entry in undone
        for name in (sink.name for sink in entry.sinks if _lacks_undo(entry, sink))
        for record in records
        if record.user_metadata.get("undone_batch") == entry.n
        if Writer(ledger.project, ledger.pipeline, name).made(record)
    ]

    def with_versions(entry: BatchEntry) -> BatchEntry:
        versions = {name: at for name, at, n in found if n == entry.n}
        return replace(entry, undone={**entry.undone, **versions})

    batches = tuple(map(with_versions, state.batches))
    return replace(state, batches=batches, undos=(*state.undos, *found))


def _landed(state: LedgerState, table: TableInfo) -> list[tuple[BatchEntry, SinkEntry]]:
    """The batches that made a commit in a table and were not taken out of it by a restore."""
    return [
        (entry, sink)
        for entry in state.batches
        for sink in entry.sinks
        if entry.state in (DONE, UNDONE, REVERTED) and sink.name not in entry.reverted
        if sink.committed and sink.identity == table.table_id
    ]


def affected(table: TableInfo, version: int, state: LedgerState, restore_id: str) -> Restore | None:
    """What a restore means for one pipeline; None when it never landed in the table."""
    from deltaworks.runtime.ledger.timeline import sinks_of, standing

    sinks = sinks_of(state, table.table_id)
    if not sinks:
        return None
    now, then = (standing(state, sinks, at) for at in (table.version, version))
    generations = [state.batch(n).generation for n in then.present | then.undone]
    generation = max(generations, default=state.generation)
    generation = generation if then.generation is None else then.generation
    # what a full refresh had replaced, in that generation or a later one, is not there either
    replaced = {entry.n for entry in state.batches if is_in(entry, generation, sinks)}
    gone = (now.present | replaced) - then.present
    left_over = {n for n in then.present if state.batch(n).left_over}
    return Restore(
        restore_id=restore_id,
        sink=min(sinks),
        more_sinks=tuple(sorted(sinks - {min(sinks)})),
        location=table.location,
        table_id=table.table_id,
        version_from=table.version,
        version_to=version,
        batches=tuple(sorted(gone - then.undone)),
        revived=tuple(sorted((then.present - now.present) | left_over)),
        undone=tuple(sorted(gone & then.undone)),
        generation=generation,
    )


def is_in(entry: BatchEntry, generation: int, sinks: frozenset[str]) -> bool:
    """Whether the ledger takes a batch of a generation, or a later one, for one that sinks hold."""
    here = [sink.name for sink in entry.sinks if sink.name in sinks]
    out = {*entry.reverted, *entry.undone}
    is_settled = entry.state in (DONE, UNDONE, REVERTED) and entry.generation >= generation
    return is_settled and any(name not in out for name in here)


def _require_returns(found: list[Affected], place: RunEnv) -> None:
    """What batches had taken out of the quarantine must be there to return."""
    for one in found:
        quarantine = place.quarantine(one.ledger.pipeline, project=one.ledger.project)
        out, _ = moved(one.state, one.restore)
        quarantine.require_returns(out, [entry.n for entry in out])


def _carry_out(
    table: TableInfo, version: int, found: list[Affected], place: RunEnv, restore_id: str
) -> int:
    now = place.clock.now()
    begun = [
        replace(one, state=one.ledger.restore(RESTORING, one.restore, one.state, now))
        for one in found
    ]
    note = {"restore": restore_id, "to": version}
    made = _restore(table, version, place, note)
    for one in begun:
        quarantine = place.quarantine(one.ledger.pipeline, project=one.ledger.project)
        settle_quarantine(one.state, one.restore, quarantine)
        one.ledger.restore(RESTORED, replace(one.restore, version=made), one.state, now)
    return made


def _restore(table: TableInfo, version: int, place: RunEnv, note: dict[str, Any]) -> int:
    stores = place.config.stores
    committer = committer_of(table.location, stores)
    if committer != "spark" and deltars.can_restore(table):
        base = table.version
        return deltars.restore(table.location, version, base=base, note=note, stores=stores)
    require_committer(table.location, "spark", stores)
    from deltaworks.engines.spark.delta.restore import restore

    spark = place.spark.at(table.location, stores)
    return restore(spark, table.location, version, note=note)


def settle_quarantine(state: LedgerState, restore: Restore, quarantine: Quarantine) -> None:
    """What batches had quarantined and settled follows them, out of the tables and back.

    It stays while any sink has the batch.
    """
    from deltaworks.runtime.ledger.table_contents import not_held
    from deltaworks.runtime.ledger.timeline import generations_of

    out, back = moved(state, restore)
    after = after_restore(state, RESTORED, restore, state.events + 1)
    there = generations_of(after)
    lost = [  # they are read again, or replaced
        other
        for other in after.batches
        if other.generation not in there or (other.state == REVERTED and not other.kept)
    ]
    for entry in out:
        # who went when this one came has its rows with it, and brings them along
        apart = [other for other in back if other.out_event <= entry.in_event]
        numbers = [*(other.n for other in (*out, *apart, *lost)), *not_held(state, restore)]
        quarantine.take_back(entry, gone=numbers, key=restore.restore_id)
        for parked in (sink.parked for sink in state.batch(entry.n).sinks if sink.parked):
            forget_parked(parked, quarantine.stores)
    for entry in back:
        without = _apart(entry, state, restore)
        quarantine.bring_back(entry, key=restore.restore_id, without=without)
    for other in _takers(after) if out or back else ():
        quarantine.leave(other, by=restore.restore_id)


def _takers(after: LedgerState) -> list[BatchEntry]:
    """Batches in the tables that had settled rows, which may have come back with others.

    A backfill repeats what another batch has settled.
    """
    return [
        other
        for other in after.batches
        if other.state in (DONE, REVERTED) and other.has_slice(after.generation)
        if other.supersedes or (other.replay is not None and not other.backfill)
    ]


def _apart(entry: BatchEntry, state: LedgerState, restore: Restore) -> list[BatchEntry]:
    """The batches that went out together with one that comes back, and do not come with it."""
    after = after_restore(state, RESTORED, restore, state.events + 1)
    return [
        other
        for other in state.batches
        if other.out_event == entry.out_event and other.n != entry.n
        if after.batch(other.n).is_out(after.generation)
    ]


def moved(state: LedgerState, restore: Restore) -> tuple[list[BatchEntry], list[BatchEntry]]:
    """The batches that no sink has after a restore, and those that one has again."""
    after = after_restore(state, RESTORED, restore, state.events + 1)
    settled = [entry for entry in state.batches if entry.state in (DONE, UNDONE, REVERTED)]
    was = {entry.n for entry in settled if entry.is_out(state.generation)}
    now = {entry.n for entry in settled if after.batch(entry.n).is_out(after.generation)}
    out = [after.batch(entry.n) for entry in settled if entry.n in now - was]
    return out, [entry for entry in settled if entry.n in was - now]


def _commit_of(restore: Restore, stores: Stores) -> int | None:
    """The commit that a restore made, if it got so far."""
    log = DeltaRsEngine(stores)
    found = log.identity(restore.location)
    if found is None:
        return None
    for record in log.history(restore.location, limit=found[1] - restore.version_from):
        if record.user_metadata.get("restore") == restore.restore_id:
            return record.version
    return None


def _result(
    ref: TableRef, table: TableInfo, version: int, found: list[Affected], *, made: int | None
) -> RestoreResult:
    return RestoreResult(
        table=ref.label,
        version_from=table.version,
        version_to=version,
        applied=made is not None,
        version=made,
        pipelines=tuple(
            (one.ledger.pipeline, one.restore.batches) for one in found if one.restore.batches
        ),
    )
