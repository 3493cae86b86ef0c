"""A lock on an object store: an object that its holder renews, and others must not touch.

No kernel frees it with its owner. So it counts as given up when its owner is surely gone, or when
nobody has renewed it for a whole lease (`lease_claim.py`). A driver that was paused for so long and
then continues is refused before its next commit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from deltaworks.config.object_stores import Stores
from deltaworks.errors import GuardError, StorageError
from deltaworks.storage.locks.lease_claim import LEASE_SECONDS, Claim
from deltaworks.storage.locks.owner import Jvm, Owner, jvm_of, named_jvm, shown_owner
from deltaworks.storage.objects import Bucket

_BEAT_SECONDS = 10.0
_POLL_SECONDS = 0.5
_LEFT: set[object] = set()
"""Claims of this process that have ended, and of which the store may not know."""


@dataclass(frozen=True)
class LockWait:
    """How a lock is waited for."""

    seconds: float
    notify: Callable[[str], None]
    meanwhile: Callable[[], None]
    when_lost: Callable[[], None] = field(default=lambda: None, kw_only=True)
    """What is to happen as soon as a lock in hand turns out to be somebody else's."""


class Lease:
    """A lock in hand, renewed until it is let go."""

    def __init__(self, claim: Claim, address: str, when_lost: Callable[[], None]) -> None:
        self._claim = claim
        self._address = address
        self._when_lost = when_lost
        self._jvm: Jvm | None = None
        self._signed: Jvm | None = None
        """The JVM that others can read of."""
        self._ended = threading.Event()
        self._wake = threading.Event()
        self._signing = threading.Lock()
        self._beat = threading.Thread(target=self._renew_until_ended, daemon=True)
        self._beat.start()

    @property
    def fence(self) -> int:
        """A number that is greater than that of every earlier holder."""
        return self._claim.fence

    def name_jvm(self, pid: int, started: float) -> None:
        """Write down the JVM that works under this lock, while it already reads."""
        self._jvm = named_jvm(pid, started)
        self._wake.set()

    def require(self) -> None:
        """Raise unless the lock is still ours; the JVM is written down by then.

        What was not confirmed lately is asked of the store: whoever wakes up after a long time
        learns here that somebody else has taken over.
        """
        with self._signing:
            jvm = self._jvm
            is_held = self._claim.confirm(anew=self._signed != jvm, jvm=jvm)
            self._signed = jvm
        if not is_held or self._ended.is_set():
            raise GuardError(
                f'the lock "{self._address}" was taken over: this run was paused for too long',
                hint="nothing more was written; run it again",
            )

    def end(self) -> None:
        """Begin to let go; who lets go of several need not wait for each."""
        self._ended.set()
        self._wake.set()

    def release(self) -> None:
        """Let go."""
        self.end()
        self._beat.join()

    def _renew_until_ended(self) -> None:
        while not self._ended.is_set() and not self._claim.lost:
            self._wake.wait(_BEAT_SECONDS)
            self._wake.clear()
            with suppress(StorageError), self._signing:  # it has some time to come back
                jvm = self._jvm
                if not self._ended.is_set() and self._claim.renew(jvm):
                    self._signed = jvm
        if not self._ended.is_set():
            self._when_lost()
        try:
            with self._signing:
                self._claim.let_go()
        except StorageError:
            _LEFT.add(self._claim.token)


def _is_left(token: object) -> bool:
    return isinstance(token, str) and token in _LEFT


@contextmanager
def leased(address: str, stores: Stores, patience: LockWait) -> Iterator[Lease]:
    """Hold the lock at an address until the block ends."""
    claim = Claim(Bucket(address, stores), address, is_left=_is_left)
    try:
        _take(claim, address, patience)
    except StorageError:  # a request may be on its way yet
        _LEFT.add(claim.token)
        raise
    lease = Lease(claim, address, patience.when_lost)
    try:
        yield lease
    finally:
        lease.release()


def _take(claim: Claim, address: str, patience: LockWait) -> None:
    """Wait for a lock; for one whose holder may be dead as long as it takes to know."""
    end, told = time.monotonic() + patience.seconds, False
    while (owner := claim.attempt()) is not None:
        if time.monotonic() >= end and claim.sees_life:
            raise _taken(address, owner, patience.seconds)
        if not told:
            patience.notify(f"waiting for {shown_owner(owner)} to finish")
            told = True
        patience.meanwhile()
        time.sleep(_POLL_SECONDS)


def _taken(address: str, owner: Owner, seconds: float) -> GuardError:
    name = address.rpartition("/")[2].removesuffix(".lock").lstrip(".")
    jvm = jvm_of(owner)
    spark = "" if jvm is None else f" (its Spark is process {jvm.pid})"
    return GuardError(
        f'"{name}" is in use by {shown_owner(owner)}, '
        "and on an object store one driver at a time may write it",
        hint=f"wait for it or stop it{spark}; gave up after {seconds:g} s. "
        f"What a dead driver held is free after {LEASE_SECONDS:g} s",
    )
