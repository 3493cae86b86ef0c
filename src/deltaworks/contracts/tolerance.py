"""How many rows may fail a check, as people write it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_WHOLE = 100


@dataclass(frozen=True)
class Tolerance:
    """A number of rows, or a share of them in percent; neither may be exceeded."""

    rows: int | None = None
    percent: Decimal | None = None

    def allows(self, failed: int, *, of: int) -> bool:
        """Whether so many failures among so many rows are few enough."""
        if self.percent is not None:
            return failed * _WHOLE <= self.percent * of
        return failed <= (self.rows or 0)

    def __str__(self) -> str:
        return str(self.rows or 0) if self.percent is None else f"{self.percent}%"


NONE = Tolerance(rows=0)


def tolerance(value: object) -> Tolerance:
    """`10` or `0.1%` as a tolerance."""
    text = str(value).strip()
    if isinstance(value, str | int) and not isinstance(value, bool):
        if text.isdecimal():
            return Tolerance(rows=int(text))
        match = _SHARE.fullmatch(text)
        if match is not None and Decimal(match[1]) <= _WHOLE:
            return Tolerance(percent=Decimal(match[1]))
    shown = f'"{text.lower() if isinstance(value, bool) else text}"'
    raise ValueError(f"{shown} is no number of rows or share of them; write 10 or 0.1%")


def _parsed(value: Any) -> Any:
    return value if value is None or isinstance(value, Tolerance) else tolerance(value)


MaxFailed = Annotated[
    Tolerance | None,
    BeforeValidator(_parsed),
    PlainSerializer(lambda found: None if found is None else str(found)),
    WithJsonSchema({"type": ["string", "integer", "null"]}),
]
"""So many rows, or such a share of them, may fail: `10` or `0.1%`."""


def limit_problems(plugin: object) -> tuple[str, ...]:
    """What is wrong with a limit of rows in quarantine where a plug-in puts none there."""
    limit, on_error = getattr(plugin, "max_failed", None), getattr(plugin, "on_error", None)
    if limit is None or on_error in (None, "quarantine"):
        return ()
    return ('"max_failed" goes with "on_error: quarantine"',)
