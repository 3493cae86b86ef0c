"""Leases under pauses, wrong clocks, lost and late requests, crashes: real code, paper store."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from deltaworks.storage.locks.lease_claim import LEASE_SECONDS, Claim
from deltaworks.storage.locks.owner import Fate, Owner
from tests.unit.lease_world import Driver, ReplayPath, World, fence_in

WAYS = st.sampled_from(["pass", "pass", "pass", "lose", "repeat", "delay"])
WHICH = st.integers(0, 2)
JOBS = st.sampled_from(["take", "take", "commit", "commit", "renew", "let go"])
SPANS = st.sampled_from([0.5, 5.0, 12.0, 46.0, 58.0, 64.0, 200.0])
MAX_DRIFT = 0.05
"""How much faster or slower than true time a clock may run."""


class Leases(RuleBasedStateMachine):
    """Three drivers at one lock; two share a place, the third only looks as if it did."""

    kind: ClassVar[type[Claim]] = Claim

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.count = 0
        self.dead: set[object] = set()
        clocks = ((0.0, 1.0), (1e6, 1 + MAX_DRIFT), (-4e3, 1 - MAX_DRIFT))
        self.clocks = dict(enumerate(clocks))
        self.drivers = {n: self.born(n) for n in self.clocks}
        self.since: dict[str, int] = {}
        """How many writes there were when a claim was first seen to be the holder's."""

    def born(self, n: int) -> Driver:
        self.count += 1
        offset, rate = self.clocks[n]
        place = "far" if n == 2 else "here"
        return Driver(self.world, name=self.count, place=place, offset=offset, rate=rate)

    def fate(self, owner: Owner) -> Fate:
        return "gone" if owner.get("name") in self.dead else "alive"

    def begin(self, driver: Driver, job: str) -> None:
        claim = driver.claim
        if job == "take" and (claim is None or claim.lost):
            driver.claims(self.kind, self.fate)
        claim = driver.claim
        if claim is None:
            return
        if job == "take":
            driver.start(claim.attempt if not driver.is_holder else claim.renew)
        elif job == "commit":
            driver.start(driver.commit)
        elif job == "renew" and claim.fence:
            driver.start(claim.renew)
        elif job == "let go" and claim.fence:
            driver.start(self.letting_go(driver, claim))

    def letting_go(self, driver: Driver, claim: Claim) -> Callable[[], None]:
        def let_go() -> None:
            try:
                claim.let_go()
            finally:
                driver.claim = None

        return let_go

    @rule(n=WHICH, job=JOBS)
    def starts(self, n: int, job: str) -> None:
        if not self.drivers[n].is_busy:
            self.begin(self.drivers[n], job)

    @rule(n=WHICH, job=JOBS, ways=st.lists(WAYS, max_size=6))
    def does(self, n: int, job: str, ways: list[ReplayPath]) -> None:
        driver = self.drivers[n]
        if not driver.is_busy:
            self.begin(driver, job)
        for way in ways:
            if driver.is_busy:
                driver.go_on(way)
        driver.finish()

    @rule(n=WHICH, m=WHICH, spans=st.tuples(SPANS, SPANS), stops=st.integers(0, 2))
    def waits_while_a_request_takes_long(
        self, n: int, m: int, spans: tuple[float, float], stops: int
    ) -> None:
        """A holder renews, and its request or the answer takes long; another one waits."""
        if n == m or self.drivers[n].is_busy or self.drivers[m].is_busy:
            return
        self.begin(self.drivers[n], "take")
        for _ in range(stops):
            if self.drivers[n].is_busy:
                self.drivers[n].go_on()
        self.does(m, "take", [])
        self.time_passes(spans[0])
        self.drivers[n].finish()
        self.at_most_one_counts_itself_the_holder()
        self.time_passes(spans[1])
        self.does(m, "take", [])

    @rule(n=WHICH, ways=st.lists(WAYS, min_size=1, max_size=3))
    def goes_on(self, n: int, ways: list[ReplayPath]) -> None:
        for way in ways:
            if self.drivers[n].is_busy:
                self.drivers[n].go_on(way)

    @rule(span=SPANS)
    def time_passes(self, span: float) -> None:
        self.world.now += span

    @precondition(lambda self: self.world.on_their_way)
    @rule(n=st.integers(0, 9))
    def arrives_late(self, n: int) -> None:
        late = self.world.on_their_way
        late.pop(n % len(late))()

    @rule(n=WHICH)
    def crashes(self, n: int) -> None:
        self.drivers[n].crash()
        self.dead.add(self.drivers[n].name)
        self.drivers[n] = self.born(n)

    @invariant()
    def at_most_one_counts_itself_the_holder(self) -> None:
        holders = [driver for driver in self.drivers.values() if driver.is_holder]
        assert len(holders) <= 1
        for driver in holders:
            assert driver.claim is not None
            assert self.world.signers[-1] == driver.claim.token
            self.since.setdefault(driver.claim.token, len(self.world.signers))

    @invariant()
    def no_earlier_holder_commits_after_a_later_one(self) -> None:
        assert self.world.commits == sorted(self.world.commits)
        assert all(fence <= fence_in(self.world) for fence in self.world.commits[-1:])

    @invariant()
    def nobody_loses_a_lock_that_nobody_else_took(self) -> None:
        for driver in self.drivers.values():
            claim = driver.claim
            if claim is not None and claim.lost and claim.token in self.since:
                assert set(self.world.signers[self.since[claim.token] :]) - {claim.token}

    def teardown(self) -> None:
        """However it stands: when nobody renews a lock any more, somebody gets it."""
        for driver in self.drivers.values():
            driver.crash()
        last = Driver(self.world, name=0, place="far away", offset=7.0, rate=1 - MAX_DRIFT)
        last.claims(self.kind, self.fate)
        assert last.claim is not None
        end = self.world.now + (LEASE_SECONDS + 3) / (1 - MAX_DRIFT)
        while not last.is_holder and self.world.now < end:
            last.start(last.claim.attempt)
            last.finish()
            self.world.now += 1
        assert last.is_holder
        last.start(last.commit)
        last.finish()
        assert self.world.commits[-1] == last.claim.fence == fence_in(self.world)


