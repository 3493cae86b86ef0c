"""The ledger: every batch is planned here before it is read, and done here after it landed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.event_table.table import EventTable, event_schema
from deltaworks.errors import CommitConflict, ConfigError, GuardError
from deltaworks.model.batch import Bounds, Pin, Replay
from deltaworks.model.commit import CommitInfo, SinkState, Txn
from deltaworks.model.table_ref import OWN_FOLDER, is_url
from deltaworks.redact import holds_secret
from deltaworks.runtime.ledger.parking import parked_here
from deltaworks.runtime.ledger.state import (
    ABANDONED,
    DONE,
    LOADED_LATER,
    NOT_RESTORED,
    NOT_UNDONE,
    PLANNED,
    RESTORED,
    RESTORING,
    UNDOING,
    UNDONE,
    BatchEntry,
    LedgerState,
    Restore,
    SinkEntry,
    after_loading,
    after_restore,
    after_undo,
)

_HERE, _BESIDE = "./", "../"
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


@dataclass(frozen=True)
class Ledger:
    """The ledger of one pipeline of one project."""

    table: EventTable
    project: str
    pipeline: str
    warehouse: str = ""

    @staticmethod
    def open(warehouse: str, *, project: str, pipeline: str, stores: Stores = NO_STORES) -> Ledger:
        """The ledger of a warehouse, from one pipeline's point of view."""
        location = f"{warehouse}/{OWN_FOLDER}/batches"
        table = EventTable(location, event_schema(_COLUMNS), stores=stores)
        return Ledger(table, project, pipeline, warehouse)

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
        found = replay(sorted(rows, key=lambda row: int(row["event"])))
        return self._here(found) if self.warehouse else found

    def _here(self, state: LedgerState) -> LedgerState:
        """The state with the places that its batches and restores have now."""

        def here(entry: BatchEntry) -> BatchEntry:
            pins = {_from_ledger(place, self.warehouse): pin for place, pin in entry.pins.items()}
            return replace(entry, pins=pins)

        restoring = tuple(
            replace(restore, location=_from_ledger(restore.location, self.warehouse))
            for restore in state.restoring
        )
        batches = tuple(map(here, state.batches))
        found = replace(state, batches=batches, restoring=restoring)
        return parked_here(found, self.warehouse)

    def planned(self, entry: BatchEntry, state: LedgerState) -> LedgerState:
        """Record what a batch will read and what stands at its sinks."""
        detail = {
            "sources": {name: bounds.to_json() for name, bounds in entry.bounds.items()},
            "sinks": [_sink_document(sink) for sink in entry.sinks],
            "replaces": entry.replaces,
            "replay": entry.replay.to_json() if entry.replay else None,
            "backfill": entry.backfill,
            "covers": list(entry.covers),
            "judges": entry.judges,
            "supersedes": list(entry.supersedes),
            "quarantine_version": entry.quarantine_version,
            "token": entry.token,
            "pins": {
                _to_ledger(place, self.warehouse): asdict(pin) for place, pin in entry.pins.items()
            },
        }
        _refuse_secrets(entry, detail)
        events = self._write(PLANNED, entry, state, detail)
        return state.with_batch(replace(entry, first_event=events), events)

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
        return after_loading(replace(state, events=events), entry.n, document)

    def undo(
        self,
        kind: str,
        entry: BatchEntry,
        state: LedgerState,
        at: datetime,
        *,
        detail: Mapping[str, Any] | None = None,
    ) -> LedgerState:
        """Record how far the undoing of a batch got."""
        document = dict(detail or {})
        events = self._write(kind, replace(entry, at=at), state, document)
        return after_undo(replace(state, events=events), kind, entry.n, document, events)

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
        place = _to_ledger(restore.location, self.warehouse)
        events = self._write(kind, entry, state, {**restore.to_json(), "location": place})
        return after_restore(replace(state, events=events), kind, restore, events)

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


def _to_ledger(place: str, warehouse: str) -> str:
    """A place as the ledger keeps it: the way from the warehouse, so that a project may move.

    What lies neither in the warehouse nor beside it stays as it is.
    """
    if warehouse and place.startswith(f"{warehouse}/"):
        return _HERE + place.removeprefix(f"{warehouse}/")
    beside = _beside(warehouse)
    if warehouse and not is_url(warehouse) and place.startswith(f"{beside}/"):
        return _BESIDE + place.removeprefix(f"{beside}/")
    return place


def _from_ledger(place: str, warehouse: str) -> str:
    """The place that the ledger means, where the warehouse is now."""
    if place.startswith(_BESIDE):
        return f"{_beside(warehouse)}/{place.removeprefix(_BESIDE)}"
    if place.startswith(_HERE):
        return f"{warehouse}/{place.removeprefix(_HERE)}"
    return place


def _beside(warehouse: str) -> str:
    return warehouse.rpartition("/")[0]


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
    return SinkEntry(
        name=name,
        app_id=app_id,
        identity=found.identity,
        txn_found=found.txn_version,
        version_found=found.version,
    )


def _sink_document(sink: SinkEntry) -> dict[str, Any]:
    return {
        "name": sink.name,
        "app_id": sink.app_id,
        "identity": sink.identity,
        "txn_found": sink.txn_found,
        "version_found": sink.version_found,
    }


def replay(rows: Iterable[Mapping[str, Any]]) -> LedgerState:
    """The state that events, in order, amount to."""
    state = LedgerState()
    for row in rows:
        detail, kind, n = json.loads(row["detail"]), str(row["kind"]), int(row["batch"])
        state = replace(state, events=int(row["event"]))
        if kind in (RESTORING, RESTORED, NOT_RESTORED):
            state = after_restore(state, kind, Restore.from_json(detail), state.events)
        elif kind == LOADED_LATER:
            state = after_loading(state, n, detail)
        elif kind in (UNDOING, UNDONE, NOT_UNDONE):
            state = after_undo(state, kind, n, detail, state.events)
        elif kind == PLANNED:
            state = state.with_batch(_planned_entry(row, detail), state.events)
        else:
            for planned in (entry for entry in state.batches if entry.n == n):
                state = state.with_batch(_ended_entry(planned, row, detail), state.events)
    return state


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
        covers=tuple(detail.get("covers", ())),
        judges=bool(detail.get("judges")),
        supersedes=tuple(detail.get("supersedes", ())),
        quarantine_version=detail.get("quarantine_version"),
        token=detail.get("token", ""),
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
