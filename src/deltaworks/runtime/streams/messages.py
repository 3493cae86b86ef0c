"""A topic as a stream: ranges of its offsets become epochs of a table, without a JVM.

The range of an epoch is written down before it is committed. Whoever starts again goes on after
the range of the last epoch that the table has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from deltaworks.contracts.source import CanStream
from deltaworks.engines.deltars.event_table.table import EventTable, event_schema
from deltaworks.errors import GuardError
from deltaworks.model.batch import Bounds
from deltaworks.model.epochs import EpochCommit
from deltaworks.model.table_ref import OWN_FOLDER
from deltaworks.runtime.environment import RunEnv
from deltaworks.streams.identity import Writer, plan_mark
from deltaworks.streams.sink import EpochSink

_COLUMNS = (("writer", "text"), ("epoch", "number"), ("at", "time"), ("bounds", "text"))


def _book(place: RunEnv) -> EventTable:
    location = f"{place.config.warehouse}/{OWN_FOLDER}/message_streams"
    return EventTable(location, event_schema(_COLUMNS), stores=place.config.stores)


def pages(place: RunEnv, table_id: str) -> list[dict[str, Any]]:
    """What was planned for all epochs of a table."""
    return [row for row in _book(place).read() if f":{table_id}:" in row["writer"]]


@dataclass(frozen=True)
class OffsetsTable:
    """Which offsets the epochs of a writer have read."""

    table: EventTable
    writer: Writer

    @staticmethod
    def open(place: RunEnv, sink: EpochSink[Any]) -> OffsetsTable:
        """The book of the warehouse, at one writer's pages."""
        return OffsetsTable(_book(place), sink.writer)

    def plan(self, epoch: int, bounds: Bounds, at: Any) -> int:
        """Write down what an epoch reads; the table does not have it yet. Answers its mark."""
        text = json.dumps(bounds.to_json())
        self.table.append({"writer": self.writer.name, "epoch": epoch, "at": at, "bounds": text})
        self.table.compact()
        return plan_mark(text)

    def read_so_far(self, last: int | None, mark: int | None) -> Bounds | None:
        """The range of the last epoch that the table has, by the mark of its plan.

        Without one, of an earlier version, what was planned last is what landed.
        """
        if last is None:
            return None
        pages = (row for row in self.table.read() if self.writer.is_called(row["writer"]))
        rows = [
            row
            for row in pages
            if int(row["epoch"]) == last and mark in (None, plan_mark(row["bounds"]))
        ]
        if not rows:
            raise unknown_epochs(self.writer, last)
        newest = max(rows, key=lambda row: row["at"])
        return Bounds.from_json(json.loads(newest["bounds"]))


def unknown_epochs(writer: Writer, last: int) -> GuardError:
    """The error for epochs of which this project does not know what they read."""
    return GuardError(
        f'"{writer.stream}" has epoch {last} of writer "{writer.writer_id}", and this project has '
        "no record of what it read: everything would land once more",
        hint="stream under a writer id that nobody else uses for this table",
    )


def _fine(_: Bounds) -> None:
    """Find nothing wrong."""


def stream_messages(
    source: CanStream,
    sink: EpochSink[Any],
    place: RunEnv,
    *,
    start: Bounds | None = None,
    look: Callable[[Bounds], None] = _fine,
) -> Iterator[EpochCommit]:
    """Stream all that the topic holds when this begins; each message lands once.

    The first epoch of a writer begins at `start`. Whoever `look`s at the bounds may refuse them.
    """
    book, project_ctx = OffsetsTable.open(place, sink), place.project_ctx
    columns, left, first = sink.schema, 1, True
    since = book.read_so_far(sink.last_committed_epoch, sink.last_plan) or start
    while left > 0:
        bounds = source.bounds(project_ctx, since)
        if bounds.nothing:
            break
        look(bounds)
        left, first = bounds.waiting if first else left - bounds.messages, False
        epoch = (sink.last_committed_epoch or 0) + 1
        sink.planned(book.plan(epoch, bounds, place.clock.now()))
        for batch in source.arrow_batches(project_ctx, bounds, columns):
            sink.write(batch)
        yield sink.commit_epoch(epoch)
        since = bounds
