"""Cut a read into parts that several connections fetch side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

from deltaworks.connectors.databases.dialect import Dialect
from deltaworks.engines.spark.read.jdbc import PART

_MIN_BYTES = 8_000_000
"""What a connection of its own pays for."""
_MAX_BYTES = 256_000_000
"""From here on there are more parts than cores, so that a slow one holds up less."""
_PARTS_OF_A_CORE = 4


@dataclass(frozen=True)
class Slices:
    """What is cut, and the condition of each part; together they hold every row once."""

    expression: str = ""
    conditions: tuple[str, ...] = ()


def parts_for(size_bytes: int, *, cores: int) -> int:
    """How many parts pay for a table of a size."""
    side_by_side = min(size_bytes // _MIN_BYTES, cores)
    return max(1, side_by_side, min(size_bytes // _MAX_BYTES, cores * _PARTS_OF_A_CORE))


def block_slices(server: Dialect, blocks: int, parts: int) -> Slices:
    """Ranges of a table's blocks: each is read once, whatever the values are."""
    edges = sorted({blocks * part // parts for part in range(1, parts)} - {0})
    literals = [f"'({edge},0)'::tid" for edge in edges]
    return Slices("ctid", _between(server, literals, nulls=False))


def value_slices(server: Dialect, column: str, low: Any, high: Any, parts: int) -> Slices:
    """Equal ranges of a column between its lowest and its highest value; NULLs come first."""
    if low is None or low == high or parts == 1:
        return Slices()
    literals = [_literal(server, value) for value in _edges(low, high, parts)]
    return Slices(server.quoted(column), _between(server, literals, nulls=True))


def _edges(low: Any, high: Any, parts: int) -> list[Any]:
    if isinstance(low, int):
        return sorted({low + (high - low + 1) * n // parts for n in range(1, parts)} - {low})
    if isinstance(low, date) and not isinstance(low, datetime):
        days = _edges(low.toordinal(), high.toordinal(), parts)
        return [date.fromordinal(day) for day in days]
    return [low + (high - low) * n / parts for n in range(1, parts)]


def _literal(server: Dialect, value: Any) -> str:
    return str(value) if isinstance(value, int | Decimal) else server.literal(str(value))


def _between(server: Dialect, edges: Sequence[str], *, nulls: bool) -> tuple[str, ...]:
    part = server.quoted(PART)
    if not edges:
        return ()
    first = f"{part} < {edges[0]}" + (f" OR {part} IS NULL" if nulls else "")
    inner = [f"{part} >= {low} AND {part} < {high}" for low, high in pairwise(edges)]
    return (first, *inner, f"{part} >= {edges[-1]}")
