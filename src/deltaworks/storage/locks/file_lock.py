"""Locks that the kernel releases with their owner: one per pipeline, one per table.

Spark writes a table alone. Writers that settle conflicts among themselves, through delta-rs, share
its lock; who waits for it alone goes before those who come to share it.

A Spark JVM may outlive its Python by a moment. The lock's file names both, and whoever takes the
lock after a death waits until that JVM is gone too; one in another container or on another machine
cannot be looked for, and gets a few seconds.

The kernel locks a file, not its name. A lock counts only as long as its name leads to that file, or
somebody else could lock another one there.

On an object store there is no kernel to ask; there a lock is a lease (`storage/locks/lease.py`).
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.errors import GuardError, StorageError
from deltaworks.model.table_ref import OWN_LOCK, is_url
from deltaworks.storage.locks.owner import (
    Jvm,
    Owner,
    is_me,
    jvm_of,
    may_be_visible,
    named_jvm,
    owner_text,
    read_owner,
    shown_owner,
)

if TYPE_CHECKING:
    from deltaworks.storage.locks.lease import Lease

LockPlace = Path | str
"""A file of this machine, or the address of an object."""

_POLL_S = 0.1
_UNSEEN_JVM_S = 5.0
"""How long a JVM has to end that cannot be looked for from here."""


@contextmanager
def locked(
    paths: Sequence[LockPlace],
    *,
    wait_seconds: float,
    notify: Callable[[str], None],
    while_waiting: Callable[[], None] = lambda: None,
    when_lost: Callable[[], None] = lambda: None,
    shared: bool = False,
    stores: Stores = NO_STORES,
) -> Iterator[LockSet]:
    """Hold several locks, taken in one order by everybody, until the block ends."""
    wait = _Wait(wait_seconds, notify, while_waiting, when_lost, shared=shared)
    with ExitStack() as stack:
        files: list[IO[str]] = []
        leases: list[Lease] = []
        for place in sorted(set(paths), key=str):
            if isinstance(place, str):
                leases.append(stack.enter_context(_leased(place, stores, wait)))
            else:
                files.append(stack.enter_context(_one(place, wait)))
        try:
            yield LockSet(files, leases)
        finally:
            for lease in leases:
                lease.end()


class LockSet:
    """Locks in hand."""

    def __init__(self, files: Sequence[IO[str]], leases: Sequence[Lease]) -> None:
        self._files = files
        self._leases = leases

    def name_jvm(self, pid: int, started: float) -> None:
        """Write down the JVM that works under these locks."""
        for handle in self._files:
            _write_owner(handle, jvm=named_jvm(pid, started))
        for lease in self._leases:
            lease.name_jvm(pid, started)

    def require(self) -> None:
        """Raise when a lock is no longer ours: overtaken in a bucket, or its file was removed."""
        for handle in self._files:
            if not _is_in_place(handle):
                raise GuardError(
                    f'the lock "{handle.name}" was removed while this run held it',
                    hint="nothing more was written; run it again, and leave lock files alone",
                )
        for lease in self._leases:
            lease.require()


@dataclass(frozen=True)
class _Wait:
    """How a lock is waited for, and by whom."""

    seconds: float
    notify: Callable[[str], None]
    meanwhile: Callable[[], None]
    when_lost: Callable[[], None]
    shared: bool = field(kw_only=True)


def _leased(address: str, stores: Stores, wait: _Wait) -> AbstractContextManager[Lease]:
    from deltaworks.storage.locks.lease import LockWait, leased

    how = LockWait(wait.seconds, wait.notify, wait.meanwhile, when_lost=wait.when_lost)
    return leased(address, stores, how)


@contextmanager
def _one(path: Path, wait: _Wait) -> Iterator[IO[str]]:
    with _taken(path, wait) as handle:
        _wait_for_jvm(handle, wait_seconds=wait.seconds)
        if wait.shared:
            _sign(handle)
            yield handle
            return
        _write_owner(handle, jvm=None)
        try:
            yield handle
        finally:  # a JVM may live on, for the next run of a notebook, but it is done with this one
            with suppress(OSError):
                _write_owner(handle, jvm=None)


@contextmanager
def _taken(path: Path, wait: _Wait) -> Iterator[IO[str]]:
    """The file of a lock, locked: the one that has the name, not one that had it."""
    holder = os.getpid()
    while True:
        with _opened(path) as handle:
            _take(handle, path, wait)
            if not _is_in_place(handle):
                continue
            try:
                yield handle
            finally:
                if os.getpid() == holder:  # a fork has the file too, and would hold it on
                    fcntl.flock(handle, fcntl.LOCK_UN)
            return


def _opened(path: Path) -> IO[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.absolute().open("a+", encoding="utf-8", errors="replace")
    except OSError as problem:
        raise StorageError(
            f'lock "{path}" cannot be made: {problem.strerror}',
            hint="give this user the right to write there",
        ) from problem


def _is_in_place(handle: IO[str]) -> bool:
    """Whether the name of an open file still leads to it."""
    try:
        return os.path.samestat(os.fstat(handle.fileno()), Path(handle.name).stat())
    except FileNotFoundError:
        return False


def _take(handle: IO[str], path: Path, wait: _Wait) -> None:
    end = time.monotonic() + wait.seconds
    told = queued = False
    with ExitStack() as queue:
        while not _try(handle, path, shared=wait.shared):
            owner = shown_owner(_owner(handle))
            if time.monotonic() >= end:
                raise GuardError(
                    f'"{path.name.removesuffix(".lock").lstrip(".")}" is in use by {owner}',
                    hint=f"wait for it or stop it; gave up after {wait.seconds:g} s",
                )
            if not told:
                wait.notify(f"waiting for {owner} to finish")
                told = True
            queued = queued or wait.shared or _queue_up(path, queue)
            wait.meanwhile()
            time.sleep(_POLL_S)


def _try(handle: IO[str], path: Path, *, shared: bool) -> bool:
    if shared and not _nobody_queues(path):
        return False
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as problem:
        raise StorageError(
            f'lock "{path}" cannot be taken: {problem.strerror}',
            hint="keep the warehouse and its tables on a file system that has locks (flock)",
        ) from problem
    return True


def _queue(path: Path) -> Path:
    return path.with_name(f"{path.name}.queue")


def _queue_up(path: Path, queue: ExitStack) -> bool:
    """Be seen by those who would share the lock, until it is taken or given up.

    False while somebody else queues, or one of those who would share looks whether anybody does.
    """
    mark = _queue(path).open("a", encoding="utf-8")
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        mark.close()
        return False
    queue.enter_context(mark)
    return True


def _nobody_queues(path: Path) -> bool:
    try:
        mark = _queue(path).open("r", encoding="utf-8")
    except FileNotFoundError:
        return True
    with mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _sign(handle: IO[str]) -> None:
    """Name one of those who share a lock; it is signed often, and only for a message."""
    if not is_me(_owner(handle)):
        _write_owner(handle, jvm=None, durable=False)


def _owner(handle: IO[str]) -> Owner:
    handle.seek(0)
    return read_owner(handle.read())


def _write_owner(handle: IO[str], *, jvm: Jvm | None, durable: bool = True) -> None:
    handle.seek(0)
    handle.truncate()
    handle.write(owner_text(jvm=jvm))
    handle.flush()
    if durable:
        os.fsync(handle.fileno())


def _wait_for_jvm(handle: IO[str], *, wait_seconds: float) -> None:
    """The last owner's JVM may still be writing, though its Python is gone."""
    owner = _owner(handle)
    jvm = jvm_of(owner)
    if jvm is not None and not may_be_visible(owner):
        time.sleep(min(_UNSEEN_JVM_S, wait_seconds))
        return
    end = time.monotonic() + wait_seconds
    while jvm is not None and jvm.is_alive():
        if time.monotonic() >= end:
            raise GuardError(
                f"the Spark of an earlier run is still at work (process {jvm.pid})",
                hint=f"wait for it, or stop it: kill {jvm.pid}",
            )
        time.sleep(_POLL_S)


