"""The sink in asyncio: the loop turns while storage is slow (S7)."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.engines.deltars.log.actions import DataFile
from deltaworks.engines.deltars.write.data_files import DataFolder
from deltaworks.model.epochs import Limits
from deltaworks.streams.async_sink import AsyncEpochSink
from tests.streams.tables import batch, ids, opened

if TYPE_CHECKING:
    import pytest


def test_epochs_are_written_from_a_loop(tmp_path: Path) -> None:
    async def work() -> int | None:
        async with AsyncEpochSink(opened(tmp_path)) as sink:
            await sink.write(batch(1))
            await sink.commit_epoch(1)
            return sink.last_committed_epoch

    assert asyncio.run(work()) == 1
    assert ids(tmp_path) == [1]


def test_the_loop_goes_on_while_the_buffer_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, write = threading.Event(), DataFolder.write

    def slow(self: DataFolder, *arguments: Any, **options: Any) -> DataFile:
        let_go.wait(10)
        return write(self, *arguments, **options)

    monkeypatch.setattr(DataFolder, "write", slow)

    async def work() -> None:
        limits = Limits(flush_bytes=1, buffer_bytes=10)
        async with AsyncEpochSink(opened(tmp_path, limits=limits)) as sink:
            await sink.write(batch(1))
            full = asyncio.create_task(sink.write(batch(2)))
            for _ in range(20):
                await asyncio.sleep(0.005)
            assert not full.done()
            let_go.set()
            await full
            await sink.commit_epoch(1)

    asyncio.run(work())
    assert ids(tmp_path) == [1, 2]
