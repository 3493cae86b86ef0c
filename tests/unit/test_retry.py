"""Commits are tried again after a conflict only (P12, A5)."""

from __future__ import annotations

import pytest

from deltaworks.config.project import RetrySettings
from deltaworks.errors import CommitConflict, SchemaMismatch
from deltaworks.runtime.batch.load import retried

QUICK = RetrySettings(attempts=3, wait_seconds=0, most_wait_seconds=0)


def test_a_conflict_is_tried_again_and_the_attempt_is_told() -> None:
    def work(attempt: int) -> int:
        if attempt < 3:
            raise CommitConflict("another writer was faster")
        return attempt

    assert retried(work, QUICK) == 3


def test_a_conflict_that_lasts_is_raised_after_the_last_attempt() -> None:
    seen: list[int] = []

    def work(attempt: int) -> None:
        seen.append(attempt)
        raise CommitConflict("another writer was faster")

    with pytest.raises(CommitConflict):
        retried(work, QUICK)
    assert seen == [1, 2, 3]


def test_a_deterministic_failure_is_never_tried_again() -> None:
    seen: list[int] = []

    def work(attempt: int) -> None:
        seen.append(attempt)
        raise SchemaMismatch("the rows do not fit")

    with pytest.raises(SchemaMismatch):
        retried(work, QUICK)
    assert seen == [1]
