"""The bounds a column's values must keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.check import RowCheck
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example
from deltaworks.contracts.scalar import Bound

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class InRangeCheck(RowCheck):
    """Every value of a column lies between two bounds."""

    example: ClassVar[Example] = {"column": "amount", "min": 0}

    column: str
    """The column whose values are looked at."""
    min: Bound = None
    """The least value, which is allowed itself: a number, a text, or a date in quotes."""
    max: Bound = None
    """The greatest value, which is allowed itself."""
    exclude_min: bool = False
    """Whether values must be greater than `min`."""
    exclude_max: bool = False
    """Whether values must be less than `max`."""
    allow_null: bool = False
    """Whether NULL passes."""

    def problems(self) -> tuple[str, ...]:
        return tuple(self._problems())

    def _problems(self) -> Iterator[str]:
        low, high = self.min, self.max
        if low is None and high is None:
            yield 'say "min", "max" or both'
        for name, bound in (("min", low), ("max", high)):
            if bound is None and getattr(self, f"exclude_{name}"):
                yield f'"exclude_{name}" needs "{name}"'
        if low is None or high is None:
            return
        if isinstance(low, str) != isinstance(high, str):
            yield '"min" and "max" must be of one kind, both numbers or both texts'
        elif not isinstance(low, str) and not isinstance(high, str) and low > high:
            yield f'"min" is {low}, more than "max", which is {high}'

    def rule_text(self) -> str:
        above = "<" if self.exclude_min else "<="
        below = "<" if self.exclude_max else "<="
        low = "" if self.min is None else f"{self.min} {above} "
        high = "" if self.max is None else f" {below} {self.max}"
        return self.name or f"{low}{self.column}{high}"

    def columns_used(self) -> tuple[str, ...]:
        return (self.column,)

    def row_wise(self) -> bool:
        return True

    def condition(self, ctx: RunContext, frame: DataFrame) -> Column:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.frames.columns import column
        from deltaworks.engines.spark.frames.comparisons import column_type, comparable

        found, where = column(frame, self.column), f"check {self.plugin_type()}"
        holds = F.lit(1).cast("boolean")
        if column_type(frame, self.column).typeName() in ("float", "double"):
            holds = ~F.isnan(found)  # for Spark it is greater than every number
        if self.min is not None:
            low = comparable(frame, self.column, self.min, where=where)
            holds &= found > low if self.exclude_min else found >= low
        if self.max is not None:
            high = comparable(frame, self.column, self.max, where=where)
            holds &= found < high if self.exclude_max else found <= high
        return found.isNull() | holds if self.allow_null else holds