FEW = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestLeases = Leases.TestCase
TestLeases.settings = FEW


class CountsFromTheAnswer(Claim):
    """A slow answer makes its lease longer."""

    def _write(self, *args: object, **words: object) -> bool:
        done = super()._write(*args, **words)  # type: ignore[arg-type]
        self._sent = self._clock() if done else self._sent
        return done


class UsesTheWholeLease(Claim):
    """Its clock may run slower than that of whoever waits."""

    def is_held(self) -> bool:
        return self._age() < LEASE_SECONDS


class BelievesItself(Claim):
    """Goes by what it last heard, however long ago."""

    def is_held(self) -> bool:
        return not self.lost and self._sent is not None


class TakesBack(Claim):
    """Whatever is there now, it writes over it."""

    def _find_again(self) -> None:
        found = self._store.read(self._address)
        self.lost, self._tag = found is None, found[1] if found else ""


class GivesUp(Claim):
    """An answer that got lost counts as a lock that got lost."""

    def _find_again(self) -> None:
        self.lost = True


class CallsStrangersDead(Claim):
    """A process id that it does not find is dead, whoever gave it."""

    def _is_free(self, owner: Owner, tag: str) -> bool:
        return self._holder.fate(owner) != "alive" or super()._is_free(owner, tag)


class IsImpatient(Claim):
    """Counts from the first look, though the holder has renewed since."""

    def _is_free(self, owner: Owner, tag: str) -> bool:
        return super()._is_free(owner, tag if not self._seen[0] else self._seen[0])


@pytest.mark.parametrize(
    "kind",
    [
        CountsFromTheAnswer,
        UsesTheWholeLease,
        BelievesItself,
        TakesBack,
        GivesUp,
        CallsStrangersDead,
        IsImpatient,
    ],
)
def test_the_model_notices_a_wrong_decision(kind: type[Claim]) -> None:
    class Wrong(Leases):
        pass

    Wrong.kind = kind
    many = settings(FEW, max_examples=400, phases=[Phase.generate], database=None, derandomize=True)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Wrong, settings=many)
