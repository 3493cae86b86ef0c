"""Orders as text, the same for every case."""

from __future__ import annotations

from collections.abc import Iterable

HEADER = "order_id,customer_id,country,amount,status,updated_at,note\n"
COUNTRIES = ("NL", "DE", "FR", "BE", "ES", "IT", "PL", "SE")


def order_line(i: int, *, day: int = 1, amount: float | None = None) -> str:
    """One order of a day in January."""
    country = COUNTRIES[i * 7 % len(COUNTRIES)]
    moment = f"2026-01-{day:02d} {i % 24:02d}:{i % 60:02d}:00"
    value = i % 9973 / 100 if amount is None else amount
    return f"{i},{i * 31 % 50_000},{country},{value},open,{moment},order number {i}\n"


def as_csv(lines: Iterable[str]) -> str:
    """A whole file."""
    return HEADER + "".join(lines)
