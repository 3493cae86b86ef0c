"""The values a column may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.check import RowCheck
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example
from deltaworks.contracts.scalar import Scalars

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MAX_SHOWN = 5


class AcceptedValuesCheck(RowCheck):
    """Every value of a column is one of a list."""

    example: ClassVar[Example] = {"column": "name", "values": ["ann", "bob"]}

    column: str
    """The column whose values are looked at."""
    values: Scalars
    """What it may hold, compared exactly."""
    allow_null: bool = False
    """Whether NULL passes."""

    def rule_text(self) -> str:
        shown = [str(value) for value in self.values[:_MAX_SHOWN]]
        more = ", ..." if len(self.values) > _MAX_SHOWN else ""
        return self.name or f"{self.column} in ({', '.join(shown)}{more})"

    def columns_used(self) -> tuple[str, ...]:
        return (self.column,)

    def row_wise(self) -> bool:
        return True

    def condition(self, ctx: RunContext, frame: DataFrame) -> Column:
        from deltaworks.engines.spark.frames.columns import column
        from deltaworks.engines.spark.frames.comparisons import comparable

        found = column(frame, self.column)
        where = f"check {self.plugin_type()}"
        accepted = [comparable(frame, self.column, value, where=where) for value in self.values]
        holds = found.isin(*accepted)
        return found.isNull() | holds if self.allow_null else holds
