"""Functions over the rows around a row, with the same answer at every run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaworks.engines.spark.frames.columns import column, find_place, require_place
from deltaworks.engines.spark.frames.fingerprint import fingerprint
from deltaworks.engines.spark.transforms.aggregate import require_fit
from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

Edges = tuple[int | str, int | str]
_DIRECTION = re.compile(r"(?P<name>.+?)\s+(?P<word>asc|desc)", re.IGNORECASE | re.DOTALL)
_BY_PLACE = {"row_number", "lag", "lead", "first", "last"}
"""Functions whose answer depends on which of two equal rows comes first."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Rows in parts, each in an order."""

    frame: DataFrame
    spec: WindowSpec
    order: tuple[Column, ...]
    names: tuple[str, ...]

    @staticmethod
    def of(frame: DataFrame, partition_by: Sequence[str], order_by: Sequence[str]) -> Parts:
        """The parts that columns make, ordered by others; `id desc` turns one round."""
        from pyspark.sql import Window

        keys = [column(frame, name) for name in partition_by]
        found = [_ordered(frame, text) for text in order_by]
        return Parts(
            frame=frame,
            spec=Window.partitionBy(*keys),
            order=tuple(order for _, order in found),
            names=tuple(name for name, _ in found),
        )


def _ordered(frame: DataFrame, text: str) -> tuple[str, Column]:
    turned = None if find_place(frame.schema, text) else _DIRECTION.fullmatch(text)
    name = turned["name"] if turned else text
    require_place(frame, name, where="window")
    value = column(frame, name)
    is_down = turned is not None and turned["word"].lower() == "desc"
    return name, value.desc_nulls_last() if is_down else value.asc_nulls_last()


def windowed(
    parts: Parts,
    function: str,
    name: str,
    *,
    offset: int,
    rows: Edges | None,
    values: Edges | None,
) -> Column:
    """One function over the parts."""
    from pyspark.sql import functions as F

    if name:
        require_fit(parts.frame, function, name, where="window")
    value = column(parts.frame, name) if name else F.lit(1)
    if function in ("lag", "lead"):
        result: Column = getattr(F, function)(value, offset)
    elif function in ("row_number", "rank", "dense_rank"):
        result = getattr(F, function)()
    else:
        result = getattr(F, function)(value)
    return result.over(_spec(parts, function, rows=rows, values=values))


def _spec(parts: Parts, function: str, *, rows: Edges | None, values: Edges | None) -> WindowSpec:
    spec = parts.spec
    if rows is not None or function in _BY_PLACE:
        spec = spec.orderBy(*parts.order, fingerprint(parts.frame))
    elif parts.order:
        spec = spec.orderBy(*parts.order)
    if rows is not None:
        return spec.rowsBetween(_edge(rows[0], -1), _edge(rows[1], 1))
    if values is None:
        return spec
    _require_number(parts)
    return spec.rangeBetween(_edge(values[0], -1), _edge(values[1], 1))


def _edge(edge: int | str, side: int) -> int:
    from pyspark.sql import Window

    if isinstance(edge, int):
        return edge
    return Window.unboundedPreceding if side < 0 else Window.unboundedFollowing


def _require_number(parts: Parts) -> None:
    """A range counts from a value, so there must be one number to count from."""
    from pyspark.sql.types import NumericType

    kinds = [require_place(parts.frame, name, where="window").kind for name in parts.names]
    if len(kinds) != 1 or not isinstance(kinds[0], NumericType):
        raise SpecError(
            'window: a "range" needs exactly one column of numbers in "order_by"',
            hint='order by one number, or use "rows"',
        )