def may_be_held(place: LockPlace) -> bool:
    """Whether somebody may hold a lock now; who looks once at a lease cannot tell."""
    if isinstance(place, str):
        return True
    try:
        handle = place.open("r", encoding="utf-8")
    except FileNotFoundError:
        return False
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def pipeline_lock(warehouse: str, pipeline: str) -> LockPlace:
    """The lock of one pipeline."""
    place = f"{warehouse}/_deltaworks/locks/{pipeline}.lock"
    return place if is_url(warehouse) else Path(place)


def writer_lock(location: str, writer_id: str) -> Path:
    """The lock of one writer of a table, beside the table's own."""
    own = table_lock(location)
    return own.with_name(f"{own.name.removesuffix('.lock')}.{writer_id}.lock")


def compaction_lock(location: str) -> Path:
    """The lock of whoever joins a table's files; no writer's can have its name."""
    return writer_lock(location, "joining.files")


def lock_of(location: str) -> LockPlace:
    """The lock of one table or folder: beside it, or in it when it is a whole bucket."""
    if not is_url(location):
        return table_lock(location)
    around, _, name = location.rpartition("/")
    return f"{around}/.{name}.lock" if is_url(around) else f"{location}/{OWN_LOCK}"


def table_lock(location: str) -> Path:
    """The lock of one table on this machine, beside its folder by its real path."""
    real = Path(os.path.realpath(location))
    return real.with_name(f".{real.name}.lock")
