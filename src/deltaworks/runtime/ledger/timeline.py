"""Which batches of a pipeline a table holds at any of its versions, by what the ledger knows.

Batches land, undos take one out, and restores make the table what it was before. So a table can
also go forward again, to batches that an earlier restore had taken out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from deltaworks.runtime.ledger.state import (
    DONE,
    REVERTED,
    UNDONE,
    BatchEntry,
    LedgerState,
    SinkEntry,
)


@dataclass(frozen=True)
class Standing:
    """The batches in a table at a version, and those that are undone there."""

    present: frozenset[int] = frozenset()
    undone: frozenset[int] = frozenset()
    replaced: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """The batches that each full refresh replaced in the table."""
    generation: int | None = None
    """The generation of the batch that landed last, whether it was undone or not."""

    def landed(self, entry: BatchEntry) -> Standing:
        """The same after a batch."""
        present, undone = self.present | {entry.n}, self.undone - {entry.n}
        if not entry.replaces:
            return replace(self, present=present, undone=undone, generation=entry.generation)
        replaced = {**self.replaced, entry.n: self.present}
        return Standing(frozenset({entry.n}), undone, replaced, entry.generation)

    def without(self, n: int) -> Standing:
        """The same after the undo of a batch; that of a refresh puts back what it replaced."""
        present = (self.present - {n}) | self.replaced.get(n, frozenset())
        return replace(self, present=present, undone=self.undone | {n})


def generations_of(state: LedgerState) -> frozenset[int]:
    """The generations whose rows the tables hold; an undone refresh put the one before it back."""
    found = [state.generation]
    refreshes = {entry.generation: entry for entry in state.batches if entry.replaces}
    while (entry := refreshes.get(found[-1])) is not None and entry.state == UNDONE:
        found.append(entry.over)
    return frozenset(found)


def sinks_of(state: LedgerState, table_id: str) -> frozenset[str]:
    """The sinks of a pipeline that have landed in a table."""
    return frozenset(
        sink.name
        for entry in state.batches
        for sink in entry.sinks
        if sink.committed and sink.identity == table_id
    )


def standing(state: LedgerState, sinks: frozenset[str], version: int) -> Standing:
    """What a table of some sinks holds at a version."""
    known: list[tuple[int, Standing]] = [(-1, Standing())]
    for at, happened in sorted(_timeline(state, sinks), key=lambda event: event[0]):
        now = known[-1][1]
        if isinstance(happened, Standing):
            now = happened
        elif isinstance(happened, BatchEntry):
            now = now.landed(happened)
        elif at[1] in (_UNDO, _UNDO_OF_NONE):
            now = now.without(happened)
        else:
            now = [found for when, found in known if when <= happened][-1]
        known.append((at[0], now))
    return [found for when, found in known if when <= version][-1]


_COMMIT, _UNDO, _RESTORE, _NO_CHANGE, _UNDO_OF_NONE = range(5)
_At = tuple[int, int, int]


_Happened = BatchEntry | Standing | int


def _timeline(state: LedgerState, sinks: frozenset[str]) -> Iterator[tuple[_At, _Happened]]:
    """Everything that happened to the table: its version, what it was, and to what."""
    latest = -1
    for entry, sink in _entries(state, sinks):
        if sink.committed and sink.version is not None:
            latest = sink.version
            yield (latest, _COMMIT, entry.n), entry
        else:  # it changed nothing, or is parked: it is where those before it are
            known = (latest, sink.version, sink.version_found)
            latest = max(version for version in known if version is not None)
            yield (latest, _NO_CHANGE, entry.n), entry
        if entry.undone.get(sink.name, -1) is None:  # nothing was to do, or nobody said when
            kind = _UNDO if sink.committed else _UNDO_OF_NONE
            yield (latest, kind, entry.n), entry.n
    for name, version, n in state.undos:
        if name in sinks:
            yield (version, _UNDO, n), n
    for restore in (restore for restore in state.restored if restore.sinks & sinks):
        if "steps" in restore.accept:
            for at, present, undone in restore.accept["steps"]:
                yield (at, _RESTORE, 0), Standing(frozenset(present), frozenset(undone))
        elif restore.version is not None:
            yield (restore.version, _RESTORE, 0), restore.version_to


def _entries(state: LedgerState, sinks: frozenset[str]) -> Iterator[tuple[BatchEntry, SinkEntry]]:
    for entry in state.batches:
        for sink in entry.sinks:
            is_settled = entry.state in (DONE, UNDONE, REVERTED)
            was_there = sink.landed or sink.parked or sink.name in entry.undone
            if sink.name in sinks and is_settled and was_there:
                yield entry, sink
