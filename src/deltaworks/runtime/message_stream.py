"""A topic as a stream: ranges of its offsets become epochs of a table, without a JVM.

The range of an epoch is written down before it is committed. Whoever starts again goes on after
the range of the last epoch that the table has.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from deltaworks.contracts.source import CanStream
from deltaworks.engines.deltars.events import EventTable, event_schema
from deltaworks.model.batch import Bounds
from deltaworks.model.epochs import EpochCommit
from deltaworks.model.table_ref import OWN_FOLDER
from deltaworks.runtime.workplace import Workplace
from deltaworks.streams.sink import EpochSink

_COLUMNS = (("writer", "text"), ("epoch", "number"), ("at", "time"), ("bounds", "text"))


@dataclass(frozen=True)
class MessageBook:
    """Which offsets the epochs of a writer have read."""

    table: EventTable
    writer: str

    @staticmethod
    def open(place: Workplace, sink: EpochSink[Any]) -> MessageBook:
        """The book of the warehouse, at one writer's pages."""
        location = f"{place.config.warehouse}/{OWN_FOLDER}/message_streams"
        table = EventTable(location, event_schema(_COLUMNS), stores=place.config.stores)
        return MessageBook(table, sink.writer.name)

    def plan(self, epoch: int, bounds: Bounds, at: Any) -> None:
        """Write down what an epoch reads; the table does not have it yet."""
        text = json.dumps(bounds.to_json())
        self.table.append({"writer": self.writer, "epoch": epoch, "at": at, "bounds": text})
        self.table.compact()

    def read_so_far(self, last: int | None) -> Bounds | None:
        """The range of the last epoch that the table has; what was planned last is what landed."""
        if last is None:
            return None
        rows = [row for row in self.table.read(writer=self.writer) if int(row["epoch"]) == last]
        newest = max(rows, key=lambda row: row["at"], default=None)
        return None if newest is None else Bounds.from_json(json.loads(newest["bounds"]))


def stream_messages(
    source: CanStream, sink: EpochSink[Any], place: Workplace
) -> tuple[EpochCommit, ...]:
    """Stream all that the topic holds when this begins; each message lands once."""
    book, site = MessageBook.open(place, sink), place.site
    columns, left = sink.schema, 1
    commits: list[EpochCommit] = []
    since = book.read_so_far(sink.last_committed_epoch)
    while left > 0:
        bounds = source.bounds(site, since)
        if bounds.nothing:
            break
        left = bounds.waiting if not commits else left - bounds.messages
        epoch = (sink.last_committed_epoch or 0) + 1
        book.plan(epoch, bounds, place.clock.now())
        for batch in source.arrow_batches(site, bounds, columns):
            sink.write(batch)
        commits.append(sink.commit_epoch(epoch))
        since = bounds
    return tuple(commits)
