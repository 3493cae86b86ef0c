"""Lengths of time as people write them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator

_DURATION = re.compile(r"(\d+)\s*([smhdw])")
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_MAX_DAYS = 365_000


def duration(text: str) -> timedelta:
    """`15m`, `24h` or `7d` as a length of time."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(f'"{text}" is not a length of time; write it as 15m, 24h or 7d')
    seconds = int(match[1]) * _SECONDS[match[2]]
    if seconds > _MAX_DAYS * _SECONDS["d"]:
        raise ValueError(f'"{text}" is too long; {_MAX_DAYS}d is the most')
    return timedelta(seconds=seconds)


def duration_text(length: timedelta) -> str:
    """A length of time in its two largest units, such as `1d 2h`."""
    left, parts = max(int(length.total_seconds()), 0), []
    for unit in ("d", "h", "m", "s"):
        count, left = divmod(left, _SECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"


def _checked(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    duration(str(value))
    return value


Duration = Annotated[str, BeforeValidator(_checked)]
"""A length of time, such as `24h`."""
