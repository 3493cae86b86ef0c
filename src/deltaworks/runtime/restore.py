"""Setting a table back, and what that means for the batches that had landed in it.

The intent stands in the ledger before the table is touched, and the outcome after it. A restore
that was cut off between the two is settled by the next one to come: the table tells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.engines.commit_protocol import committer_of, require_committer
from deltaworks.engines.deltars import restore as deltars
from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.engines.deltars.log import version_at
from deltaworks.engines.lock import lock_of, locked, pipeline_lock
from deltaworks.errors import ConfigError, GuardError, TableNotFound
from deltaworks.model.table_info import TableInfo
from deltaworks.model.table_ref import TableRef
from deltaworks.runtime.ledger import (
    DONE,
    NOT_RESTORED,
    RESTORED,
    RESTORING,
    REVERTED,
    Ledger,
    LedgerState,
    Restore,
)
from deltaworks.runtime.quarantine import Quarantine
from deltaworks.runtime.workplace import Workplace, new_run


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
    """The version to go to, by its number or by a moment."""
    if timestamp is not None:
        _existing(ref, stores)
        return version_at(ref.location, timestamp, stores)
    if version is None:
        raise ConfigError("say which version to restore", hint="a version, or a timestamp")
    return version


def restore_table(ref: TableRef, version: int, place: Workplace, *, apply: bool) -> RestoreResult:
    """Set a table back to a version; without `apply` only say what that would do."""
    table = _standing(ref, version, place.config.stores)
    restore_id = new_run("restore", place).run_id
    warehouse, wait = place.config.warehouse, place.config.locks.wait_seconds
    found = _affected(table, version, place, restore_id)
    if not apply:
        return _result(ref, table, version, found, made=None)
    names = {one.ledger.pipeline for one in found}
    paths = [lock_of(ref.location), *(pipeline_lock(warehouse, name) for name in names)]
    stores = place.config.stores
    with locked(paths, wait_seconds=wait, notify=place.notify, stores=stores):
        table = _standing(ref, version, stores)
        found = _affected(table, version, place, restore_id)
        if others := {one.ledger.pipeline for one in found} - names:
            raise GuardError(f'pipeline "{min(others)}" wrote it meanwhile', hint="try again")
        _refuse_unfinished(found)
        made = _carry_out(table, version, found, place, restore_id)
        return _result(ref, table, version, found, made=made)


def settle_restores(
    ledger: Ledger, state: LedgerState, quarantine: Quarantine, now: datetime
) -> LedgerState:
    """Find out how restores ended that were cut off, and write it down."""
    for restore in state.restoring:
        made = _commit_of(restore, quarantine.stores)
        kind = NOT_RESTORED if made is None else RESTORED
        if kind == RESTORED:
            _clear_slices(state, restore, quarantine)
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


def _affected(table: TableInfo, version: int, place: Workplace, restore_id: str) -> list[Affected]:
    """Every pipeline of this warehouse that has landed in the table since a version."""
    found = []
    for ledger in Ledger.everyone(place.config.warehouse, place.config.stores):
        state = ledger.state()
        restore = _lost(table, version, state, restore_id)
        if restore is not None:
            found.append(Affected(ledger=ledger, state=state, restore=restore))
    return found


def _lost(table: TableInfo, version: int, state: LedgerState, restore_id: str) -> Restore | None:
    """What one pipeline loses; a batch that changed nothing goes with the one it built upon."""
    landed = [
        (entry, sink)
        for entry in state.batches
        for sink in entry.sinks
        if entry.state in (DONE, REVERTED) and sink.name not in entry.reverted
        if sink.version is not None and sink.identity == table.table_id
    ]
    later = [
        entry.n for entry, sink in landed if sink.committed and int(sink.version or 0) > version
    ]
    if not later:
        return None
    first = min(later)
    kept = [entry for entry, sink in landed if entry.n < first and sink.committed]
    name = next(sink.name for entry, sink in landed if entry.n == first)
    return Restore(
        restore_id=restore_id,
        sink=name,
        location=table.location,
        table_id=table.table_id,
        version_from=table.version,
        version_to=version,
        batches=tuple(sorted({entry.n for entry, _ in landed if entry.n >= first})),
        generation=kept[-1].generation if kept else state.generation,
    )


def _refuse_unfinished(found: list[Affected]) -> None:
    for affected in found:
        entry = affected.state.unfinished
        if entry is not None:
            raise GuardError(
                f'batch {entry.n} of pipeline "{affected.ledger.pipeline}" is unfinished',
                hint=f"finish it first: deltaworks runs resume {entry.run_id}",
            )


def _carry_out(
    table: TableInfo, version: int, found: list[Affected], place: Workplace, restore_id: str
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
        _clear_slices(one.state, one.restore, quarantine)
        one.ledger.restore(RESTORED, replace(one.restore, version=made), one.state, now)
    return made


def _restore(table: TableInfo, version: int, place: Workplace, note: dict[str, Any]) -> int:
    stores = place.config.stores
    committer = committer_of(table.location, stores)
    if committer != "spark" and deltars.can_restore(table):
        return deltars.restore(table.location, version, note=note, stores=stores)
    require_committer(table.location, "spark", stores)
    from deltaworks.engines.spark.restore import restore

    spark = place.spark.at(table.location, stores)
    return restore(spark, table.location, version, note=note)


def _clear_slices(state: LedgerState, restore: Restore, quarantine: Quarantine) -> None:
    """What the lost batches had set aside is read again with them."""
    for entry in state.batches:
        if entry.n in restore.batches:
            quarantine.clear(entry)


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
        pipelines=tuple((one.ledger.pipeline, one.restore.batches) for one in found),
    )
