"""A lock on an object store, held by threads and waited for; the store is one in memory."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from deltaworks.config.object_stores import NO_STORES
from deltaworks.errors import GuardError, StorageError
from deltaworks.storage.locks import lease as leases
from deltaworks.storage.locks import lease_claim as claims
from deltaworks.storage.locks.lease import Lease, LockWait, leased
from deltaworks.storage.locks.lease_claim import Claim
from deltaworks.storage.locks.owner import named_jvm, signature

LOCK = "s3://lake/wh/.orders.lock"
NOBODY = 2**22 + 1
"""A process id that no process can have."""


class Store:
    """Objects by their address; it can be away, and lets a test act before each request."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.is_away = False
        self.before: Callable[[str], None] = lambda _: None

    def read(self, address: str) -> tuple[bytes, str] | None:
        self._ask("read")
        content = self.objects.get(address)
        return None if content is None else (content, _tag(content))

    def create(self, address: str, content: bytes) -> str | None:
        self._ask("create")
        return None if address in self.objects else self._put(address, content)

    def replace(self, address: str, content: bytes, *, tag: str) -> str | None:
        self._ask("replace")
        found = self.objects.get(address)
        return None if found is None or _tag(found) != tag else self._put(address, content)

    def sign(self, **owner: object) -> None:
        """Let somebody hold the lock."""
        self.objects[LOCK] = json.dumps(owner).encode()

    def signed(self) -> dict[str, Any]:
        """What the lock says now."""
        return dict(json.loads(self.objects[LOCK]))

    def _put(self, address: str, content: bytes) -> str:
        self.objects[address] = content
        return _tag(content)

    def _ask(self, what: str) -> None:
        self.before(what)
        if self.is_away:
            raise StorageError("the store is away")


def _tag(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store in which every lock of the test lies; leases are short."""
    made = Store()
    monkeypatch.setattr(leases, "Bucket", lambda *_: made)
    monkeypatch.setattr(leases, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.6)
    return made


def hold(wait: float = 0.0, notify: Callable[[str], None] = lambda _: None) -> Any:
    return leased(LOCK, NO_STORES, LockWait(wait, notify, lambda: None))


def neighbour(**changed: object) -> dict[str, object]:
    """A driver of this machine and namespace that ended, as it had signed."""
    return {**signature(None), "pid": NOBODY, "token": "other", "fence": 4, **changed}


def old_driver(**changed: object) -> dict[str, object]:
    """What a driver signs that does not say yet where its process ids belong."""
    told = {"host": socket.gethostname(), "pid": NOBODY, "started": 1.0, "jvm": None}
    return {**told, "token": "old", "beat": time.time(), **changed}


def test_a_lock_that_was_let_go_stays_for_its_fence(store: Store) -> None:
    with hold() as lease:
        lease.require()
        assert (lease.fence, store.signed()["fence"]) == (1, 1)
    assert store.signed().keys() == {"token", "write", "fence", "free"}
    with hold() as lease:
        assert lease.fence == 2


def test_what_a_dead_neighbour_held_is_free_at_once(store: Store) -> None:
    store.sign(**neighbour())
    with hold() as lease:
        assert lease.fence == 5


@pytest.mark.parametrize("place", ["namespace", "boot", "machine"])
def test_a_driver_with_our_hostname_that_cannot_be_seen_is_waited_for(
    store: Store, place: str
) -> None:
    """Two containers may have one hostname, and each finds no process with the other's id."""
    store.sign(**neighbour(**{place: "another"}))
    start, said = time.monotonic(), list[str]()
    with hold(notify=said.append):
        assert time.monotonic() - start >= 0.6
    assert said == [f"waiting for process {NOBODY} on {socket.gethostname()} to finish"]


@pytest.mark.parametrize("behind", [0.0, 100_000.0], ids=["with our clock", "with another clock"])
def test_an_old_driver_that_renews_its_lock_keeps_it(store: Store, behind: float) -> None:
    store.sign(**old_driver())
    owner = old_driver(host="elsewhere")

    def beat(what: str) -> None:
        if what == "read":
            store.sign(**{**owner, "beat": time.time() - behind})

    store.before = beat
    with pytest.raises(GuardError, match="on elsewhere") as caught, hold(1.0):
        pass
    assert "gave up after 1 s" in caught.value.hint


def test_an_old_driver_that_does_not_renew_its_lock_loses_it(store: Store) -> None:
    store.sign(**old_driver(beat=time.time() + 100_000))
    start = time.monotonic()
    with hold() as lease:
        assert time.monotonic() - start >= 0.6
        assert lease.fence == 1


def test_a_lock_whose_jvm_works_on_is_not_taken(store: Store) -> None:
    me = psutil.Process()
    jvm = named_jvm(me.pid, me.create_time())
    store.sign(**neighbour(jvm=[jvm.pid, jvm.started], jvm_ticks=jvm.ticks))
    with pytest.raises(GuardError, match="in use") as caught, hold(0.8):
        pass
    assert f"its Spark is process {me.pid}" in caught.value.hint


def test_two_threads_of_one_process_are_two(store: Store) -> None:
    """Also while the answer to the first one's request is on its way."""
    inside, most = list[int](), list[int]()
    slow = threading.local()

    def before(what: str) -> None:
        if what != "read" and getattr(slow, "n", 1) == 0:
            time.sleep(0.05)

    def work(n: int) -> None:
        slow.n = n
        with hold(10.0) as lease:
            inside.append(n)
            most.append(len(inside))
            time.sleep(0.02)
            lease.require()
            inside.remove(n)

    store.before = before
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def test_what_this_process_could_not_let_go_it_may_take_again(store: Store) -> None:
    with hold():
        store.is_away = True
    store.is_away = False
    assert "free" not in store.signed()
    with hold() as lease:
        assert lease.fence == 2


def test_a_lock_that_may_have_been_taken_is_not_in_the_way_of_its_own_process(
    store: Store,
) -> None:
    def lost_answer(what: str) -> None:
        store.is_away = what == "create"
        if store.is_away:
            store.sign(**signature(None), token=tokens[-1])

    tokens = list[str]()

    class Seen(Claim):
        def __init__(self, *args: Any, **words: Any) -> None:
            super().__init__(*args, **words)
            tokens.append(self.token)

    store.before = lost_answer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "Claim", Seen)
        with pytest.raises(StorageError), hold():
            pass
    store.is_away, store.before = False, lambda _: None
    with hold():
        pass


