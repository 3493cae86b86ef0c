"""Columns that must have a value."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.check import RowCheck
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, SomeNames

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class NotNullCheck(RowCheck):
    """No NULL in the named columns."""

    example: ClassVar[Example] = {"columns": ["id"]}

    columns: SomeNames
    """Columns that must have a value in every row."""

    def rule_text(self) -> str:
        return self.name or f"not_null({', '.join(self.columns)})"

    def columns_used(self) -> tuple[str, ...]:
        return self.columns

    def row_wise(self) -> bool:
        return True

    def condition(self, ctx: RunContext, frame: DataFrame) -> Column:
        from deltaworks.engines.spark.frames.columns import column

        present = [column(frame, name).isNotNull() for name in self.columns]
        return reduce(lambda left, right: left & right, present)
