"""Trying a commit again: only after a conflict, never after a failure that would come again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import stamina

from deltaworks.config.project import RetrySettings
from deltaworks.errors import CommitConflict

Answer = TypeVar("Answer")


def retried(work: Callable[[int], Answer], settings: RetrySettings) -> Answer:
    """What the work answers; it is told which attempt it is, and tried again after a conflict."""
    for attempt in stamina.retry_context(
        on=CommitConflict,
        attempts=settings.attempts,
        timeout=None,
        wait_initial=settings.wait_seconds,
        wait_max=settings.most_wait_seconds,
        wait_jitter=settings.wait_seconds,
    ):
        with attempt:
            return work(attempt.num)
    raise AssertionError("a retry ends with an answer or an error")
