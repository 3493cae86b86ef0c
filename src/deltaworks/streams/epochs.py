"""Which version of a table an epoch became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deltaworks.engines.deltars.write.epoch_table import EpochTable, TableLocation, TableRestore
from deltaworks.model.epochs import EpochRecord
from deltaworks.model.table_info import CommitRecord
from deltaworks.model.table_ref import TableRef


def table_epochs(
    ref: TableRef, *, storage_options: Mapping[str, str] | None = None
) -> tuple[EpochRecord, ...]:
    """The epochs of every writer, oldest first, as far back as the table's log goes."""
    place = TableLocation(ref.location, dict(storage_options or {}))
    table = EpochTable(place, place.open())
    alive = _alive(table.version, table.restores(-1))
    return tuple(_record(commit, alive) for commit in table.epochs())


def _record(commit: CommitRecord, alive: frozenset[int]) -> EpochRecord:
    note = commit.user_metadata
    return EpochRecord(
        writer_id=str(note.get("writer")),
        epoch=int(note["epoch"]),
        version=commit.version,
        rows=note.get("rows"),
        generation=int(note.get("generation") or 0),
        timestamp_ms=commit.timestamp_ms,
        kept=commit.version in alive,
    )


def _alive(latest: int, restores: Sequence[TableRestore]) -> frozenset[int]:
    """The versions that the latest one builds upon; a restore goes on from where it went."""
    back = {restore.version: restore.to for restore in restores}
    found, version = set(), latest
    while version >= 0:
        found.add(version)
        to = back.get(version)
        version = version - 1 if to is None else to
    return frozenset(found)
