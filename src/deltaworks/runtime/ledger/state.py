"""What the events of a ledger amount to: the batches of a pipeline, and what became of each.

Every row that a batch read is in exactly one place: in the table, in quarantine, dropped by a
named rule, parked, undone on purpose, or it will be read again. A batch's state says which:

    planned     it may have landed in some sinks; the next run finds out and finishes it
    done        in every sink, parked for some, or in quarantine
    abandoned   it landed nowhere, or a full refresh replaced what it had landed
    undone      taken out on purpose; what it read counts as read
    reverted    taken out by a restore; what it read is read again

This module is pure: it reads no table, and every function returns a new value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from deltaworks.model.batch import FILES, Bounds, Pin, Replay, read_together, same_bounds

PLANNED, DONE, ABANDONED = "planned", "done", "abandoned"
LOADED_LATER = "loaded_later"
"""A batch that was parked has been committed."""
UNDOING, UNDONE, NOT_UNDONE = "undoing", "undone", "not_undone"
REVERTED = "reverted"
"""A batch whose rows a restore took out of a sink again."""
RESTORING, RESTORED, NOT_RESTORED = "restoring", "restored", "not_restored"


@dataclass(frozen=True, kw_only=True)
class SinkEntry:
    """A sink as the plan found it, and how the batch landed there."""

    name: str
    app_id: str
    identity: str
    txn_found: int | None
    version_found: int | None = None
    """The table's version when the batch was planned; its commit comes after it."""
    landed: bool = False
    committed: bool = False
    version: int | None = None
    parked: str = ""
    """The folder with the rows, while they wait to be committed."""
    accepted: bool = False
    """Whether the table was accepted as holding it; no commit of its own proves that."""


@dataclass(frozen=True, kw_only=True)
class BatchEntry:
    """One batch of a pipeline, as far as it got."""

    n: int
    batch_id: str | None
    run_id: str
    spec: str
    generation: int
    state: str
    bounds: Mapping[str, Bounds]
    sinks: tuple[SinkEntry, ...]
    at: datetime
    token: str = ""
    """A random word that the batch's commits carry too, and no other commit does."""
    first_event: int = 0
    replaces: bool = False
    over: int = 0
    """The generation that the pipeline was at before it."""
    replay: Replay | None = None
    """The rows it brings back from the quarantine, if that is where it reads."""
    backfill: bool = False
    """Whether it brings a sink what others have; what was read does not change by it."""
    covers: tuple[int, ...] = ()
    """The batches whose rows it brings to its sinks, as a backfill or by reading them again."""
    judges: bool = False
    """Whether a backfill brings rows that no sink has, so that it sets aside what it refuses."""
    supersedes: tuple[int, ...] = ()
    """Older batches that read the same; what they had quarantined is judged again by this one."""
    quarantine_version: int | None = None
    """The version of the quarantine table when the batch was planned."""
    superseded: bool = False
    """Whether a full refresh replaced what it had landed before it was finished."""
    left_over: bool = False
    """Whether a full refresh replaced it when a restore had gone back to before its generation."""
    reverted: frozenset[str] = frozenset()
    """The sinks that a restore took it out of."""
    reverted_by: int = 0
    """The event that said so last."""
    undone: Mapping[str, int | None] = field(default_factory=dict)
    """The sinks it was undone in, each with the version of the commit that did it."""
    undo_event: int = 0
    """The event that began its undo last."""
    quarantine_before: int | None = None
    """The version of the quarantine table before its slice was taken out the last time."""
    in_event: int = 0
    """The event that brought it in the last time."""
    out_event: int = 0
    """The event that took it out the last time; what goes by one event may come back apart."""
    pins: Mapping[str, Pin] = field(default_factory=dict)
    """The tables that checks look into, by location; no reason to read the sources once more."""

    @property
    def reads_on(self) -> bool:
        """Whether it goes on in the sources, so that the next one starts where it ended."""
        return self.replay is None and not self.backfill

    @property
    def sets_aside(self) -> bool:
        """Whether the rows that it refuses are not in quarantine yet."""
        return self.judges or not self.backfill

    @property
    def kept(self) -> frozenset[str]:
        """The sinks that have it although it was taken out of others."""
        landed = frozenset(sink.name for sink in self.sinks if sink.landed)
        return landed - self.reverted - set(self.undone)

    def is_out(self, generation: int) -> bool:
        """Whether no sink has it any more, or only as a leftover of a later generation."""
        is_left = self.left_over or self.generation > generation
        return is_left or self.state == UNDONE or (self.state == REVERTED and not self.kept)

    def has_slice(self, generation: int) -> bool:
        """Whether what it had refused is in the quarantine of a generation, if it refused any."""
        return self.generation == generation and not self.is_out(generation)

    def sink(self, name: str) -> SinkEntry | None:
        """What is known of it in one sink; None when it does not go there."""
        return next((sink for sink in self.sinks if sink.name == name), None)


