"""What a table that others changed holds of a pipeline's batches, and what its ledger makes of it.

The table is read as a log of facts: up to some version it is the one that the ledger knows, and
behind that every commit says whether it brought a batch, took one out, or set the table back.
This module is pure: it reads no table, and every function returns a new value.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from deltaworks.errors import GuardError
from deltaworks.model.batch import Bounds
from deltaworks.model.table_info import CommitRecord
from deltaworks.runtime.ledger.evidence import Writer, holds
from deltaworks.runtime.ledger.state import (
    ABANDONED,
    DONE,
    PLANNED,
    REVERTED,
    UNDONE,
    BatchEntry,
    LedgerState,
    Restore,
    SinkEntry,
)
from deltaworks.runtime.ledger.timeline import Standing, standing

SOUND, SET_BACK, OLDER, RECREATED, GONE, AHEAD = (
    "as the ledger knows it",
    "set back by hand",
    "an older copy",
    "recreated",
    "gone",
    "ahead of the ledger",
)


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """What the ledger takes over from a table, as one event tells it."""

    steps: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...] = ()
    """Versions of the table, each with the batches that it holds and those undone there."""
    txns: Mapping[str, int] = field(default_factory=dict)
    """The last batch number that the table knows of each sink."""
    is_other: bool = False
    """Whether the table's log is not the one that the ledger knows, or not all of it."""
    is_floor: bool = False
    """Whether the ledger knows too little of older versions to go back to them."""
    lost: tuple[int, ...] = ()
    """Batches whose commits are not in that log."""
    counted: tuple[int, ...] = ()
    """Those of them that count as in nevertheless."""
    found: tuple[tuple[int, str, int], ...] = ()
    """Batches whose commits are in the log, with their sinks, where the ledger forgot them."""
    replanned: tuple[tuple[int, str, int | None], ...] = ()
    """Batches that are still to be made, with the numbers that their sinks know now."""
    adopted: Mapping[str, Any] = field(default_factory=dict)
    """One batch for all that the table holds and the ledger does not know."""

    def to_json(self) -> dict[str, Any]:
        """A plain document for the ledger."""
        return {
            "steps": [[at, list(present), list(undone)] for at, present, undone in self.steps],
            "txns": dict(self.txns),
            "is_other": self.is_other,
            "is_floor": self.is_floor,
            "lost": list(self.lost),
            "counted": list(self.counted),
            "found": [list(one) for one in self.found],
            "replanned": [list(one) for one in self.replanned],
            "adopted": dict(self.adopted),
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Accepted:
        """What a ledger document stands for."""
        steps = document.get("steps", ())
        return Accepted(
            steps=tuple((at, tuple(present), tuple(undone)) for at, present, undone in steps),
            txns=dict(document.get("txns", {})),
            is_other=bool(document.get("is_other")),
            is_floor=bool(document.get("is_floor")),
            lost=tuple(document.get("lost", ())),
            counted=tuple(document.get("counted", ())),
            found=tuple((n, name, at) for n, name, at in document.get("found", ())),
            replanned=tuple((n, name, at) for n, name, at in document.get("replanned", ())),
            adopted=dict(document.get("adopted", {})),
        )


# ----------------------------------------------------------------- what the table holds


@dataclass(frozen=True)
class Holding:
    """The batches of a pipeline in a table at one version."""

    standing: Standing
    unknown: frozenset[tuple[int, int]] = frozenset()
    """Generation and number of batches that the ledger does not know."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a table holds of one pipeline, beside what its ledger believes."""

    kind: str
    since: int
    """The version up to which the table is the one that the ledger knows; -1 for none."""
    steps: tuple[tuple[int, Holding], ...]
    """How it went on from there."""

    @property
    def now(self) -> Holding:
        """What it holds."""
        return self.steps[-1][1]

    @property
    def is_other(self) -> bool:
        """Whether commits that the ledger knows are not in the log."""
        return self.kind in (OLDER, RECREATED, GONE)


def found_in(
    state: LedgerState,
    sinks: frozenset[str],
    table: tuple[str, int] | None,
    records: Sequence[CommitRecord],
    writers: Sequence[Writer],
) -> Finding:
    """What a table, given by its id and version, holds of a pipeline; all its records are given."""
    if table is None:
        kind = GONE if _committed(state, sinks, state.generation) else SOUND
        return Finding(kind=kind, since=-1, steps=((-1, Holding(Standing())),))
    in_order = sorted(records, key=lambda record: record.version)
    known = known_version(state, sinks, table[0])
    ids = {sink.identity for _, sink in _committed(state, sinks, state.generation)}
    if ids and table[0] not in ids:
        steps = _fold(state, sinks, -1, in_order, writers)
        return Finding(kind=RECREATED, since=-1, steps=steps)
    before = _before_meddling(state, sinks, in_order)
    since = min(_common_version(state, sinks, table, in_order, writers), before)
    steps = _fold(state, sinks, since, in_order, writers)
    if since < min(known, before):
        given_up = _given_up(state, steps[0][1].standing, in_order, since, writers)
        steps = tuple((at, replace(one, unknown=one.unknown | given_up)) for at, one in steps)
        kind = OLDER
    elif steps[-1][1].unknown:
        kind = AHEAD
    else:
        kind = SET_BACK if len(steps) > 1 else SOUND
    return Finding(kind=kind, since=since, steps=steps)


def _before_meddling(
    state: LedgerState, sinks: frozenset[str], records: Sequence[CommitRecord]
) -> int:
    """The version before somebody set the table back while a batch was on its way to it."""
    accepted = [r.version or 0 for r in state.restored if "steps" in r.accept and r.sinks & sinks]
    floor = max(accepted, default=-1)
    landed = [sink for _, sink in _committed(state, sinks, state.generation)]
    windows = [(s.version_found, s.version) for s in landed if s.txn_found is not None]
    found = [
        record.version - 1
        for record in records
        if record.operation == "RESTORE" and "restore" not in record.user_metadata
        for start, end in windows
        if end is not None and max(start or 0, floor) < record.version < end
    ]
    return min(found, default=sys.maxsize)


def known_version(state: LedgerState, sinks: frozenset[str], table_id: str) -> int:
    """The newest version of a table that is the ledger's own doing; -1 for none."""
    entries = [*_committed(state, sinks, -1)]
    landed = [sink.version for _, sink in entries if sink.identity == table_id]
    ours = [r for r in state.restored if r.table_id == table_id and r.sinks & sinks]
    undone = [at for name, at, _ in state.undos if name in sinks] if landed else []
    versions = [*landed, *undone, *(r.version for r in ours)]
    return max((v for v in versions if v is not None), default=-1)


def _committed(
    state: LedgerState, sinks: frozenset[str], generation: int
) -> list[tuple[BatchEntry, SinkEntry]]:
    return [
        (entry, sink)
        for entry in state.batches
        if entry.state in (DONE, UNDONE, REVERTED) and entry.generation >= generation
        for sink in entry.sinks
        if sink.name in sinks and sink.committed
    ]


def _common_version(
    state: LedgerState,
    sinks: frozenset[str],
    table: tuple[str, int],
    records: Sequence[CommitRecord],
    writers: Sequence[Writer],
) -> int:
    """The version up to which every commit that the ledger knows is in the log."""
    by_version = {record.version: record for record in records}
    oldest = records[0].version if records else 0
    since = min(known_version(state, sinks, table[0]), table[1])
    for entry, sink in _committed(state, sinks, state.generation):
        at = sink.version
        if at is None or at < oldest or sink.accepted or sink.identity != table[0]:
            continue
        record = by_version.get(at)
        mine = next(writer for writer in writers if writer.sink == sink.name)
        if record is None or not holds(record, entry, mine):
            since = min(since, at - 1)
    return since


def _fold(
    state: LedgerState,
    sinks: frozenset[str],
    since: int,
    records: Sequence[CommitRecord],
    writers: Sequence[Writer],
) -> tuple[tuple[int, Holding], ...]:
    """What the table holds from a version on, one step for each commit that changes it."""
    start = standing(state, sinks, since) if since >= 0 else Standing()
    found = [(since, Holding(start))]
    floor = floor_of(state, sinks) if since >= 0 else -1
    for record in (record for record in records if record.version > since):
        now = found[-1][1]
        if record.operation == "RESTORE":
            after = _set_back(record, state, sinks, found, floor)
        else:
            after = _after(now, record, state, writers)
        if after != now:
            found.append((record.version, after))
    return tuple(found)


def _given_up(
    state: LedgerState,
    held: Standing,
    records: Sequence[CommitRecord],
    since: int,
    writers: Sequence[Writer],
) -> frozenset[tuple[int, int]]:
    """Batches that a full refresh, which is not in the log any more, had replaced half-landed."""
    newest = max((state.batch(n).generation for n in held.present), default=-1)
    mine = (r for r in records if r.version <= since and any(w.made(r) for w in writers))
    found = (_known(r.user_metadata, state) for r in mine if "batch" in r.user_metadata)
    return frozenset(
        (entry.generation, entry.n)
        for entry in found
        if entry is not None and entry.state == ABANDONED and entry.generation >= newest
    )


def _after(
    now: Holding, record: CommitRecord, state: LedgerState, writers: Sequence[Writer]
) -> Holding:
    """What a table holds after one more commit."""
    if not any(writer.made(record) for writer in writers):
        return Holding(Standing()) if "REPLACE" in record.operation else now
    note = record.user_metadata
    if "undone_batch" in note:
        n = int(note["undone_batch"])
        left = frozenset(one for one in now.unknown if one[1] != n)
        known = n in now.standing.present
        return Holding(now.standing.without(n) if known else now.standing, left)
    if "batch" not in note:
        return now
    if (entry := _known(note, state)) is not None:
        is_settled = entry.state in (DONE, UNDONE, REVERTED)
        return Holding(now.standing.landed(entry), now.unknown) if is_settled else now
    generation = int(note.get("generation", state.generation))
    unknown = now.unknown | {(generation, int(note["batch"]))}
    newest = max((one[0] for one in now.unknown), default=state.generation)
    if generation > newest:  # the first batch of a full refresh replaces everything
        return Holding(Standing(), frozenset({(generation, int(note["batch"]))}))
    return Holding(now.standing, unknown)


def _known(note: Mapping[str, Any], state: LedgerState) -> BatchEntry | None:
    """The batch that a commit brought; notes of older versions have a number only."""
    word, mine = ("token", "token") if "token" in note else ("batch", "n")
    return next((entry for entry in state.batches if getattr(entry, mine) == note[word]), None)


def _set_back(
    record: CommitRecord,
    state: LedgerState,
    sinks: frozenset[str],
    found: Sequence[tuple[int, Holding]],
    floor: int,
) -> Holding:
    """What a table holds after it was set back."""
    to = record.restored_to
    if to is None or to < floor:
        raise GuardError(
            f"version {record.version} set the table back, and nobody can say which batches it has",
            hint="reload everything with --full-refresh",
        )
    if to > found[0][0]:
        return [holding for at, holding in found if at <= to][-1]
    return Holding(standing(state, sinks, to))


def floor_of(state: LedgerState, sinks: frozenset[str]) -> int:
    """The version before which the ledger knows too little of a table; -1 for none."""
    return max(
        (
            restore.version or 0
            for restore in state.restored
            if restore.sinks & sinks and restore.accept.get("is_floor")
        ),
        default=-1,
    )


# ----------------------------------------------------------------- what the ledger makes of it


def with_accepted(state: LedgerState, restore: Restore, event: int) -> LedgerState:
    """The state after a table was accepted as it is."""
    accepted = Accepted.from_json(restore.accept)
    state = replace(
        state, batches=tuple(_rebased(entry, restore, accepted) for entry in state.batches)
    )
    if accepted.is_other:  # its versions are not those that the ledger knew
        undos = tuple(one for one in state.undos if one[0] not in restore.sinks)
        restored = tuple(
            one for one in state.restored if one is restore or not one.sinks & restore.sinks
        )
        state = replace(state, undos=undos, restored=restored)
    if accepted.adopted:
        entry = _adopted(accepted.adopted, event)
        others = tuple(_left_behind(one, entry) for one in state.batches)
        state = replace(state, batches=(*others, entry), generation=entry.generation)
    return state


def _left_behind(entry: BatchEntry, adopted: BatchEntry) -> BatchEntry:
    """A batch that was unfinished when a full refresh, which the ledger lost, replaced it."""
    is_left = entry.state == PLANNED and entry.generation < adopted.generation
    return replace(entry, state=ABANDONED, superseded=True) if is_left else entry


def _rebased(entry: BatchEntry, restore: Restore, accepted: Accepted) -> BatchEntry:
    """A batch whose commit is not in the log any more, or that is still to be made."""
    found = {(n, name): at for n, name, at in accepted.found}
    replanned = {(n, name): txn for n, name, txn in accepted.replanned}

    def sink_of(sink: SinkEntry) -> SinkEntry:
        if sink.name not in restore.sinks:
            return sink
        if (entry.n, sink.name) in replanned:
            txn = replanned[entry.n, sink.name]
            version = restore.version if restore.table_id else None
            return replace(sink, txn_found=txn, version_found=version, identity=restore.table_id)
        if (entry.n, sink.name) in found:
            at = found[entry.n, sink.name]
            there = replace(sink, identity=restore.table_id, version=at, accepted=False)
            return replace(there, landed=True, committed=True)
        if entry.n in accepted.counted:
            return _counted(sink, restore)
        if entry.n in accepted.lost:
            return replace(sink, identity="", landed=False, committed=False, version=None)
        return sink

    undone = dict(entry.undone)
    if entry.n in accepted.lost:
        undone |= {name: None for name in undone if name in restore.sinks}
    return replace(entry, sinks=tuple(map(sink_of, entry.sinks)), undone=undone)


def _counted(sink: SinkEntry, restore: Restore) -> SinkEntry:
    """A sink that counts as holding a batch, though no commit proves it."""
    if not restore.table_id:
        return replace(sink, identity="", committed=False, version=None)
    made = restore.version
    return replace(sink, identity=restore.table_id, version=made, accepted=sink.committed)


def adopted(
    *,
    n: int,
    generation: int,
    restore_id: str,
    at: datetime,
    spec: str,
    bounds: Mapping[str, Bounds],
    sinks: Iterable[SinkEntry],
) -> dict[str, Any]:
    """A document for one batch that stands for all that the ledger does not know."""
    return {
        "n": n,
        "generation": generation,
        "run_id": restore_id,
        "at": at.isoformat(),
        "spec": spec,
        "sources": {name: taken.to_json() for name, taken in bounds.items()},
        "sinks": [
            {
                "name": sink.name,
                "app_id": sink.app_id,
                "identity": sink.identity,
                "txn_found": sink.txn_found,
                "version": sink.version,
            }
            for sink in sinks
        ],
    }


def _adopted(document: Mapping[str, Any], event: int) -> BatchEntry:
    return BatchEntry(
        n=int(document["n"]),
        batch_id=None,
        run_id=str(document["run_id"]),
        spec=str(document["spec"]),
        generation=int(document["generation"]),
        state=DONE,
        bounds={name: Bounds.from_json(taken) for name, taken in document["sources"].items()},
        sinks=tuple(
            SinkEntry(**sink, landed=True, committed=True, accepted=True)
            for sink in document["sinks"]
        ),
        at=datetime.fromisoformat(document["at"]),
        first_event=event,
        in_event=event,
    )


def refuse_before_acceptance(table_id: str, version: int, state: LedgerState) -> None:
    """Of what a table held before it was accepted as it is, the ledger does not know enough."""
    for restore in state.restored:
        at = restore.version or 0
        is_here = restore.table_id == table_id
        if restore.accept.get("is_floor") and is_here and version < at:
            raise GuardError(
                f"version {version} is older than version {at}, in which the table was accepted "
                "as it is",
                hint=f"choose version {at} or a later one, "
                "or reload everything with --full-refresh",
            )


def not_held(state: LedgerState, restore: Restore) -> list[int]:
    """Batches that a table which is accepted as it is does not hold: their rows stay out."""
    steps = restore.accept.get("steps", ())
    held = set(steps[-1][1]) if steps else {entry.n for entry in state.batches}
    return [entry.n for entry in state.batches if entry.n not in held]
