"""The ledger: every batch is planned here before it is read, and done here after it landed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.engines.deltars.events import EventTable, event_schema
from deltaworks.errors import CommitConflict, ConfigError, GuardError
from deltaworks.model.batch import Bounds, Pin, Replay, same_bounds
from deltaworks.model.commit import CommitInfo, SinkState, Txn
from deltaworks.model.table_ref import OWN_FOLDER
from deltaworks.redact import holds_secret

PLANNED, DONE, ABANDONED = "planned", "done", "abandoned"
LOADED_LATER = "loaded_later"
"""A batch that was parked has been committed."""
UNDOING, UNDONE, NOT_UNDONE = "undoing", "undone", "not_undone"
REVERTED = "reverted"
"""A batch whose rows a restore took out of a sink again."""
RESTORING, RESTORED, NOT_RESTORED = "restoring", "restored", "not_restored"
_COLUMNS = (
    ("project", "text"),
    ("pipeline", "text"),
    ("event", "number"),
    ("at", "time"),
    ("kind", "text"),
    ("batch", "number"),
    ("batch_id", "text"),
    ("run_id", "text"),
    ("spec", "text"),
    ("generation", "number"),
    ("detail", "text"),
)


@dataclass(frozen=True, kw_only=True)
class SinkEntry:
    """A sink as the plan found it, and how the batch landed there."""

    name: str
    app_id: str
    identity: str
    txn_found: int | None
    landed: bool = False
    committed: bool = False
    version: int | None = None
    parked: str = ""
    """The folder with the rows, while they wait to be committed."""


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
    first_event: int = 0
    replaces: bool = False
    replay: Replay | None = None
    """The rows it brings back from the quarantine, if that is where it reads."""
    backfill: bool = False
    """Whether it brings a new sink what others have; what was read does not change by it."""
    reverted: frozenset[str] = frozenset()
    """The sinks that a restore took it out of."""
    pins: Mapping[str, Pin] = field(default_factory=dict)
    """The tables that checks look into, by location; no reason to read the sources once more."""

    @property
    def reads_on(self) -> bool:
        """Whether it goes on in the sources, so that the next one starts where it ended."""
        return self.replay is None and not self.backfill


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
    version: int | None = None
    """The commit that did it, once it is known."""

    def to_json(self) -> dict[str, Any]:
        """A plain document for the ledger."""
        return {**asdict(self), "batches": list(self.batches)}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Restore:
        """The restore a ledger document stands for."""
        return Restore(**{**document, "batches": tuple(document["batches"])})


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

    @property
    def next_generation(self) -> int:
        """The number of the next generation; numbers are never used twice."""
        return max((entry.generation for entry in self.batches), default=self.generation) + 1

    @property
    def next_batch(self) -> int:
        """The number of the next batch; numbers are never used twice."""
        return max((entry.n for entry in self.batches), default=0) + 1

    def with_batch(self, entry: BatchEntry, events: int) -> LedgerState:
        """The state after one more event, which is about this batch."""
        others = tuple(batch for batch in self.batches if batch.n != entry.n)
        # a new generation begins when its first batch is in, not when somebody tries to load it
        generation = entry.generation if entry.state == DONE else self.generation
        return replace(self, batches=(*others, entry), generation=generation, events=events)

    @property
    def unfinished(self) -> BatchEntry | None:
        """The batch that was planned last, if nothing else was said of it."""
        last = self.batches[-1] if self.batches else None
        return last if last is not None and last.state == PLANNED else None

    def read_so_far(self, source: str) -> Bounds | None:
        """All that the batches of this generation read of a source, as one; None for nothing."""
        read = [
            entry
            for entry in self.batches
            if entry.state in (DONE, UNDONE) and entry.generation == self.generation
            if entry.reads_on and source in entry.bounds
        ]
        if not read:
            return None
        last = read[-1].bounds[source]
        same = [entry for entry in read if entry.bounds[source].identity == last.identity]
        files = {stamp.path: stamp for entry in same for stamp in entry.bounds[source].files}
        undone = [
            stamp.path
            for entry in same
            if entry.state == UNDONE
            for stamp in entry.bounds[source].files
        ]
        position = {**last.position, "undone": undone} if undone else last.position
        return replace(last, files=tuple(files.values()), position=position)

    def twin_of(self, entry: BatchEntry) -> BatchEntry | None:
        """A batch of this generation that is done and read the very same in the very same way."""
        for other in self.loaded():
            same = other.spec == entry.spec and same_bounds(other.bounds, entry.bounds)
            if same and other.generation == entry.generation:
                return other
        return None

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


@dataclass(frozen=True)
class Ledger:
    """The ledger of one pipeline of one project."""

    table: EventTable
    project: str
    pipeline: str

    @staticmethod
    def open(warehouse: str, *, project: str, pipeline: str, stores: Stores = NO_STORES) -> Ledger:
        """The ledger of a warehouse, from one pipeline's point of view."""
        location = f"{warehouse}/{OWN_FOLDER}/batches"
        table = EventTable(location, event_schema(_COLUMNS), stores=stores)
        return Ledger(table, project, pipeline)

    def app_id(self, sink: str, generation: int) -> str:
        """Who commits: no other ledger, project, pipeline or sink has this name."""
        parts = (self.table.table_id, self.project, self.pipeline, sink, str(generation))
        return ":".join(("deltaworks", *parts))

    @staticmethod
    def everyone(warehouse: str, stores: Stores = NO_STORES) -> list[Ledger]:
        """The ledgers of every pipeline of every project that ever ran here."""
        table = Ledger.open(warehouse, project="", pipeline="", stores=stores).table
        names = sorted({(row["project"], row["pipeline"]) for row in table.read()})
        return [
            Ledger.open(warehouse, project=one, pipeline=two, stores=stores) for one, two in names
        ]

    def state(self) -> LedgerState:
        """What happened so far."""
        rows = self.table.read(project=self.project, pipeline=self.pipeline)
        return replay(sorted(rows, key=lambda row: int(row["event"])))

    def planned(self, entry: BatchEntry, state: LedgerState) -> LedgerState:
        """Record what a batch will read and what stands at its sinks."""
        detail = {
            "sources": {name: bounds.to_json() for name, bounds in entry.bounds.items()},
            "sinks": [_sink_document(sink) for sink in entry.sinks],
            "replaces": entry.replaces,
            "replay": entry.replay.to_json() if entry.replay else None,
            "backfill": entry.backfill,
            "pins": {place: asdict(pin) for place, pin in entry.pins.items()},
        }
        _refuse_secrets(entry, detail)
        events = self._write(PLANNED, entry, state, detail)
        return state.with_batch(entry, events)

    def done(
        self, entry: BatchEntry, state: LedgerState, sinks: Sequence[SinkEntry], at: datetime
    ) -> LedgerState:
        """Record that a batch landed everywhere, and in which tables and versions."""
        detail = {"sinks": [_landed_document(sink) for sink in sinks]}
        ended = replace(entry, state=DONE, sinks=tuple(sinks), at=at)
        events = self._write(DONE, ended, state, detail)
        self.table.compact()
        return state.with_batch(ended, events)

    def abandoned(self, entry: BatchEntry, state: LedgerState, at: datetime) -> LedgerState:
        """Record that a batch will never land."""
        events = self._write(ABANDONED, replace(entry, at=at), state, {})
        return state.with_batch(replace(entry, state=ABANDONED, at=at), events)

    def loaded_later(
        self, entry: BatchEntry, sink: SinkEntry, state: LedgerState, at: datetime
    ) -> LedgerState:
        """Record that a parked batch has been committed to a sink."""
        document = _landed_document(sink)
        events = self._write(LOADED_LATER, replace(entry, at=at), state, document)
        return _after_loading(replace(state, events=events), entry.n, document)

    def undo(self, kind: str, entry: BatchEntry, state: LedgerState, at: datetime) -> LedgerState:
        """Record how far the undoing of a batch got."""
        events = self._write(kind, replace(entry, at=at), state, {})
        return _after_undo(replace(state, events=events), kind, entry.n)

    def restore(self, kind: str, restore: Restore, state: LedgerState, at: datetime) -> LedgerState:
        """Record how far a restore of one of the pipeline's tables got."""
        entry = BatchEntry(
            n=0,
            batch_id=None,
            run_id=restore.restore_id,
            spec="",
            generation=state.generation,
            state=kind,
            bounds={},
            sinks=(),
            at=at,
        )
        events = self._write(kind, entry, state, restore.to_json())
        return _after_restore(replace(state, events=events), kind, restore)

    def _write(
        self, kind: str, entry: BatchEntry, state: LedgerState, detail: Mapping[str, Any]
    ) -> int:
        number = state.events + 1
        row = {
            "project": self.project,
            "pipeline": self.pipeline,
            "event": number,
            "at": entry.at,
            "kind": kind,
            "batch": entry.n,
            "batch_id": entry.batch_id,
            "run_id": entry.run_id,
            "spec": entry.spec,
            "generation": entry.generation,
            "detail": json.dumps(detail),
        }
        txn = Txn(f"ledger/{self.project}/{self.pipeline}", number)
        try:
            self.table.append(row, txn=txn)
        except CommitConflict as conflict:
            raise GuardError(
                f'another run of pipeline "{self.pipeline}" is writing the ledger',
                hint="wait for it, then run again",
            ) from conflict
        return number


