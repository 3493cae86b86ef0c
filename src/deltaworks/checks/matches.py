"""The form a column's values must have."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.check import RowCheck
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.pattern import Pattern
from deltaworks.contracts.plugin import Example

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class MatchesCheck(RowCheck):
    """Every value of a column has the form that a regular expression describes."""

    example: ClassVar[Example] = {"column": "name", "pattern": "[a-z]+"}

    column: str
    """The column whose values are looked at; other types are compared as text."""
    pattern: Pattern
    """A regular expression of Java's, which must match the whole value."""
    allow_null: bool = False
    """Whether NULL passes."""

    def rule_text(self) -> str:
        return self.name or f"{self.column} matches {self.pattern}"

    def columns_used(self) -> tuple[str, ...]:
        return (self.column,)

    def row_wise(self) -> bool:
        return True

    def condition(self, ctx: RunContext, frame: DataFrame) -> Column:
        from deltaworks.engines.spark.frames.columns import column
        from deltaworks.engines.spark.frames.regex import require_pattern

        require_pattern(ctx.spark, self.pattern, where=f"check {self.plugin_type()}")
        found = column(frame, self.column)
        holds = found.cast("string").rlike(rf"\A(?:{self.pattern})\z")
        return found.isNull() | holds if self.allow_null else holds