class Clock:
    """A clock that a test sets forward."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def held(store: Store, clock: Clock) -> Lease:
    claim = Claim(store, LOCK, clock=clock)
    assert claim.attempt() is None
    return Lease(claim, LOCK, lambda: None)


def test_a_driver_that_wakes_up_does_not_pass_the_check(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stood still for longer than its lease, and its renewals with it."""
    monkeypatch.setattr(claims, "LEASE_SECONDS", 60.0)
    clock = Clock()
    lease = held(store, clock)
    clock.now = 30.0
    lease.require()  # nobody else took it: it is renewed, and ours
    clock.now = 1000.0
    lease.require()
    clock.now = 2000.0
    store.sign(**neighbour(namespace="another"))
    with pytest.raises(GuardError, match="was taken over"):
        lease.require()
    lease.release()
    assert store.signed()["token"] == "other"  # noqa: S105 - no secret


def test_a_lock_whose_object_is_gone_is_lost(store: Store) -> None:
    clock = Clock()
    lease = held(store, clock)
    del store.objects[LOCK]
    clock.now = 1000.0
    with pytest.raises(GuardError, match="was taken over"):
        lease.require()
    lease.release()
    assert store.objects == {}


def test_who_lets_go_does_not_pass_the_check(store: Store) -> None:
    lease = held(store, Clock())
    lease.release()
    with pytest.raises(GuardError):
        lease.require()


def test_the_lock_is_renewed_also_when_the_store_is_away_for_a_while(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_BEAT_SECONDS", 0.02)
    beats = list[str]()
    with hold() as lease:
        store.before = beats.append
        store.is_away = True
        time.sleep(0.1)
        store.is_away = False
        time.sleep(0.1)
        lease.require()
    assert len(beats) > 3


def test_whoever_is_overtaken_again_and_again_is_told_who_has_the_lock(store: Store) -> None:
    """Others are faster at every try."""
    count = iter(range(100))

    def faster(what: str) -> None:
        if what != "read":
            store.sign(token=f"other {next(count)}", free=True, fence=9)

    store.before = faster
    claim = Claim(store, LOCK)
    assert claim.attempt() is not None
    assert claim.sees_life
    store.before = lambda _: None
    assert claim.attempt() is None
    assert claim.fence == 10


class Forgetful(Store):
    """Does what it is asked, and says that it was too late: the first answer got lost."""

    def __init__(self) -> None:
        super().__init__()
        self.forgets = True

    def _put(self, address: str, content: bytes) -> str:
        tag = super()._put(address, content)
        self.forgets = not self.forgets
        return None if not self.forgets else tag  # type: ignore[return-value]


def test_whose_answer_was_lost_knows_its_own_write_again() -> None:
    store, clock = Forgetful(), Clock()
    claim = Claim(store, LOCK, clock=clock)
    assert claim.attempt() is None
    assert claim.fence == store.signed()["fence"] == 1
    assert claim.renew()
    clock.now = 1000.0
    assert not claim.is_held()
    assert claim.confirm()
    claim.let_go()
    assert (claim.lost, claim.is_held(), store.signed()["free"]) == (False, False, True)


def test_a_process_that_was_copied_with_its_lock_does_not_share_it(store: Store) -> None:
    """By a snapshot of its machine, or by a fork: both have the token."""
    one = Claim(store, LOCK)
    assert one.attempt() is None
    two = Claim(store, LOCK)
    two.__dict__.update(one.__dict__, _writes=set(one._writes))
    assert two.renew()
    assert not one.renew()
    assert (one.lost, two.lost) == (True, False)


def test_a_run_hears_at_the_next_beat_that_its_lock_is_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And can stop what Spark does for it."""
    monkeypatch.setattr(leases, "_BEAT_SECONDS", 0.02)
    heard = threading.Event()
    patience = LockWait(0.0, lambda _: None, lambda: None, when_lost=heard.set)
    with leased(LOCK, NO_STORES, patience) as lease:
        time.sleep(0.05)
        assert not heard.is_set()
        store.sign(**neighbour(namespace="another"))
        assert heard.wait(5)
        with pytest.raises(GuardError):
            lease.require()
    assert store.signed()["token"] == "other"  # noqa: S105 - no secret


@pytest.mark.parametrize(
    "wrong", [{"token": []}, {"pid": "x"}, {"started": None}, {"fence": "x"}, {"write": {}}]
)
def test_a_lock_that_holds_anything_else_is_taken_after_a_lease(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, object]
) -> None:
    store = Store()
    store.sign(**{**signature(None), "token": "other", "fence": 3, **wrong})
    monkeypatch.setattr(leases, "Bucket", lambda *_: store)
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.3)
    monkeypatch.setattr(leases, "_POLL_SECONDS", 0.05)
    with leased(LOCK, NO_STORES, LockWait(5, lambda _: None, lambda: None)):
        assert store.signed()["pid"] == psutil.Process().pid
