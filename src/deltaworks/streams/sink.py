"""The epoch sink: rows in, numbered epochs out, each of them once.

`write` gathers rows and returns; threads put them into storage; `commit_epoch` makes all rows since
the last one visible in a single commit that also holds the writer's epoch. Whoever starts again
asks `last_committed_epoch` and sends everything after it.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from deltaworks.engines.deltars.write.epoch_table import EpochTable
from deltaworks.errors import (
    CommitConflict,
    CommitUnknown,
    DeltaworksError,
    EngineError,
    GuardError,
    StorageError,
    TableNotFound,
)
from deltaworks.model.epochs import EpochCommit, Limits
from deltaworks.model.events import EpochCommitted, Event, RowsFlushed, Warned
from deltaworks.model.schema import Schema
from deltaworks.streams.buffer import EpochBuffer, Sealed
from deltaworks.streams.commit_rows import Landed, Landing
from deltaworks.streams.identity import Position, Writer, transactions
from deltaworks.streams.maintenance import Maintenance
from deltaworks.streams.os_errors import plainly
from deltaworks.streams.rows import arrow_table

if TYPE_CHECKING:
    import pyarrow as pa

Stored = TypeVar("Stored")
_FIRST_PAUSE_S = 0.01
_MAX_PAUSE_S = 2.0
_CHANGED = "the table's columns or properties changed while the stream was open"
_ANEW = "the table was dropped and recreated while the stream was open"
_DROPPED = "the table was dropped while the stream was open"


class EpochSink(Generic[Stored]):
    """One writer of one table. Threads may share it; no two processes may."""

    def __init__(
        self,
        *,
        table: EpochTable,
        writer: Writer,
        position: Position,
        landing: Landing[Stored],
        limits: Limits,
        upkeep: Maintenance,
        shared_lock: Callable[[], AbstractContextManager[object]],
        allow_gaps: bool = False,
        tell: Callable[[Event], None] = lambda _: None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.writer = writer
        self._table = table
        self._shape = table.shape()
        self._landing = landing
        self._limits = limits
        self._upkeep = upkeep
        self._lock = shared_lock
        self._allow_gaps = allow_gaps
        self._tell = tell
        self._on_close = on_close
        self._session = secrets.token_hex(4)
        self._position = position
        self._buffer: EpochBuffer[Stored] = EpochBuffer(self._store, limits)
        self._committing = threading.Lock()
        self._unsettled: tuple[int, Sealed[Stored]] | None = None
        self._fenced = ""
        self._stale = False
        self._closed = False
        self._plan: int | None = None

    @property
    def last_plan(self) -> int | None:
        """The mark of the plan by which the last epoch was made; None where it had none."""
        return self._position.plan

    def planned(self, mark: int) -> None:
        """Have the next epoch say which plan it was made by: a number may be planned twice."""
        self._plan = mark

    @property
    def last_committed_epoch(self) -> int | None:
        """The last epoch that is in the table; None when there is none yet."""
        return self._position.epoch

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table, as they are now."""
        return self._table.arrow_schema()

    @property
    def buffered_bytes(self) -> int:
        """How much waits in memory to be stored."""
        return self._buffer.held_bytes

    @property
    def lag_seconds(self) -> float:
        """How old the oldest row is that is not in the table yet."""
        unsettled = self._unsettled
        ages = [] if unsettled is None else [unsettled[1].lag_seconds]
        if (since := self._buffer.since) is not None:
            ages.append(time.monotonic() - since)
        return max(ages, default=0.0)

    def write(self, batch: Any) -> None:
        """Take rows for the next epoch; waits only while the buffer is full."""
        rows = self.fitted(batch)
        if rows.num_rows:
            self._buffer.put(rows)

    def offer(self, batch: Any) -> bool:
        """The same without waiting for room: False when the buffer is full."""
        return self.take(self.fitted(batch))

    def fitted(self, batch: Any) -> pa.Table:
        """Rows as they will be stored, or an error that names what does not fit.

        Nothing is taken yet. A table that grows gets the columns that are new, in a commit.
        """
        return self._landing.accept(arrow_table(batch))

    def take(self, fitted: pa.Table) -> bool:
        """Take such rows, all or none, at once: False when the buffer is full."""
        return not fitted.num_rows or self._buffer.offer(fitted)

    def wait_for_room(self, fitted: pa.Table) -> None:
        """Wait until there may be room for such rows; take none of them."""
        self._buffer.wait_for_room(fitted.nbytes)

    def commit_epoch(self, epoch: int) -> EpochCommit:
        """Make everything written since the last epoch visible, under this number, in one commit.

        An epoch the table has already is skipped, and its rows with it. After an error the same
        call tries the same rows again; rows written since belong to the next epoch.
        """
        with self._committing:
            started = time.monotonic()
            self._refuse(epoch)
            sealed = self._sealed_for(epoch)
            if self._unsettled is None and self._position.has(epoch):
                self._landing.discard(self._buffer.dropped(sealed))
                return EpochCommit(epoch=epoch, version=None, skipped=True)
            self._unsettled = (epoch, sealed)
            done = self._commit(epoch, sealed, started)
            self._unsettled = None
        self._tell_commit(done)
        self._upkeep.committed(done.version or 0)
        return done

    def grow(self, columns: pa.Schema) -> tuple[pa.Schema, Schema]:
        """Give the table more columns, in a commit of its own; answers what it has then."""
        with self._committing, plainly(self._table.location), self._lock():
            self._freshen()
            self._refuse_another()
            self._table.add_columns(columns)
            self._shape = self._table.shape()
            return self._table.arrow_schema(), self._table.schema()

    def close(self) -> int:
        """Stop; answers how many rows were never committed: they are the caller's to send again."""
        with self._committing:
            if self._closed:
                return 0
            self._closed = True
            self._upkeep.close()
            left = self._buffer.close()
            self._landing.discard(self._buffer.dropped(left))
            given_up = self._given_up()
            self._landing.close()
            self._on_close()
        lost = left.rows + sum(given_up.values())
        if lost:
            epochs = "".join(f", those of epoch {epoch} among them" for epoch in given_up)
            self._warn(f"{lost:,} rows were never committed and are given up{epochs}")
        return lost

    def _given_up(self) -> dict[int, int]:
        """The rows of an epoch whose commit failed, unless the log shows that it landed after all.

        Their files stay: should the commit still land, they are the table's, and if it does not the
        next session of this writer removes them.
        """
        if self._unsettled is None:
            return {}
        epoch, sealed = self._unsettled
        with suppress(DeltaworksError), plainly(self._table.location):
            if not self._fenced and self._look(epoch) is not None:
                return {}
        return {epoch: sealed.rows} if sealed.rows else {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _store(self, number: int, tables: Sequence[pa.Table]) -> Sequence[Stored]:
        """Put rows away, and say so."""
        started = time.monotonic()
        with plainly(self._table.location):
            stored = self._landing.store(number, tables)
        self._tell(
            RowsFlushed(
                run_id=self._session,
                pipeline=self.writer.stream,
                writer_id=self.writer.writer_id,
                rows=sum(rows.num_rows for rows in tables),
                size_bytes=sum(rows.nbytes for rows in tables),
                seconds=time.monotonic() - started,
                buffered_bytes=self._buffer.held_bytes,
                lag_seconds=self.lag_seconds,
            )
        )
        return stored

    def _refuse(self, epoch: int) -> None:
        if self._closed:
            raise GuardError("the stream is closed", hint="open it again")
        if self._fenced:
            raise GuardError(self._fenced, hint="open the stream again and check its last epoch")
        if epoch < 0:
            raise GuardError(f"epoch {epoch} is below 0", hint="number epochs from 0 or 1")
        if self._unsettled is not None:
            if self._unsettled[0] != epoch:
                raise GuardError(
                    f"epoch {self._unsettled[0]} is not settled yet",
                    hint=f"commit epoch {self._unsettled[0]} again first",
                )
            return
        last = self._position.epoch
        if last is not None and epoch > last + 1 and not self._allow_gaps:
            raise GuardError(
                f"epoch {epoch} does not follow epoch {last}",
                hint=f"commit epoch {last + 1} first, or open the stream with allow_gaps",
            )

    def _sealed_for(self, epoch: int) -> Sealed[Stored]:
        if self._unsettled is not None:
            return self._unsettled[1]
        return self._buffer.seal()

    def _commit(self, epoch: int, sealed: Sealed[Stored], started: float) -> EpochCommit:
        stored = self._buffer.stored(sealed)
        landed = self._land(epoch, sealed, stored)
        self._landing.finish(stored)
        return EpochCommit(
            epoch=epoch,
            version=landed.version,
            rows=sealed.rows,
            rows_updated=landed.updated,
            rows_deleted=landed.deleted,
            files=landed.files,
            size_bytes=landed.size_bytes,
            seconds=time.monotonic() - started,
            lag_seconds=sealed.lag_seconds,
        )

    def _land(self, epoch: int, sealed: Sealed[Stored], stored: tuple[Stored, ...]) -> Landed:
        """Commit; conflicts and outages are waited out, and the log is asked before each try."""
        end = time.monotonic() + self._limits.retry_seconds
        pause = _FIRST_PAUSE_S
        while True:
            try:
                with plainly(self._table.location), self._lock():
                    return self._attempt(epoch, sealed.rows, stored)
            except EngineError as problem:
                passes = isinstance(problem, CommitConflict | StorageError)
                if not passes or time.monotonic() + pause >= end:
                    return self._last_look(epoch, problem)
            time.sleep(pause)
            pause = min(pause * 2, _MAX_PAUSE_S)
            self._stale = True

    def _attempt(self, epoch: int, rows: int, stored: tuple[Stored, ...]) -> Landed:
        found = self._look(epoch)
        if found is not None:
            return found
        seen = self._table.version
        txns = transactions(self.writer, self._position, epoch, seen=seen, plan=self._plan)
        landed = self._landing.land(self._table, stored, txns, self._note(epoch, rows))
        follows = landed.version == seen + 1
        self._moved(epoch, mark=seen, seen=landed.version if follows else seen)
        return landed

    def _look(self, epoch: int) -> Landed | None:
        """Whether this very epoch of ours is in the table; somebody else's stops the stream."""
        self._freshen()
        self._refuse_another()
        at = self._position
        if self._table.restores(at.seen):
            raise self._fence("the table was set back while the stream was open")
        now = self._table.transaction(self.writer.epochs(at.generation))
        mark = self._table.transaction(self.writer.seen)
        if (now, mark) == (at.recorded, at.mark):
            self._position = replace(at, seen=self._table.version)
            return None
        for record in self._table.epochs(since=at.seen):
            if self._is_mine(record.user_metadata, epoch):
                self._moved(epoch, mark=mark, seen=self._table.version)
                return Landed(version=record.version)
        raise self._fence(f'another process writes as "{self.writer.writer_id}"')

    def _last_look(self, epoch: int, problem: EngineError) -> Landed:
        """After a failure: landed after all, not landed, or not to be told."""
        self._stale = True
        try:
            with plainly(self._table.location):
                found = self._look(epoch)
        except EngineError:
            raise CommitUnknown(
                f"it is not known whether epoch {epoch} landed: {problem.message}",
                hint=f"commit epoch {epoch} again; the log is asked first, so it lands once",
            ) from problem
        if found is None:
            raise problem
        return found

    def _freshen(self) -> None:
        fresh = self._upkeep.fresh_table()
        if fresh is not None:
            self._table = fresh
        try:
            if self._stale:
                self._table = self._table.reopened()
                self._stale = False
            self._table.refresh()
        except TableNotFound as problem:
            raise self._fence(_DROPPED) from problem

    def _refuse_another(self) -> None:
        """Stop when the table is not the one that was opened, or not as it was then."""
        if self._table.table_id != self.writer.table_id:
            raise self._fence(_ANEW)
        if self._table.shape() != self._shape:
            raise self._fence(_CHANGED)

    def _moved(self, epoch: int, *, mark: int | None, seen: int) -> None:
        self._position = replace(
            self._position, epoch=epoch, recorded=epoch, mark=mark, seen=seen, plan=self._plan
        )
        self._plan = None

    def _fence(self, why: str) -> GuardError:
        self._fenced = why
        return GuardError(why, hint="open the stream again and check its last epoch")

    def _note(self, epoch: int, rows: int) -> dict[str, Any]:
        return {
            "stream": self.writer.stream,
            "writer": self.writer.writer_id,
            "session": self._session,
            "epoch": epoch,
            "generation": self._position.generation,
            "rows": rows,
        }

    def _is_mine(self, note: Mapping[str, Any], epoch: int) -> bool:
        mine = (self.writer.writer_id, self._session, epoch)
        return (note.get("writer"), note.get("session"), note.get("epoch")) == mine

    def _tell_commit(self, done: EpochCommit) -> None:
        self._tell(
            EpochCommitted(
                run_id=self._session,
                pipeline=self.writer.stream,
                writer_id=self.writer.writer_id,
                commit=done,
                buffered_bytes=self._buffer.held_bytes,
            )
        )

    def _warn(self, message: str) -> None:
        self._tell(Warned(run_id=self._session, pipeline=self.writer.stream, message=message))
