"""Looks after a stream's table beside the stream: checkpoints, and small files joined.

It works through handles of its own, so no epoch waits for it. What fails here is told and tried
again later; it takes nothing back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

from deltaworks.engines.deltars.write.compaction_undo import JOINING, JoinWatch
from deltaworks.engines.deltars.write.epoch_table import EpochTable
from deltaworks.errors import CommitConflict, DeltaworksError, GuardError
from deltaworks.model.table_ref import is_url
from deltaworks.streams.os_errors import plainly

_MAX_FILES = 64


@dataclass(frozen=True, kw_only=True)
class MaintenancePlan:
    """How often a table is looked after."""

    checkpoint_every: int = 20
    """Commits between two checkpoints; 0 for none."""
    compact_files: int | None = None
    """Small files are joined when there are so many, 64 unless told otherwise; 0 for never.

    On an object store nobody joins files unless a number is given, and one writer alone may be
    given one: there is no lock there, and delta-rs lets two who join the same files double rows.
    """
    small_bytes: int = 8 * 1024 * 1024
    """What a small file is."""


class Maintenance:
    """One thread that keeps a table quick."""

    def __init__(
        self,
        table: EpochTable,
        plan: MaintenancePlan,
        *,
        shared_lock: Callable[[], AbstractContextManager[object]],
        compaction_lock: Callable[[], AbstractContextManager[object]],
        warn: Callable[[str], None],
    ) -> None:
        self._own = table
        self._plan = plan
        self._lock = shared_lock
        self._joining = compaction_lock
        self._warn = warn
        self._pool = ThreadPoolExecutor(1, "deltaworks-upkeep")
        self._guard = threading.Lock()
        self._running: Future[None] | None = None
        self._fresh: EpochTable | None = None
        self._last = table.version
        self._watch = JoinWatch(table.folder())
        if plan.checkpoint_every and self._watches(table):
            self._running = self._pool.submit(self._set_right, table.version)

    def committed(self, version: int) -> None:
        """Begin in the background if it is time; returns at once."""
        every = self._plan.checkpoint_every
        with self._guard:
            busy = self._running is not None and not self._running.done()
            if busy or not every or version - self._last < every:
                return
            self._last = version
            self._running = self._pool.submit(self._look_after)

    def fresh_table(self) -> EpochTable | None:
        """A handle that starts from the newest checkpoint, once there is one."""
        with self._guard:
            fresh, self._fresh = self._fresh, None
            return fresh

    def close(self) -> None:
        """Wait for what has begun."""
        self._pool.shutdown(wait=True)

    def _look_after(self) -> None:
        with self._telling():
            table = self._own.beside()
            self._unjoin(table)
            self._compact(table)
            table.checkpoint()
            fresh = self._own.renewed(table)
            with self._guard:
                self._fresh = fresh

    def _set_right(self, version: int) -> None:
        """Look once whether what an earlier session joined was overtaken since."""
        with self._telling():
            if self._watch.overtaken(version):
                self._unjoin(self._own.beside())

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            with plainly(self._own.location):
                yield
        except DeltaworksError as problem:
            self._warn(f"maintenance of the table failed this time: {problem.message}")

    def _unjoin(self, table: EpochTable) -> None:
        """Undo what was joined while somebody else replaced it; nobody waits for it."""
        if not self._watches(table) or not self._watch.overtaken(table.version):
            return
        with suppress(GuardError, CommitConflict), self._joining(), self._lock():
            table.refresh()
            for what in table.unjoin(self._watch):
                self._warn(what)

    def _compact(self, table: EpochTable) -> None:
        most = self._max_files(table)
        if not most or table.small_files(self._plan.small_bytes) < most:
            return
        with suppress(GuardError, CommitConflict), self._joining(), self._lock():
            table.refresh()  # of two who join the same files, both would succeed
            note = {**JOINING, "from": table.version}
            table.compact(note, small_bytes=self._plan.small_bytes)

    def _watches(self, table: EpochTable) -> bool:
        """Whether joined files are looked after: in a bucket, by the writer that joins them."""
        return not is_url(table.location) or bool(self._plan.compact_files)

    def _max_files(self, table: EpochTable) -> int:
        if self._plan.compact_files is not None:
            return self._plan.compact_files
        return 0 if is_url(table.location) else _MAX_FILES
