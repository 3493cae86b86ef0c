"""One claim to a lock on an object store: how it is taken, kept and given back.

The lock is an object. Whoever changes it names the version that was read (its tag), so of two that
are at it at once the store refuses one. What is written never repeats: each write has a word of its
own, by which a writer knows it again when the store's answer got lost.

No two clocks are compared. The holder counts from when it *sent* the last write that the store
took, by its own clock, and stops to count itself the holder some time before the lease is over. Who
waits takes the lock over after it has seen the same tag for a whole lease, by its own clock. The
first count began earlier than the second, so it ends earlier, whatever time either machine has.

There are no threads and no pauses here; `storage/locks/lease.py` adds both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from secrets import token_hex
from typing import Protocol

from deltaworks.storage.locks import owner as owners
from deltaworks.storage.locks.owner import Fate, Jvm, Owner, read_owner

LEASE_SECONDS = 60.0
"""How long a lock is its holder's after the last sign of life."""
MARGIN_SHARE = 1 / 6
"""The end of a lease that its holder does not use, because no two clocks run alike."""
RECENT_SHARE = 1 / 4
"""A sign of life that is younger than this share of a lease need not be given anew."""
_TRIES = 3
"""How often whoever was overtaken looks again at once."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that nobody sets, and that goes on while the machine sleeps where there is one."""


class LeaseStore(Protocol):
    """What a lock needs of a store; see `Bucket`."""

    def read(self, address: str) -> tuple[bytes, str] | None:
        """The content of an object and its tag; None when there is none."""

    def create(self, address: str, content: bytes) -> str | None:
        """Make an object; its tag, or None when there is one already."""

    def replace(self, address: str, content: bytes, *, tag: str) -> str | None:
        """Replace the object that has a tag; None when it is another one by now, or gone."""


class Holder(Protocol):
    """Who claims a lock, and what it can tell of others; see `storage/locks/owner.py`."""

    def signature(self, jvm: Jvm | None) -> Owner:
        """This process, as others read it."""

    def fate(self, owner: Owner) -> Fate:
        """What became of another one."""


class Claim:
    """A lock that is wanted, or held, or was held."""

    def __init__(
        self,
        store: LeaseStore,
        address: str,
        *,
        is_left: Callable[[object], bool] = lambda _: False,
        holder: Holder = owners,
        clock: Callable[[], float] = lambda: time.clock_gettime(_CLOCK),
    ) -> None:
        self.token = token_hex(16)
        """Nobody else has it, not even another claim of this process."""
        self.fence = 0
        """One more than the last holder's: who has the greater one came later."""
        self.lost = False
        """Whether the store has said that the lock is somebody else's."""
        self.sees_life = False
        """Whether the holder that is waited for gave a sign of life meanwhile."""
        self._store, self._address = store, address
        self._is_left, self._holder, self._clock = is_left, holder, clock
        self._tag = ""
        self._writes: set[str] = set()
        """The words of our writes that may be the one in the store."""
        self._sent: float | None = None
        """When the last write was sent that the store took."""
        self._seen: tuple[str, float] = ("", 0.0)
        """The tag that somebody else's lock has, and since when we know it."""

    def attempt(self) -> Owner | None:
        """Take the lock if it is free; else answer who has it."""
        owner: Owner = {}
        for _ in range(_TRIES):
            found = self._store.read(self._address)
            owner, tag = ({}, None) if found is None else (_signed(found[0]), found[1])
            is_mine = self._wrote(owner)  # the store's answer to it got lost
            if tag is not None and not is_mine and not self._is_free(owner, tag):
                return owner
            self.fence = fence_of(owner) + (0 if is_mine else 1)
            if self._write(tag):
                return None
        self.sees_life = True
        return owner

    def renew(self, jvm: Jvm | None = None) -> bool:
        """Give a sign of life; False when the lock is somebody else's."""
        while not self.lost and not self._write(self._tag, jvm=jvm):
            self._find_again()
        return not self.lost

    def confirm(self, *, anew: bool = False, jvm: Jvm | None = None) -> bool:
        """Whether the lock is surely ours, and will be for a while; the store is asked if need be.

        Whoever has read what it changes, then asks here, and then commits upon just what it read,
        cannot have missed a later holder: none can have come before the answer.
        """
        if anew or self._age() >= LEASE_SECONDS * RECENT_SHARE:
            self.renew(jvm)
        return self.is_held()

    def let_go(self) -> None:
        """Leave the lock free, unless it is somebody else's; its object stays, for the fence."""
        self._sent = None
        while not self.lost and not self._write(self._tag, is_free=True):
            self._find_again()
        self._sent = None

    def is_held(self) -> bool:
        """Whether nobody else can have the lock yet, by our own clock."""
        return self._age() < LEASE_SECONDS * (1 - MARGIN_SHARE)

    def _age(self) -> float:
        if self.lost or self._sent is None:
            return float("inf")
        return self._clock() - self._sent

    def _is_free(self, owner: Owner, tag: str) -> bool:
        """Whether its holder let the lock go, is gone, or has given no sign of life for long."""
        if owner.get("free") or self._is_left(owner.get("token")):
            return True
        if tag != self._seen[0]:
            self.sees_life = bool(self._seen[0])
            self._seen = (tag, self._clock())
        fate = self._holder.fate(owner)
        if fate in ("gone", "only jvm"):  # a JVM that works on asks no clock before it commits
            self.sees_life = fate == "only jvm"
            return fate == "gone"
        self.sees_life = self.sees_life or fate == "alive"
        return self._clock() - self._seen[1] >= LEASE_SECONDS

    def _find_again(self) -> None:
        """Our tag is not the lock's: by a write of ours that got no answer, or the lock is lost."""
        found = self._store.read(self._address)
        if found is None or not self._wrote(_signed(found[0])):
            self.lost = True
            return
        self._tag = found[1]

    def _wrote(self, owner: Owner) -> bool:
        return owner.get("token") == self.token and owner.get("write") in self._writes

    def _write(self, tag: str | None, *, jvm: Jvm | None = None, is_free: bool = False) -> bool:
        """Sign in the place of what has a tag, or of nothing; whether the store said yes."""
        write, sent = token_hex(8), self._clock()
        self._writes.add(write)
        mine = {"token": self.token, "write": write, "fence": self.fence}
        text = json.dumps({**mine, **self._words(jvm, is_free=is_free)})
        done = (
            self._store.create(self._address, text.encode())
            if tag is None
            else self._store.replace(self._address, text.encode(), tag=tag)
        )
        if done is None:
            return False
        self._tag, self._sent, self._writes = done, sent, {write}
        return True

    def _words(self, jvm: Jvm | None, *, is_free: bool) -> Owner:
        """What a lock says besides; drivers of older versions take one without a beat at once."""
        if is_free:
            return {"free": True}
        return {**self._holder.signature(jvm), "beat": time.time()}


def fence_of(owner: Owner) -> int:
    """The fence in a lock; 0 when there is none, as in those of older versions."""
    found = owner.get("fence")
    return found if isinstance(found, int) else 0


def _signed(content: bytes) -> Owner:
    return read_owner(content.decode("utf-8", errors="replace"))
