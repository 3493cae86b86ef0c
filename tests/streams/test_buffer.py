"""Rows leave by size, number or age; the caller waits only when the buffer is full (S2, S7)."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltaworks.engines.deltars.log.actions import DataFile
from deltaworks.engines.deltars.write.data_files import DataFolder
from deltaworks.errors import StorageError
from deltaworks.model.epochs import Limits
from deltaworks.streams.buffer import EpochBuffer
from tests.streams.tables import batch, ids, opened, own_files


def eventually(condition: Any) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize(
    "limits",
    [Limits(flush_rows=2), Limits(flush_bytes=20), Limits(flush_seconds=0.05)],
    ids=["rows", "bytes", "age"],
)
def test_rows_are_flushed_in_the_background_and_seen_with_their_epoch(
    tmp_path: Path, limits: Limits
) -> None:
    with opened(tmp_path, limits=limits) as sink:
        sink.write(batch(1, 2))
        eventually(lambda: len(own_files(tmp_path)) == 1)
        assert ids(tmp_path) == []
        sink.write(batch(3, 4))
        eventually(lambda: len(own_files(tmp_path)) == 2)
        eventually(lambda: sink.buffered_bytes == 0)
        assert sink.commit_epoch(1).files == 2
    assert ids(tmp_path) == [1, 2, 3, 4]


class SlowStore:
    """Storage that waits until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.stored: list[int] = []
        self.error: Exception | None = None

    def __call__(self, number: int, tables: Sequence[pa.Table]) -> list[int]:
        self.let_go.wait(10)
        if self.error is not None:
            raise self.error
        self.stored.append(sum(rows.num_rows for rows in tables))
        return [number]


def numbers(n: int) -> pa.Table:
    return pa.table({"id": list(range(n))})


def test_writing_never_waits_below_the_limit_and_memory_is_bounded() -> None:
    store = SlowStore()
    buffer = EpochBuffer(store, Limits(flush_bytes=800, buffer_bytes=2400))
    for _ in range(3):
        buffer.put(numbers(100))  # 800 bytes each; storage stands still
    assert buffer.held_bytes == 2400
    assert not buffer.offer(numbers(100))
    waiting = threading.Thread(target=buffer.put, args=(numbers(100),))
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    assert buffer.held_bytes == 2400
    store.let_go.set()
    waiting.join(5)
    assert not waiting.is_alive()
    assert buffer.offer(numbers(1))
    assert buffer.open_rows == 401
    sealed = buffer.seal()
    assert sorted(buffer.stored(sealed)) == [0, 1, 2, 3, 4]
    assert (sealed.rows, sum(store.stored), buffer.held_bytes) == (401, 401, 0)
    buffer.close()


def test_a_batch_beyond_the_limit_is_taken_alone() -> None:
    store = SlowStore()
    store.let_go.set()
    buffer = EpochBuffer(store, Limits(flush_bytes=10_000, buffer_bytes=100))
    buffer.put(numbers(5))
    buffer.put(numbers(500))
    assert sum(chunk.rows for chunk in buffer.seal().chunks) == 505
    buffer.close()


def test_what_cannot_be_stored_is_told_kept_and_tried_again() -> None:
    store = SlowStore()
    store.let_go.set()
    store.error = StorageError("disk away")
    buffer = EpochBuffer(store, Limits(flush_rows=1, retry_seconds=0.2))
    buffer.put(numbers(1))
    eventually(lambda: buffer._chunks[0].failed)
    with pytest.raises(StorageError, match="disk away"):
        buffer.put(numbers(1))
    sealed = buffer.seal()
    with pytest.raises(StorageError, match="disk away"):
        buffer.stored(sealed)
    store.error = None
    assert buffer.stored(sealed) == (0,)
    buffer.put(numbers(1))
    assert buffer.dropped(buffer.close()) == (1,)


def test_what_was_never_stored_can_be_given_up() -> None:
    store = SlowStore()
    store.let_go.set()
    store.error = StorageError("disk away")
    buffer = EpochBuffer(store, Limits(flush_rows=1, retry_seconds=0))
    buffer.put(numbers(1))
    assert buffer.dropped(buffer.close()) == ()
    assert buffer.held_bytes == 0


def test_an_outage_of_storage_is_waited_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = DataFolder.write, [3]

    def fails(self: DataFolder, *arguments: Any, **options: Any) -> DataFile:
        left[0] -= 1
        if left[0] >= 0:
            raise StorageError("away")
        return write(self, *arguments, **options)

    monkeypatch.setattr(DataFolder, "write", fails)
    with opened(tmp_path, limits=Limits(retry_seconds=10)) as sink:
        sink.write(batch(1))
        assert sink.commit_epoch(1).rows == 1
    assert ids(tmp_path) == [1]


def test_threads_write_into_one_sink(tmp_path: Path) -> None:
    with opened(tmp_path, limits=Limits(flush_rows=7)) as sink:

        def work(start: int) -> None:
            for i in range(50):
                sink.write(batch(start + i))

        threads = [threading.Thread(target=work, args=(50 * i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for n in range(5):
            sink.commit_epoch(n)
        for thread in threads:
            thread.join()
        sink.commit_epoch(5)
    assert ids(tmp_path) == list(range(200))