@dataclass(frozen=True, kw_only=True)
class Restore:
    """A table on its way back to an older version, as one pipeline that writes it sees it."""

    restore_id: str
    sink: str
    location: str
    table_id: str
    version_from: int
    version_to: int
    batches: tuple[int, ...]
    """The batches whose rows go."""
    generation: int
    """The generation that the table's rows belong to afterwards."""
    revived: tuple[int, ...] = ()
    """Batches whose rows come back, because they were taken out after that version."""
    undone: tuple[int, ...] = ()
    """Batches that were undone at that version, so that they are undone again."""
    quarantine_version: int | None = None
    """The version of the quarantine table when the restore began."""
    more_sinks: tuple[str, ...] = ()
    """Other sinks of the pipeline that write the same table."""
    version: int | None = None
    """The commit that did it, once it is known."""
    accept: Mapping[str, Any] = field(default_factory=dict)
    """What the ledger takes over from a table that others changed; see `acceptance`."""

    @property
    def sinks(self) -> frozenset[str]:
        """The sinks whose table goes back."""
        return frozenset((self.sink, *self.more_sinks))

    def to_json(self) -> dict[str, Any]:
        """A plain document for the ledger."""
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Restore:
        """The restore a ledger document stands for."""
        lists = ("batches", "revived", "undone", "more_sinks")
        return Restore(**{**document, **{name: tuple(document.get(name, ())) for name in lists}})


