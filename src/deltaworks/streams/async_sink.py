"""The epoch sink for asyncio: the loop never waits for storage."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

from deltaworks.model.epochs import EpochCommit
from deltaworks.streams.sink import EpochSink


class AsyncEpochSink:
    """A sink whose waiting happens on threads.

    Example::

        async with AsyncEpochSink(project.stream("events", writer_id="ingest-1")) as sink:
            await sink.write(batch)
            await sink.commit_epoch(42)
    """

    def __init__(self, sink: EpochSink[Any]) -> None:
        self._sink = sink

    @property
    def last_committed_epoch(self) -> int | None:
        """The last epoch that is in the table; None when there is none yet."""
        return self._sink.last_committed_epoch

    async def write(self, batch: Any) -> None:
        """Take rows for the next epoch; others go on while the buffer is full.

        Cancelled, it has taken none of them: rows go into the buffer at once and as a whole, and
        only on the loop. The table may have got columns that are new in them.
        """
        rows = await asyncio.to_thread(self._sink.fitted, batch)
        while not self._sink.take(rows):
            await asyncio.to_thread(self._sink.wait_for_room, rows)

    async def commit_epoch(self, epoch: int) -> EpochCommit:
        """Make everything written since the last epoch visible, in one commit."""
        return await asyncio.to_thread(self._sink.commit_epoch, epoch)

    async def close(self) -> int:
        """Stop; answers how many rows were never committed."""
        return await asyncio.to_thread(self._sink.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
