"""A store, clocks and processes that a test moves step by step, for the real code of leases.

Each process is a thread, and only one runs at a time: it stops at every request, before the request
reaches the store and before the answer reaches the process, and goes on when the test says so. So
everything may happen at every point: others act, time passes, the request or its answer is lost,
the client repeats it by itself, or it arrives much later.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any, Literal

from deltaworks.errors import StorageError
from deltaworks.storage.locks.lease_claim import Claim, fence_of
from deltaworks.storage.locks.owner import Fate, Jvm, Owner, read_owner

ReplayPath = Literal["pass", "lose", "repeat", "delay"]
"""What becomes of a request, or of its answer."""
LOCK = "s3://lake/.orders.lock"


class Crashed(BaseException):
    """Ends a process where it stands."""


class World:
    """The store with a lock and a table, the true time, and requests that are on their way."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lock: tuple[bytes, str] | None = None
        self.signers: list[str] = []
        """The token of every write of the lock that was done."""
        self.commits: list[int] = []
        """The fence of every commit of the table; its place is its version."""
        self.on_their_way: list[Callable[[], object]] = []

    def put(self, content: bytes, *, tag: str | None) -> str | None:
        """Replace the lock that has a tag, or make it where there is none."""
        if (None if self.lock is None else self.lock[1]) != tag:
            return None
        self.lock = (content, hashlib.md5(content, usedforsecurity=False).hexdigest())
        self.signers.append(str(read_owner(content.decode()).get("token")))
        return self.lock[1]

    def commit(self, version: int, fence: int) -> bool:
        """Make the next commit after a version; not when there is one already."""
        if len(self.commits) != version:
            return False
        self.commits.append(fence)
        return True


class Driver:
    """One process that wants the lock, with a clock of its own that is wrong and runs wrong."""

    def __init__(self, world: World, *, name: int, place: str, offset: float, rate: float) -> None:
        self.world, self.name, self.place = world, name, place
        self.claim: Claim | None = None
        self.is_dead = False
        self.refused = 0
        self._clock = lambda: offset + rate * world.now
        self._job: Callable[[], None] | None = None
        self._way: ReplayPath = "pass"
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def claims(self, kind: type[Claim], others: Callable[[Owner], Fate]) -> None:
        """Want the lock, or go on wanting it."""
        self.claim = kind(_Store(self), LOCK, holder=_Holder(self, others), clock=self._clock)

    @property
    def is_busy(self) -> bool:
        """Whether it stands at a request."""
        return self._thread is not None

    @property
    def is_holder(self) -> bool:
        """Whether it counts itself the holder."""
        return not self.is_dead and self.claim is not None and self.claim.is_held()

    def start(self, job: Callable[[], object]) -> None:
        """Begin to do something, up to its first request."""
        self._thread = threading.Thread(target=self._do, args=(job,), daemon=True)
        self._thread.start()
        self._wait()

    def go_on(self, way: ReplayPath = "pass") -> None:
        """Let the request, or the answer, take its way; up to the next stop."""
        self._way = way
        self._turn.release()
        self._wait()

    def finish(self) -> None:
        """Go on until it is done."""
        while self.is_busy:
            self.go_on()

    def crash(self) -> None:
        """End it where it stands; what it has sent stays on its way."""
        self.is_dead = True
        if self.is_busy:
            self.go_on()

    def request(self, effect: Callable[[], Any]) -> Any:
        """Send something to the store, from inside of the process."""
        way = self._stop()
        if way == "delay":
            self.world.on_their_way.append(effect)
        if way in ("lose", "delay"):
            raise StorageError("no answer")
        answer = effect()
        way = self._stop()
        if way in ("lose", "delay"):
            raise StorageError("no answer")
        return effect() if way == "repeat" else answer

    def commit(self) -> None:
        """Change the table: look, ask whether the lock is still ours, commit upon what was seen."""
        assert self.claim is not None
        version = self.request(lambda: len(self.world.commits))
        if self.claim.confirm():
            fence = self.claim.fence
            self.request(lambda: self.world.commit(version, fence))
        else:
            self.refused += 1

    def _stop(self) -> ReplayPath:
        self._back.release()
        self._turn.acquire()
        if self.is_dead:
            raise Crashed
        return self._way

    def _do(self, job: Callable[[], object]) -> None:
        try:
            job()
        except (StorageError, Crashed):
            pass
        finally:
            self._thread = None
            self._back.release()

    def _wait(self) -> None:
        assert self._back.acquire(timeout=10)


class _Store:
    """The store as one process reaches it."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._world = driver, driver.world

    def read(self, _address: str) -> tuple[bytes, str] | None:
        found: tuple[bytes, str] | None = self._driver.request(lambda: self._world.lock)
        return found

    def create(self, _address: str, content: bytes) -> str | None:
        made: str | None = self._driver.request(lambda: self._world.put(content, tag=None))
        return made

    def replace(self, _address: str, content: bytes, *, tag: str) -> str | None:
        made: str | None = self._driver.request(lambda: self._world.put(content, tag=tag))
        return made


class _Holder:
    """A process that says who it is, and sees those of its own place only."""

    def __init__(self, driver: Driver, others: Callable[[Owner], Fate]) -> None:
        self._driver, self._others = driver, others

    def signature(self, _jvm: Jvm | None) -> Owner:
        return {"host": "shop", "pid": 7, "place": self._driver.place, "name": self._driver.name}

    def fate(self, owner: Owner) -> Fate:
        return self._others(owner) if owner.get("place") == self._driver.place else "unknown"


def fence_in(world: World) -> int:
    """The fence that the lock has now."""
    return 0 if world.lock is None else fence_of(read_owner(world.lock[0].decode()))
