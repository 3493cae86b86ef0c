"""Time as something that is passed in, so that tests can hold it still."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


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


def parse_timestamp(text: str) -> datetime:
    """A timestamp as people write it; UTC where they name no zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a timestamp; write it as 2026-01-31T12:00:00Z') from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def parse_duration(text: str) -> timedelta:
    """A span of time as people write it: 90s, 30m, 2h or 1d."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not float(match["number"]):
        raise ValueError(f'"{text}" is not a span of time; write it as 90s, 30m, 2h or 1d')
    return timedelta(**{_UNITS[match["unit"]]: float(match["number"])})