@dataclass(frozen=True, kw_only=True)
class LedgerState:
    """All batches of one pipeline, oldest first."""

    batches: tuple[BatchEntry, ...] = ()
    generation: int = 0
    events: int = 0
    restoring: tuple[Restore, ...] = ()
    """Restores that began and of which nobody wrote down how they ended."""
    restored: tuple[Restore, ...] = ()
    undoing: tuple[int, ...] = ()
    """Batches that somebody began to undo, and of which nobody wrote down how that ended."""
    undos: tuple[tuple[str, int, int], ...] = ()
    """Every undo there was: the sink, the version of its commit, and the batch."""

    @property
    def next_generation(self) -> int:
        """The number of the next generation; numbers are never used twice."""
        return max((entry.generation for entry in self.batches), default=self.generation) + 1

    @property
    def next_batch(self) -> int:
        """The number of the next batch; numbers are never used twice."""
        taken = (n for one in self.restored for n in one.accept.get("txns", {}).values())
        return max((*(entry.n for entry in self.batches), *taken), default=0) + 1

    def with_batch(self, entry: BatchEntry, events: int) -> LedgerState:
        """The state after one more event, which is about this batch."""
        others = [batch for batch in self.batches if batch.n != entry.n]
        # a new generation begins when its first batch is in, not when somebody tries to load it
        generation = entry.generation if entry.state == DONE else self.generation
        undoing = self.undoing
        if entry.state == DONE and entry.replaces:
            others = [_superseded(batch, entry, self.generation, events) for batch in others]
            undoing = ()
        if entry.state == DONE:
            entry = replace(entry, in_event=events, over=self.generation)
        ordered = tuple(sorted((*others, entry), key=lambda batch: batch.n))
        return replace(self, batches=ordered, generation=generation, events=events, undoing=undoing)

    def batch(self, n: int) -> BatchEntry:
        """The batch with a number."""
        return next(entry for entry in self.batches if entry.n == n)

    @property
    def unfinished(self) -> BatchEntry | None:
        """The newest batch that was planned and of which nothing else was said."""
        return next(iter(self.all_unfinished()), None)

    def all_unfinished(self) -> tuple[BatchEntry, ...]:
        """The batches that were planned and of which nothing else was said, newest first.

        There is more than one where a full refresh was begun over a batch that had landed in
        some of its sinks.
        """
        return tuple(entry for entry in reversed(self.batches) if entry.state == PLANNED)

    def counted(self) -> tuple[BatchEntry, ...]:
        """The batches of this generation whose reading counts, oldest first."""
        return tuple(entry for entry in self._settled() if entry.reads_on)

    def _settled(self) -> tuple[BatchEntry, ...]:
        """The batches of this generation that are in, or were undone on purpose."""
        return tuple(
            entry
            for entry in self.batches
            if entry.state in (DONE, UNDONE) and entry.generation == self.generation
        )

    def outstanding(self) -> tuple[BatchEntry, ...]:
        """Batches of this generation that a restore took out and nothing has brought back."""
        return tuple(entry for entry in self.lost() if entry.generation == self.generation)

    def lost(self) -> tuple[BatchEntry, ...]:
        """Batches of any generation that a restore took out and nothing has brought back."""
        return tuple(
            entry
            for entry in self.batches
            if entry.state == REVERTED and entry.reads_on and not self._is_back(entry)
        )

    def _is_back(self, entry: BatchEntry) -> bool:
        """Whether every sink that had lost a batch has its rows again."""
        return not self.lacking(entry)

    def lacking(self, entry: BatchEntry) -> frozenset[str]:
        """The sinks that a restore took a batch out of, and that nothing brought it back to.

        What was brought back and then undone is out on purpose.
        """
        later = entry.reverted_by
        again = {e.n for e in self.counted() if e.first_event > later or entry.n in e.covers}
        back = [e for e in self.batches if e.n in again]
        back += [e for e in self._settled() if {entry.n, *again} & set(e.covers)]
        return entry.reverted - {sink.name for other in back for sink in other.sinks}

    def holes(self) -> tuple[BatchEntry, ...]:
        """Outstanding batches before one that counts: reading on would pass them by.

        Files are known one by one, so those that no sink has are simply found again.
        """
        last = max((entry.n for entry in self.counted()), default=0)
        return tuple(
            entry
            for entry in self.outstanding()
            if entry.n < last and (entry.kept or not _reads_files_only(entry))
        )

    def half_out(self) -> tuple[BatchEntry, ...]:
        """Replays, refreshes and undone batches that some sinks have and others have not.

        What they took out of the quarantine belongs to all sinks alike, so that these must agree.
        """
        return tuple(
            entry
            for entry in self.batches
            if entry.generation >= self.generation and entry.kept
            if entry.undone or (entry.reverted and (entry.replaces or entry.replay is not None))
        )

    def read_so_far(self, source: str) -> Bounds | None:
        """All that the batches of this generation read of a source, as one; None for nothing."""
        read = [entry for entry in self.counted() if source in entry.bounds]
        apart = (*self.holes(), *self._loaded_again())
        holes = [entry for entry in apart if source in entry.bounds]
        parts = (*holes, *read) if read else ()
        return read_together([(one.bounds[source], one.state == UNDONE) for one in parts])

    def _loaded_again(self) -> tuple[BatchEntry, ...]:
        """Batches that a restore took out and a backfill has brought back: they count as read."""
        covered = {n for entry in self._settled() for n in entry.covers}
        return tuple(
            entry
            for entry in self.batches
            if entry.state == REVERTED and entry.generation == self.generation
            if entry.n in covered and entry.reads_on and self._is_back(entry)
        )

    def missed_by(self, sink: str) -> tuple[BatchEntry, ...]:
        """Batches and replays that were loaded while the pipeline lacked a sink, oldest first.

        Only those after the last one that it got: what it missed before, somebody has decided.
        """
        found: list[BatchEntry] = []
        for entry in reversed(self.done()):
            has_it = entry.sink(sink) is not None
            if has_it and (entry.reads_on or entry.backfill):
                break
            if not has_it and not entry.backfill:
                found.append(entry)
        return tuple(reversed(found))

    def is_new(self, sink: str) -> bool:
        """Whether no batch of this generation was ever loaded into a sink."""
        return all(entry.sink(sink) is None for entry in self.done())

    def is_stale(self, sink: str) -> bool:
        """Whether a sink holds only what was loaded before a full refresh that it missed."""
        return self.is_new(sink) and any(
            found.committed or entry.superseded
            for entry in self.batches
            if entry.generation < self.generation
            if (found := entry.sink(sink)) is not None
        )

    def committed(self, sink: str) -> tuple[BatchEntry, ...]:
        """The batches of this generation that made a commit in a sink, oldest first."""
        return tuple(
            entry
            for entry in self.batches
            if entry.generation == self.generation
            if (found := entry.sink(sink)) is not None and found.committed
        )

    def same_reads(self, entry: BatchEntry) -> tuple[BatchEntry, ...]:
        """Older batches of this generation that read the very same in the very same way."""
        return tuple(
            other
            for other in self.loaded()
            if other.generation == entry.generation and other.n < entry.n
            if other.spec == entry.spec and same_bounds(other.bounds, entry.bounds)
        )

    def parked(self) -> tuple[tuple[BatchEntry, SinkEntry], ...]:
        """Batches that wait to be committed to a sink, oldest first."""
        return tuple((entry, sink) for entry in self.done() for sink in entry.sinks if sink.parked)

    def loaded(self) -> tuple[BatchEntry, ...]:
        """Batches of this generation that are done and read the sources, oldest first."""
        return tuple(entry for entry in self.done() if entry.reads_on)

    def done(self) -> tuple[BatchEntry, ...]:
        """Batches of this generation that are done, oldest first."""
        return tuple(
            entry
            for entry in self.batches
            if entry.state == DONE and entry.generation == self.generation
        )


