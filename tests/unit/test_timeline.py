"""Which batches a table holds at a version: landings, undos, and restores back and forth."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from deltaworks.runtime.ledger.state import (
    DONE,
    REVERTED,
    UNDONE,
    BatchEntry,
    LedgerState,
    Restore,
    SinkEntry,
    after_restore,
    after_undo,
)
from deltaworks.runtime.ledger.timeline import Standing, sinks_of, standing

AT = datetime(2026, 1, 2, tzinfo=UTC)
A = frozenset({"a"})


def batch(n: int, version: int | None, *, replaces: bool = False, **sink: object) -> BatchEntry:
    found = SinkEntry(name="a", app_id="x", identity="t", txn_found=None)
    landed = {"landed": True, "committed": True, "version": version, **sink}
    return BatchEntry(
        n=n,
        batch_id=None,
        run_id=f"r{n}",
        spec="",
        generation=int(replaces),
        state=DONE,
        bounds={},
        sinks=(replace(found, **landed),),  # type: ignore[arg-type]
        at=AT,
        replaces=replaces,
    )


def state(*batches: BatchEntry) -> LedgerState:
    return LedgerState(batches=batches, events=10)


def restored(
    before: LedgerState,
    version: int,
    to: int,
    *,
    batches: tuple[int, ...] = (),
    revived: tuple[int, ...] = (),
) -> LedgerState:
    restore = Restore(
        restore_id=f"to-{to}",
        sink="a",
        location="/t",
        table_id="t",
        version_from=version - 1,
        version_to=to,
        generation=before.generation,
        version=version,
        batches=batches,
        revived=revived,
    )
    return after_restore(before, "restored", restore, 11)


def test_batches_are_there_from_their_version_on() -> None:
    known = state(batch(1, 0), batch(2, 3))
    assert standing(known, A, 2).present == {1}
    assert standing(known, A, 3).present == {1, 2}
    assert sinks_of(known, "t") == A
    assert sinks_of(known, "other") == frozenset()


def test_a_batch_that_changed_nothing_is_where_those_before_it_are() -> None:
    known = state(batch(1, 0), batch(2, 1), batch(3, None, committed=False), batch(4, 2))
    assert standing(known, A, 0).present == {1}
    assert standing(known, A, 1).present == {1, 2, 3}


def test_a_refresh_replaces_what_was_there() -> None:
    known = state(batch(1, 0), batch(2, 1, replaces=True))
    assert standing(known, A, 1).present == {2}
    assert standing(known, A, 0).present == {1}


def test_an_undo_takes_a_batch_out_until_the_table_goes_back() -> None:
    known = after_undo(state(batch(1, 0), batch(2, 1)), "undone", 2, {"versions": {"a": 2}}, 9)
    assert known.batch(2).state == UNDONE
    now = standing(known, A, 2)
    assert now == Standing(frozenset({1}), frozenset({2}), generation=0)
    known = restored(known, 3, 1, revived=(2,))
    assert (known.batch(2).state, known.batch(2).undone) == (DONE, {})
    assert standing(known, A, 3).present == {1, 2}


def test_a_table_goes_forward_again() -> None:
    known = restored(state(batch(1, 0), batch(2, 1)), 2, 0, batches=(2,))
    assert known.batch(2).state == REVERTED
    assert standing(known, A, 2).present == {1}
    known = restored(known, 3, 1, revived=(2,))
    assert known.batch(2).state == DONE
    assert standing(known, A, 3).present == {1, 2}


def test_an_undo_of_an_older_ledger_says_not_when() -> None:
    known = after_undo(state(batch(1, 0)), "undone", 1, {}, 9)
    assert known.batch(1).undone == {"a": None}
    assert standing(known, A, 5).present == frozenset()
