"""Rows on their way to storage: gathered by the caller, stored by threads, bounded in memory.

Whoever puts rows waits only while the buffer is full. What cannot be stored stays in memory, is
named in the error, and is tried again by the next commit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from deltaworks.errors import GuardError, StorageError
from deltaworks.model.epochs import Limits

if TYPE_CHECKING:
    import pyarrow as pa

Stored = TypeVar("Stored")
_FIRST_PAUSE_S = 0.05
_MAX_PAUSE_S = 2.0


@dataclass(eq=False)
class Chunk(Generic[Stored]):
    """Rows that are stored together."""

    number: int
    tables: list[pa.Table] = field(default_factory=list)
    size_bytes: int = 0
    rows: int = 0
    since: float = 0.0
    future: Future[Sequence[Stored]] | None = None

    @property
    def failed(self) -> bool:
        """Whether it was given up, for now."""
        if self.future is None or not self.future.done():
            return False
        return self.future.exception() is not None


@dataclass(frozen=True)
class Sealed(Generic[Stored]):
    """All chunks of one epoch; no row can join them any more."""

    chunks: tuple[Chunk[Stored], ...]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(chunk.rows for chunk in self.chunks)

    @property
    def lag_seconds(self) -> float:
        """How long ago its first row came."""
        if not self.chunks:
            return 0.0
        return time.monotonic() - min(chunk.since for chunk in self.chunks)


class EpochBuffer(Generic[Stored]):
    """The rows of the epoch that is being written."""

    def __init__(
        self, store: Callable[[int, Sequence[pa.Table]], Sequence[Stored]], limits: Limits
    ) -> None:
        self._store = store
        self._limits = limits
        self._changed = threading.Condition()
        self._open: Chunk[Stored] = Chunk(0)
        self._chunks: list[Chunk[Stored]] = []
        self._in_memory: set[Chunk[Stored]] = set()
        self._held_bytes = 0
        self._closed = False
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(limits.flush_threads, "deltaworks-flush")
        self._ager = threading.Thread(target=self._flush_old, name="deltaworks-age", daemon=True)
        self._ager.start()

    @property
    def held_bytes(self) -> int:
        """How much is in memory."""
        return self._held_bytes

    @property
    def since(self) -> float | None:
        """When the oldest row came that belongs to no sealed epoch yet; None without any."""
        with self._changed:
            return min((c.since for c in (*self._chunks, self._open) if c.rows), default=None)

    @property
    def open_rows(self) -> int:
        """Rows that belong to no sealed epoch yet."""
        with self._changed:
            return self._open.rows + sum(chunk.rows for chunk in self._chunks)

    def offer(self, rows: pa.Table) -> bool:
        """Take rows if there is room for them."""
        size = rows.nbytes
        with self._changed:
            self._refuse()
            if not self._has_room(size):
                self._cut()
                return False
            self._add(rows, size)
            return True

    def put(self, rows: pa.Table) -> None:
        """Take rows; wait while there is no room for them."""
        size = rows.nbytes
        with self._changed:
            self._wait_for_room(size)
            self._add(rows, size)

    def wait_for_room(self, size: int) -> None:
        """Wait while there is no room for so many bytes; who puts them next may have to wait."""
        with self._changed:
            self._wait_for_room(size)

    def _wait_for_room(self, size: int) -> None:
        self._refuse()
        while not self._has_room(size):
            self._cut()
            self._changed.wait()
            self._refuse()

    def seal(self) -> Sealed[Stored]:
        """End the epoch: what is put from now on belongs to the next."""
        with self._changed:
            self._cut()
            sealed = Sealed(tuple(self._chunks))
            self._chunks = []
            return sealed

    def stored(self, sealed: Sealed[Stored]) -> tuple[Stored, ...]:
        """Wait until an epoch is stored; what had failed is tried again."""
        with self._changed:
            for chunk in sealed.chunks:
                if chunk.failed:
                    self._submit(chunk)
        found: list[Stored] = []
        for chunk in sealed.chunks:
            assert chunk.future is not None
            found.extend(chunk.future.result())
        return tuple(found)

    def dropped(self, sealed: Sealed[Stored]) -> tuple[Stored, ...]:
        """Give an epoch up; answers what had been stored of it."""
        found: list[Stored] = []
        for chunk in sealed.chunks:
            assert chunk.future is not None
            if chunk.future.cancel() or chunk.future.exception() is not None:
                self._release(chunk)
            else:
                found.extend(chunk.future.result())
        return tuple(found)

    def close(self) -> Sealed[Stored]:
        """Take no more; answers what was never committed."""
        self._stop.set()
        with self._changed:
            sealed = self.seal()
            self._closed = True
            self._changed.notify_all()
        self._pool.shutdown(wait=True)
        self._ager.join()
        return sealed

    def _has_room(self, size: int) -> bool:
        return self._held_bytes == 0 or self._held_bytes + size <= self._limits.buffer_bytes

    def _refuse(self) -> None:
        if self._closed:
            raise GuardError("the stream is closed", hint="open it again")
        for chunk in self._in_memory:
            if chunk.failed and chunk.future is not None:
                chunk.future.result()  # raises what went wrong; these rows are not taken

    def _add(self, rows: pa.Table, size: int) -> None:
        chunk = self._open
        if not chunk.tables:
            chunk.since = time.monotonic()
            self._in_memory.add(chunk)
            self._changed.notify_all()
        chunk.tables.append(rows)
        chunk.size_bytes += size
        chunk.rows += rows.num_rows
        self._held_bytes += size
        limits = self._limits
        if chunk.size_bytes >= limits.flush_bytes or chunk.rows >= limits.flush_rows:
            self._cut()

    def _cut(self) -> None:
        """Send what has gathered to storage."""
        chunk = self._open
        if chunk.tables:
            self._open = Chunk(chunk.number + 1)
            self._chunks.append(chunk)
            self._submit(chunk)

    def _submit(self, chunk: Chunk[Stored]) -> None:
        chunk.future = self._pool.submit(self._keep_storing, chunk)
        chunk.future.add_done_callback(lambda _: self._wake())

    def _keep_storing(self, chunk: Chunk[Stored]) -> Sequence[Stored]:
        """Store a chunk; an outage of storage is waited out, up to a limit."""
        end = time.monotonic() + self._limits.retry_seconds
        pause = _FIRST_PAUSE_S
        while True:
            try:
                stored = self._store(chunk.number, chunk.tables)
            except StorageError:
                if time.monotonic() + pause >= end or self._stop.wait(pause):
                    raise
                pause = min(pause * 2, _MAX_PAUSE_S)
            else:
                self._release(chunk)
                return stored

    def _release(self, chunk: Chunk[Stored]) -> None:
        with self._changed:
            if chunk.tables:
                chunk.tables = []
                self._in_memory.discard(chunk)
                self._held_bytes -= chunk.size_bytes

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _flush_old(self) -> None:
        """Cut what has waited long enough."""
        with self._changed:
            while not self._stop.is_set():
                if not self._open.tables:
                    self._changed.wait()
                    continue
                left = self._open.since + self._limits.flush_seconds - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                else:
                    self._cut()