def _reads_files_only(entry: BatchEntry) -> bool:
    return all(bounds.kind == FILES for bounds in entry.bounds.values())


def _superseded(batch: BatchEntry, refresh: BatchEntry, generation: int, event: int) -> BatchEntry:
    """A batch of another generation: its slice goes, and nobody will finish what is unfinished."""
    if batch.generation > generation and batch.kept:
        return replace(batch, left_over=True)
    if batch.has_slice(generation) and batch.n != refresh.n:
        before = refresh.quarantine_version
        batch = replace(batch, quarantine_before=before, out_event=event)
    is_left = batch.state == PLANNED and batch.generation != refresh.generation
    return replace(batch, state=ABANDONED, superseded=True) if is_left else batch


def after_loading(state: LedgerState, n: int, document: Mapping[str, Any]) -> LedgerState:
    """The state after a parked batch was committed to one sink."""

    def loaded(sink: SinkEntry) -> SinkEntry:
        if sink.name != document["name"]:
            return sink
        return replace(sink, **{**document, "landed": True, "parked": ""})

    entry = state.batch(n)
    return _with(state, replace(entry, sinks=tuple(map(loaded, entry.sinks))))


def after_undo(
    state: LedgerState, kind: str, n: int, detail: Mapping[str, Any], event: int
) -> LedgerState:
    """The state after an undo began, ended, or was found not to have happened."""
    others = tuple(one for one in state.undoing if one != n)
    entry = state.batch(n)
    if kind == UNDOING:
        before = detail.get("quarantine_version")
        begun = replace(entry, undo_event=event, quarantine_before=before, out_event=event)
        return _with(replace(state, undoing=(*others, n)), begun)
    if kind == NOT_UNDONE:
        return replace(state, undoing=others)
    everywhere = {sink.name: None for sink in entry.sinks}
    versions: dict[str, int | None] = detail.get("versions", everywhere)
    made = tuple((sink, at, n) for sink, at in versions.items() if at is not None)
    sinks = tuple(replace(s, parked="") if s.name in versions else s for s in entry.sinks)
    ended = _settled(replace(entry, undone={**entry.undone, **versions}, sinks=sinks))
    if "versions" not in detail:
        ended = replace(ended, state=UNDONE)
    return _with(replace(state, undoing=others, undos=(*state.undos, *made)), ended)


