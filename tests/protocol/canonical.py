"""When two worlds are the same: all that can happen in one can happen in the other, alike.

Names that somebody drew (runs, tokens, restores) are told by where they appear. Numbers that only
grow (batches, generations, events, versions of the quarantine) are told by their order. A batch
that was given up and left no trace does not count, nor does a version of the quarantine that nobody
refers to. So a process that died and was made good comes to the world in which none had died.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from deltaworks.runtime.ledger.state import ABANDONED, PLANNED, BatchEntry, Restore
from tests.protocol.world import Commit, World, _folded

BATCH, GENERATION, EVENT, VERSION, NAME = "BGEVN"
_NOTE_KINDS = {
    "batch": BATCH,
    "undone_batch": BATCH,
    "generation": GENERATION,
    "token": NAME,
    "restore": NAME,
    "run_id": NAME,
    "parked_by": NAME,
}
Part = tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]]
"""A part of a world: what is told as it is, and what is told anew, each in its order."""


class _Teller:
    """Takes a part of a world down."""

    def __init__(self) -> None:
        self.plain: list[Any] = []
        self.marks: list[tuple[str, Any]] = []

    def put(self, *values: Any) -> None:
        """Values that are told as they are."""
        self.plain.extend(values)

    def mark(self, kind: str, *values: Any) -> None:
        """Values that are told by their order, or by where they appear."""
        self.plain.append((kind, len(values), *(value is None for value in values)))
        self.marks.extend((kind, value) for value in values if value is not None)

    def part(self) -> Part:
        """What was taken down."""
        return tuple(self.plain), tuple(self.marks)


def canonical(world: World, *, with_backup: bool = False) -> Any:
    """The same for worlds that are the same; `with_backup` while an older ledger may come back.

    A ledger that was put back may number anew what stands in tables: such worlds are told exactly,
    and so are those in which a restore or an undo is under way.
    """
    state = _folded(world.events)
    if world.incarnations or state.undoing or state.restoring or world.other is not None:
        return world
    noted = frozenset(
        note
        for commits in (log for _, log in world.tables)
        for note in (_token(commit.note) for commit in commits)
    ) | {_token(note) for _, note in world.quarantine}
    begun = frozenset(f"batch {entry.token}" for entry in state.all_unfinished())
    parts = [_of_ledger(world.events, noted)]
    if with_backup:
        parts.append(_of_ledger(first_batch(world.events), noted))
    parts.extend(_of_commit(name, commit) for name, log in world.tables for commit in log)
    versions = {v for part in parts for k, v in part[1] if k == VERSION}
    parts.append(_of_quarantine(world, versions, begun))
    teller = _Teller()
    for place, rows in world.parked:
        number, _, sink = place.partition("-")
        teller.put(sink, rows)
        teller.mark(BATCH, int(number))
    teller.mark(NAME, *sorted(world.undone_runs))
    parts.append(teller.part())
    asked = (world.delivered, world.undone, world.passed)
    rest = (world.modes, world.sinks, world.whole, asked, bool(state.batches), world.backup)
    return rest, tuple(plain for plain, _ in parts), _resolved(m for _, ms in parts for m in ms)


def first_batch(events: tuple[str, ...]) -> tuple[str, ...]:
    """The events of a ledger up to the end of its first batch."""
    done = [n for n, text in enumerate(events) if '"kind": "done"' in text]
    return events[: done[0] + 1] if done else ()


def _resolved(marks: Iterable[tuple[str, Any]]) -> tuple[int, ...]:
    listed = list(marks)
    names: dict[Any, int] = {}
    values: dict[str, set[Any]] = {BATCH: set(), GENERATION: set(), EVENT: set(), VERSION: set()}
    for kind, value in listed:
        if kind == NAME:
            names.setdefault(value, len(names))
        else:
            values[kind].add(value)
    ranks = {
        kind: {value: rank for rank, value in enumerate(sorted(found))}
        for kind, found in values.items()
    }
    ranks[NAME] = names
    return tuple(ranks[kind][value] for kind, value in listed)


@lru_cache(maxsize=100_000)
def _token(note: str) -> str:
    return str(json.loads(note).get("token", ""))


@lru_cache(maxsize=100_000)
def _reason(note: str) -> str:
    return str(json.loads(note).get("by", ""))


@lru_cache(maxsize=100_000)
def _of_commit(table: str, commit: Commit) -> Part:
    teller = _Teller()
    teller.put(table, commit.table_id, commit.rows, commit.operation)
    for app_id, value in commit.txns:
        writer, is_undo, batch = app_id.partition(":undo")
        name, _, generation = writer.rpartition(":")
        teller.put(name, is_undo)
        teller.mark(GENERATION, int(generation))
        teller.mark(BATCH, int(batch[1:]) if batch else value)
    _tell_note(teller, commit.note)
    return teller.part()


def _tell_note(teller: _Teller, note: str) -> None:
    for key, value in json.loads(note).items():
        teller.put(key)
        if key in _NOTE_KINDS:
            teller.mark(_NOTE_KINDS[key], value)
        elif key != "undo":  # an event that ended
            teller.put(str(value))


def _of_quarantine(world: World, versions: set[int], begun: frozenset[str]) -> Part:
    """The versions that somebody refers to, the last one, and what commits say of slices.

    Which commits a batch made when it had landed counts while it is unfinished.
    """
    teller = _Teller()
    last = len(world.quarantine) - 1
    kept = sorted(v for v in {*versions, last} if 0 <= v <= last)
    for version in kept:
        rows = world.quarantine[version][0]
        teller.put(len(rows), tuple(row for _, _, row in rows))
        teller.mark(VERSION, version)
        for generation, batch, _ in rows:
            teller.mark(GENERATION, generation)
            teller.mark(BATCH, batch)
    for note in dict.fromkeys(note for _, note in world.quarantine):
        if _token(note):
            _tell_note(teller, note)
        elif (by := _reason(note)) in begun:
            teller.put("by")
            teller.mark(NAME, by.removeprefix("batch "))
    return teller.part()


@lru_cache(maxsize=100_000)
def _of_ledger(events: tuple[str, ...], noted: frozenset[str]) -> Part:
    state = _folded(events)
    teller = _Teller()
    referred = {n for entry in state.batches for n in (*entry.covers, *entry.supersedes)}
    for entry in state.batches:
        left_traces = entry.token in noted or entry.n in referred or entry.superseded
        if entry.state != ABANDONED or left_traces:
            _tell_batch(teller, entry)
    teller.mark(GENERATION, state.generation)
    for restore in state.restored:
        _tell_restore(teller, restore)
    for sink, version, n in state.undos:
        teller.put(sink, version)
        teller.mark(BATCH, n)
    return teller.part()


def _tell_batch(teller: _Teller, entry: BatchEntry) -> None:
    is_out, is_begun = entry.out_event > entry.in_event, entry.state == PLANNED
    settles = entry.replaces or entry.supersedes or (is_begun and entry.replay is not None)
    teller.put(entry.batch_id, entry.spec, entry.state, entry.replaces, entry.backfill)
    teller.put(entry.judges, entry.superseded, entry.reverted, tuple(sorted(entry.undone.items())))
    teller.put(json.dumps({name: b.to_json() for name, b in sorted(entry.bounds.items())}))
    teller.put(bool(entry.undo_event), len(entry.covers), entry.left_over)
    teller.mark(NAME, entry.run_id, entry.token)
    teller.mark(BATCH, entry.n, *entry.covers, *entry.supersedes)
    teller.mark(GENERATION, entry.generation, entry.over if entry.replaces else None)
    teller.mark(EVENT, entry.first_event, entry.reverted_by, entry.in_event)
    teller.mark(EVENT, entry.out_event if is_out else None)
    teller.mark(VERSION, entry.quarantine_before if is_out else None)
    teller.mark(VERSION, entry.quarantine_version if settles else None)
    if entry.replay is not None:
        teller.mark(VERSION, entry.replay.version)
        teller.mark(BATCH, *entry.replay.batches)
    for sink in entry.sinks:
        teller.put(sink.name, sink.identity, sink.landed, sink.committed, sink.version)
        teller.mark(GENERATION, int(sink.app_id.rpartition(":")[2]))
        if entry.state == PLANNED or not sink.committed:
            teller.put(sink.version_found, bool(sink.parked))
            teller.mark(BATCH, sink.txn_found)


def _tell_restore(teller: _Teller, restore: Restore) -> None:
    """A restore that ended: what it did to batches is told by them."""
    teller.put(restore.sink, restore.more_sinks, restore.table_id)
    teller.put(restore.version_to, restore.version)
    teller.mark(NAME, restore.restore_id)
