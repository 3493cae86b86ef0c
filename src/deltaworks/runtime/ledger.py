"""The ledger: every batch is planned here before it is read, and done here after it landed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from deltaworks.engines.deltars.events import EventTable, event_schema
from deltaworks.errors import CommitConflict, GuardError
from deltaworks.model.batch import Bounds, Replay, same_bounds
from deltaworks.model.commit import CommitInfo, SinkState, Txn
from deltaworks.model.table_ref import OWN_FOLDER

PLANNED, DONE, ABANDONED = "planned", "done", "abandoned"
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


@dataclass(frozen=True, kw_only=True)
class LedgerState:
    """All batches of one pipeline, oldest first."""

    batches: tuple[BatchEntry, ...] = ()
    generation: int = 0
    events: int = 0

    @property
    def next_batch(self) -> int:
        """The number of the next batch; numbers are never used twice."""
        return max((entry.n for entry in self.batches), default=0) + 1

    def with_batch(self, entry: BatchEntry, events: int) -> LedgerState:
        """The state after one more event, which is about this batch."""
        others = tuple(batch for batch in self.batches if batch.n != entry.n)
        generation = max(self.generation, entry.generation)
        return LedgerState(batches=(*others, entry), generation=generation, events=events)

    @property
    def unfinished(self) -> BatchEntry | None:
        """The batch that was planned last, if nothing else was said of it."""
        last = self.batches[-1] if self.batches else None
        return last if last is not None and last.state == PLANNED else None

    def read_so_far(self, source: str) -> Bounds | None:
        """All that the batches of this generation read of a source, as one; None for nothing."""
        taken = [entry.bounds[source] for entry in self.loaded() if source in entry.bounds]
        if not taken:
            return None
        last = taken[-1]
        same = [bounds for bounds in taken if bounds.identity == last.identity]
        files = {stamp.path: stamp for bounds in same for stamp in bounds.files}
        return replace(last, files=tuple(files.values()))

    def twin_of(self, entry: BatchEntry) -> BatchEntry | None:
        """A batch of this generation that is done and read the very same in the very same way."""
        for other in self.loaded():
            if other.spec == entry.spec and same_bounds(other.bounds, entry.bounds):
                return other
        return None

    def loaded(self) -> tuple[BatchEntry, ...]:
        """Batches of this generation that are done and read the sources, oldest first."""
        return tuple(entry for entry in self.done() if entry.replay is None)

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
    def open(warehouse: str, *, project: str, pipeline: str) -> Ledger:
        """The ledger of a warehouse, from one pipeline's point of view."""
        location = f"{warehouse}/{OWN_FOLDER}/batches"
        return Ledger(EventTable(location, event_schema(_COLUMNS)), project, pipeline)

    def app_id(self, sink: str, generation: int) -> str:
        """Who commits: no other ledger, project, pipeline or sink has this name."""
        parts = (self.table.table_id, self.project, self.pipeline, sink, str(generation))
        return ":".join(("deltaworks", *parts))

    def state(self) -> LedgerState:
        """What happened so far."""
        if not self.table.exists():
            return LedgerState()
        rows = self.table.read(project=self.project, pipeline=self.pipeline)
        return replay(sorted(rows, key=lambda row: int(row["event"])))

    def planned(self, entry: BatchEntry, state: LedgerState) -> LedgerState:
        """Record what a batch will read and what stands at its sinks."""
        detail = {
            "sources": {name: bounds.to_json() for name, bounds in entry.bounds.items()},
            "sinks": [_sink_document(sink) for sink in entry.sinks],
            "replaces": entry.replaces,
            "replay": entry.replay.to_json() if entry.replay else None,
        }
        events = self._write(PLANNED, entry, state, detail)
        return state.with_batch(entry, events)

    def done(
        self, entry: BatchEntry, state: LedgerState, landed: Mapping[str, CommitInfo], at: datetime
    ) -> LedgerState:
        """Record that a batch landed everywhere."""
        detail = {
            "sinks": [
                {"name": name, "committed": info.committed, "version": info.version}
                for name, info in landed.items()
            ]
        }
        events = self._write(DONE, replace(entry, at=at), state, detail)
        self.table.compact()
        return state.with_batch(replace(entry, state=DONE, at=at), events)

    def abandoned(self, entry: BatchEntry, state: LedgerState, at: datetime) -> LedgerState:
        """Record that a batch will never land."""
        events = self._write(ABANDONED, replace(entry, at=at), state, {})
        return state.with_batch(replace(entry, state=ABANDONED, at=at), events)

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
    batches: dict[int, BatchEntry] = {}
    generation, events = 0, 0
    for row in rows:
        detail = json.loads(row["detail"])
        events, generation = int(row["event"]), max(generation, int(row["generation"]))
        n = int(row["batch"])
        if row["kind"] == PLANNED:
            batches[n] = _planned_entry(row, detail)
        elif n in batches:
            batches[n] = _ended_entry(batches[n], row, detail)
    return LedgerState(batches=tuple(batches.values()), generation=generation, events=events)


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
    )


def _ended_entry(
    entry: BatchEntry, row: Mapping[str, Any], detail: Mapping[str, Any]
) -> BatchEntry:
    landed = {sink["name"]: sink for sink in detail.get("sinks", ())}
    sinks = tuple(
        replace(
            sink,
            landed=sink.name in landed,
            committed=bool(landed.get(sink.name, {}).get("committed")),
            version=landed.get(sink.name, {}).get("version"),
        )
        for sink in entry.sinks
    )
    return replace(entry, state=row["kind"], sinks=sinks, at=row["at"])