def after_restore(state: LedgerState, kind: str, restore: Restore, event: int) -> LedgerState:
    """The state after a restore began, ended, or was found not to have happened."""
    open_ones = tuple(r for r in state.restoring if r.restore_id != restore.restore_id)
    if kind == RESTORING:
        return replace(state, restoring=(*open_ones, restore))
    state = replace(state, restoring=open_ones)
    if kind == NOT_RESTORED:
        return state
    batches = (_restored(entry, restore, event) for entry in state.batches)
    pairs = zip(state.batches, batches, strict=True)
    after = replace(
        state,
        batches=tuple(_with_slice(old, new, state, restore, event) for old, new in pairs),
        restored=(*state.restored, restore),
        generation=restore.generation,
    )
    if not restore.accept:
        return after
    from deltaworks.runtime.ledger.table_contents import with_accepted

    return with_accepted(after, restore, event)


def _with_slice(
    old: BatchEntry, new: BatchEntry, state: LedgerState, restore: Restore, event: int
) -> BatchEntry:
    """Where the slice of the quarantine is that goes with a batch, by itself or its generation."""
    goes = new.is_out(restore.generation) and not old.is_out(state.generation)
    if goes or state.generation > restore.generation == new.generation:
        new = _unparked(new, event)  # its folders went then, or with the refresh that goes now
    was, now = old.has_slice(state.generation), new.has_slice(restore.generation)
    if was == now:
        return new
    if now:
        return replace(new, in_event=event)
    return replace(new, quarantine_before=restore.quarantine_version, out_event=event)


def _unparked(entry: BatchEntry, event: int) -> BatchEntry:
    """A batch whose parked rows are gone: it is as if a restore had taken it out there."""
    names = frozenset(sink.name for sink in entry.sinks if sink.parked)
    if not names:
        return entry
    sinks = tuple(replace(sink, parked="") for sink in entry.sinks)
    out = replace(entry, sinks=sinks, reverted=entry.reverted | names, reverted_by=event)
    return _settled(out)


def _restored(entry: BatchEntry, restore: Restore, event: int) -> BatchEntry:
    here, n = restore.sinks, entry.n
    if n not in {*restore.batches, *restore.revived, *restore.undone}:
        return entry
    reverted = entry.reverted - here
    undone = {name: at for name, at in entry.undone.items() if name not in here}
    if n in restore.revived:
        return _settled(replace(entry, reverted=reverted, undone=undone, left_over=False))
    if n in restore.undone:
        undone |= {sink.name: restore.version for sink in entry.sinks if sink.name in here}
        return _settled(replace(entry, reverted=reverted, undone=undone))
    return _settled(replace(entry, reverted=reverted | here, undone=undone, reverted_by=event))


def _settled(entry: BatchEntry) -> BatchEntry:
    """The batch with the state that its sinks amount to."""
    committed = {sink.name for sink in entry.sinks if sink.committed}
    if entry.reverted:
        return replace(entry, state=REVERTED)
    is_undone = bool(entry.undone) and committed <= set(entry.undone)
    return replace(entry, state=UNDONE if is_undone else DONE)


def _with(state: LedgerState, entry: BatchEntry) -> LedgerState:
    batches = tuple(entry if batch.n == entry.n else batch for batch in state.batches)
    return replace(state, batches=batches)