def _refuse_secrets(entry: BatchEntry, detail: Mapping[str, Any]) -> None:
    """What stands here is compared with later, so a secret in it cannot just be left out."""
    if holds_secret(json.dumps([detail, entry.batch_id])):
        raise ConfigError(
            "a path, a query, a name or the id of this batch holds a secret, "
            "and the ledger would keep it",
            hint="take the secret out, and name a credential instead",
        )


def landed_sink(sink: SinkEntry, info: CommitInfo, found: SinkState) -> SinkEntry:
    """A sink as it stands after the batch."""
    return replace(
        sink,
        identity=found.identity,
        landed=not info.parked,
        committed=info.committed,
        version=info.version,
        parked=info.parked,
    )


def _landed_document(sink: SinkEntry) -> dict[str, Any]:
    return {
        "name": sink.name,
        "identity": sink.identity,
        "committed": sink.committed,
        "version": sink.version,
        "parked": sink.parked,
    }


def planned_sink(name: str, app_id: str, found: SinkState) -> SinkEntry:
    """A sink as it stands before the batch."""
    return SinkEntry(name=name, app_id=app_id, identity=found.identity, txn_found=found.txn_version)


def _sink_document(sink: SinkEntry) -> dict[str, Any]:
    return {
        "name": sink.name,
        "app_id": sink.app_id,
        "identity": sink.identity,
        "txn_found": sink.txn_found,
    }


