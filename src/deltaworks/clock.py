"""Time as something that is passed in, so that tests can hold it still."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time of day and measures how long things take."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """The time of day in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        return time.monotonic()


def parse_moment(text: str) -> datetime:
    """A moment as people write it; UTC where they name no zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a moment; write it as 2026-01-31T12:00:00Z') from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
