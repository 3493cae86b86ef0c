"""A lock on an object store: an object that its holder renews, and others must not touch.

No kernel frees it with its owner. So it counts as given up when its owner is a dead process of this
machine, or when nobody has renewed it for a while. A driver that was stopped for that long, and
then goes on, may have been overtaken: it is told so before it commits, but not while it does.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from secrets import token_hex

from deltaworks.config.storage import Stores
from deltaworks.engines.objects.bucket import Bucket
from deltaworks.engines.owner import Jvm, is_dead, is_here, owner_text, read_owner, shown_owner
from deltaworks.errors import GuardError, StorageError

LEASE_SECONDS = 60.0
_BEAT_SECONDS = 10.0
_LONG_AGO_SECONDS = 10 * LEASE_SECONDS
"""By clocks of two machines, which need not agree by the second."""
_POLL_SECONDS = 0.5
_OWN: set[object] = set()
"""What this process holds now."""


@dataclass(frozen=True)
class Patience:
    """How a lock is waited for."""

    seconds: float
    notify: Callable[[str], None]
    meanwhile: Callable[[], None]


class Lease:
    """A lock in hand, renewed until it is let go."""

    def __init__(self, bucket: Bucket, address: str, tag: str, token: str) -> None:
        self.lost = False
        self._bucket = bucket
        self._address = address
        self._tag = tag
        self._token = token
        self._jvm: Jvm | None = None
        self._signed: Jvm | None = None
        """The JVM that others can read of."""
        self._ended = False
        self._wake = threading.Event()
        self._signing = threading.Lock()
        _OWN.add(token)
        self._beat = threading.Thread(target=self._renew_until_ended, daemon=True)
        self._beat.start()

    def name_jvm(self, pid: int, started: float) -> None:
        """Write down the JVM that works under this lock, while it already reads."""
        self._jvm = (pid, started)
        self._wake.set()

    def require(self) -> None:
        """Raise when somebody else has taken the lock over; the JVM is written down by then."""
        if self._signed != self._jvm:
            self._renew(unless=self._jvm)
        if self.lost:
            raise GuardError(
                f'the lock "{self._address}" was taken over: this run stood still for too long',
                hint="nothing more was written; run it again",
            )

    def end(self) -> None:
        """Begin to let go; who lets go of several need not wait for each."""
        self._ended = True
        self._wake.set()

    def release(self) -> None:
        """Let go."""
        self.end()
        self._beat.join()

    def _renew_until_ended(self) -> None:
        while not self._ended:
            self._wake.wait(_BEAT_SECONDS)
            self._wake.clear()
            if not self._ended:
                with suppress(StorageError):  # it has some time to come back
                    self._renew()
        if not self.lost:
            with suppress(StorageError):
                self._bucket.delete([self._address])
        _OWN.discard(self._token)  # not before: a thread of ours would take what is then removed

    def _renew(self, *, unless: Jvm | None = None) -> None:
        """Sign anew, unless the signature has the JVM that it is to have."""
        with self._signing:
            jvm = self._jvm
            if unless is not None and self._signed == unless:
                return
            text = owner_text(jvm=jvm, token=self._token, beat=time.time())
            tag = self._bucket.replace(self._address, text.encode(), tag=self._tag)
            if tag is None:
                self.lost = True
            else:
                self._tag, self._signed = tag, jvm


@contextmanager
def leased(address: str, stores: Stores, patience: Patience) -> Iterator[Lease]:
    """Hold the lock at an address until the block ends."""
    bucket = Bucket(address, stores)
    token = token_hex(8)
    lease = Lease(bucket, address, _take(bucket, address, token, patience), token)
    try:
        yield lease
    finally:
        lease.release()


def _take(bucket: Bucket, address: str, token: str, patience: Patience) -> str:
    end, told = time.monotonic() + patience.seconds, False
    watch = _Watch()
    while True:
        text = owner_text(jvm=None, token=token, beat=time.time()).encode()
        if tag := bucket.create(address, text):
            return tag
        found = bucket.read(address)
        if found is None:
            continue
        owner = read_owner(found[0].decode("utf-8", errors="replace"))
        if watch.is_over(owner, found[1]):
            if tag := bucket.replace(address, text, tag=found[1]):
                return tag
            continue
        if time.monotonic() >= end:
            raise _taken(address, owner, patience.seconds)
        if not told:
            patience.notify(f"waiting for {shown_owner(owner)} to finish")
            told = True
        patience.meanwhile()
        time.sleep(_POLL_SECONDS)


class _Watch:
    """Looks whether a lock is still renewed, by a clock of its own."""

    def __init__(self) -> None:
        self._tag = ""
        self._since = time.monotonic()

    def is_over(self, owner: dict[str, object], tag: str) -> bool:
        if tag != self._tag:
            self._tag, self._since = tag, time.monotonic()
        beat = float(str(owner.get("beat", 0)))
        unchanged = time.monotonic() - self._since
        if is_dead(owner) or _is_left(owner):
            return True
        return unchanged > LEASE_SECONDS or time.time() - beat > _LONG_AGO_SECONDS


def _is_left(owner: dict[str, object]) -> bool:
    """Whether this very process held it, and could not let go when the store was away."""
    is_mine = is_here(owner) and owner.get("pid") == os.getpid()
    return is_mine and owner.get("token") not in _OWN


def _taken(address: str, owner: dict[str, object], seconds: float) -> GuardError:
    name = address.rpartition("/")[2].removesuffix(".lock").lstrip(".")
    return GuardError(
        f'"{name}" is in use by {shown_owner(owner)}, '
        "and on an object store one driver at a time may write it",
        hint=f"wait for it or stop it; gave up after {seconds:g} s. "
        f"What a dead driver held is free after {LEASE_SECONDS:g} s",
    )