def replay(rows: Iterable[Mapping[str, Any]]) -> LedgerState:
    """The state that events, in order, amount to."""
    state = LedgerState()
    for row in rows:
        detail, kind, n = json.loads(row["detail"]), str(row["kind"]), int(row["batch"])
        state = replace(state, events=int(row["event"]))
        if kind in (RESTORING, RESTORED, NOT_RESTORED):
            state = _after_restore(state, kind, Restore.from_json(detail))
        elif kind == LOADED_LATER:
            state = _after_loading(state, n, detail)
        elif kind in (UNDOING, UNDONE, NOT_UNDONE):
            state = _after_undo(state, kind, n)
        elif kind == PLANNED:
            state = state.with_batch(_planned_entry(row, detail), state.events)
        else:
            for planned in (entry for entry in state.batches if entry.n == n):
                state = state.with_batch(_ended_entry(planned, row, detail), state.events)
    return state


def _after_loading(state: LedgerState, n: int, document: Mapping[str, Any]) -> LedgerState:
    def loaded(sink: SinkEntry) -> SinkEntry:
        if sink.name != document["name"]:
            return sink
        return replace(sink, **{**document, "landed": True, "parked": ""})

    batches = tuple(
        replace(entry, sinks=tuple(map(loaded, entry.sinks))) if entry.n == n else entry
        for entry in state.batches
    )
    return replace(state, batches=batches)


def _after_undo(state: LedgerState, kind: str, n: int) -> LedgerState:
    others = tuple(one for one in state.undoing if one != n)
    if kind != UNDONE:
        return replace(state, undoing=(*others, n) if kind == UNDOING else others)
    batches = tuple(
        replace(entry, state=UNDONE) if entry.n == n else entry for entry in state.batches
    )
    return replace(state, undoing=others, batches=batches)


def _after_restore(state: LedgerState, kind: str, restore: Restore) -> LedgerState:
    open_ones = tuple(r for r in state.restoring if r.restore_id != restore.restore_id)
    if kind == RESTORING:
        return replace(state, restoring=(*open_ones, restore))
    state = replace(state, restoring=open_ones)
    if kind == NOT_RESTORED:
        return state
    batches = tuple(
        replace(entry, state=REVERTED, reverted=entry.reverted | {restore.sink})
        if entry.n in restore.batches
        else entry
        for entry in state.batches
    )
    restored = (*state.restored, restore)
    return replace(state, batches=batches, restored=restored, generation=restore.generation)


def _planned_entry(row: Mapping[str, Any], detail: Mapping[str, Any]) -> BatchEntry:
    return BatchEntry(
        n=int(row["batch"]),
        batch_id=row["batch_id"],
        run_id=row["run_id"],
        spec=row["spec"],
        generation=int(row["generation"]),
        state=PLANNED,
        bounds={name: Bounds.from_json(doc) for name, doc in detail["sources"].items()},
        sinks=tuple(SinkEntry(**sink) for sink in detail["sinks"]),
        at=row["at"],
        first_event=int(row["event"]),
        replaces=bool(detail.get("replaces")),
        replay=Replay.from_json(detail["replay"]) if detail.get("replay") else None,
        backfill=bool(detail.get("backfill")),
        pins={place: Pin(**pin) for place, pin in detail.get("pins", {}).items()},
    )


def _ended_entry(
    entry: BatchEntry, row: Mapping[str, Any], detail: Mapping[str, Any]
) -> BatchEntry:
    landed = {sink["name"]: sink for sink in detail.get("sinks", ())}
    sinks = tuple(
        replace(
            sink,
            identity=landed.get(sink.name, {}).get("identity") or sink.identity,
            parked=landed.get(sink.name, {}).get("parked", ""),
            landed=sink.name in landed and not landed[sink.name].get("parked"),
            committed=bool(landed.get(sink.name, {}).get("committed")),
            version=landed.get(sink.name, {}).get("version"),
        )
        for sink in entry.sinks
    )
    return replace(entry, state=row["kind"], sinks=sinks, at=row["at"])
