"""Locks that the kernel releases with their owner: one per pipeline, one per table.

Spark writes a table alone. Writers that settle conflicts among themselves, through delta-rs, share
its lock; who waits for it alone goes before those who come to share it.

A Spark JVM may outlive its Python by a moment. The lock's file names both, and whoever takes the
lock after a death waits until that JVM is gone too.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from deltaworks.errors import GuardError, StorageError

_POLL_S = 0.1


@contextmanager
def locked(
    paths: Sequence[Path],
    *,
    wait_seconds: float,
    notify: Callable[[str], None],
    while_waiting: Callable[[], None] = lambda: None,
    shared: bool = False,
) -> Iterator[LockSet]:
    """Hold several locks, taken in one order by everybody, until the block ends."""
    wait = _Wait(wait_seconds, notify, while_waiting, shared=shared)
    with ExitStack() as stack:
        handles = [stack.enter_context(_one(path, wait)) for path in sorted(set(paths))]
        yield LockSet(handles)


class LockSet:
    """Locks in hand."""

    def __init__(self, handles: Sequence[IO[str]]) -> None:
        self._handles = handles

    def name_jvm(self, pid: int, started: float) -> None:
        """Write down the JVM that works under these locks."""
        for handle in self._handles:
            _write_owner(handle, jvm=(pid, started))


@dataclass(frozen=True)
class _Wait:
    """How a lock is waited for."""

    seconds: float
    notify: Callable[[str], None]
    meanwhile: Callable[[], None]
    shared: bool


@contextmanager
def _one(path: Path, wait: _Wait) -> Iterator[IO[str]]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("a+", encoding="utf-8")
    except OSError as problem:
        raise StorageError(
            f'lock "{path}" cannot be made: {problem.strerror}',
            hint="give this user the right to write there",
        ) from problem
    with handle:
        _take(handle, path, wait)
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


def _take(handle: IO[str], path: Path, wait: _Wait) -> None:
    end = time.monotonic() + wait.seconds
    told = False
    with ExitStack() as queue:
        while not _try(handle, path, shared=wait.shared):
            owner = _owner_text(handle)
            if time.monotonic() >= end:
                raise GuardError(
                    f'"{path.name.removesuffix(".lock").lstrip(".")}" is in use by {owner}',
                    hint=f"wait for it or stop it; gave up after {wait.seconds:g} s",
                )
            if not told:
                wait.notify(f"waiting for {owner} to finish")
                told = True
                if not wait.shared:
                    _queue_up(path, queue)
            wait.meanwhile()
            time.sleep(_POLL_S)


def _try(handle: IO[str], path: Path, *, shared: bool) -> bool:
    if shared and not _nobody_queues(path):
        return False
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _queue(path: Path) -> Path:
    return path.with_name(f"{path.name}.queue")


def _queue_up(path: Path, queue: ExitStack) -> None:
    """Be seen by those who would share the lock, until it is taken or given up."""
    mark = queue.enter_context(_queue(path).open("a", encoding="utf-8"))
    with suppress(BlockingIOError):  # somebody else queues already, which is as good
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
    if _owner(handle).get("pid") != os.getpid():
        _write_owner(handle, jvm=None, durable=False)


def _owner(handle: IO[str]) -> dict[str, object]:
    handle.seek(0)
    try:
        owner = json.loads(handle.read() or "{}")
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def _owner_text(handle: IO[str]) -> str:
    owner = _owner(handle)
    return f"process {owner.get('pid', '?')} on {owner.get('host', 'this machine')}"


def _write_owner(handle: IO[str], *, jvm: tuple[int, float] | None, durable: bool = True) -> None:
    me = psutil.Process()
    owner = {
        "host": socket.gethostname(),
        "pid": me.pid,
        "started": me.create_time(),
        "jvm": jvm,
    }
    handle.seek(0)
    handle.truncate()
    handle.write(json.dumps(owner))
    handle.flush()
    if durable:
        os.fsync(handle.fileno())


def _wait_for_jvm(handle: IO[str], *, wait_seconds: float) -> None:
    """The last owner's JVM may still be writing, though its Python is gone."""
    owner = _owner(handle)
    jvm = owner.get("jvm")
    if not isinstance(jvm, list) or owner.get("host") != socket.gethostname():
        return
    if owner.get("pid") == os.getpid():
        return
    pid, started = int(jvm[0]), float(jvm[1])
    end = time.monotonic() + wait_seconds
    while _lives(pid, started):
        if time.monotonic() >= end:
            raise GuardError(
                f"the Spark of an earlier run is still at work (process {pid})",
                hint=f"wait for it, or stop it: kill {pid}",
            )
        time.sleep(_POLL_S)


def _lives(pid: int, started: float) -> bool:
    try:
        process = psutil.Process(pid)
        is_same = abs(process.create_time() - started) < 1
        return bool(is_same and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def pipeline_lock(warehouse: str, pipeline: str) -> Path:
    """The lock of one pipeline."""
    return Path(warehouse) / "_deltaworks" / "locks" / f"{pipeline}.lock"


def writer_lock(location: str, writer_id: str) -> Path:
    """The lock of one writer of a table, beside the table's own."""
    own = table_lock(location)
    return own.with_name(f"{own.name.removesuffix('.lock')}.{writer_id}.lock")


def joining_lock(location: str) -> Path:
    """The lock of whoever joins a table's files; no writer's can have its name."""
    return writer_lock(location, "joining.files")


def table_lock(location: str) -> Path:
    """The lock of one table, beside its folder by its real path."""
    real = Path(os.path.realpath(location))
    return real.with_name(f".{real.name}.lock")
