"""Columns that tell the rows of a batch apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.check import RowCheck
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, SomeNames

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class UniqueCheck(RowCheck):
    """No two rows of the batch have the same values in the named columns."""

    example: ClassVar[Example] = {"columns": ["id"]}

    columns: SomeNames
    """Columns that together must differ from row to row."""

    def rule_text(self) -> str:
        return self.name or f"unique({', '.join(self.columns)})"

    def columns_used(self) -> tuple[str, ...]:
        return self.columns

    def condition(self, ctx: RunContext, frame: DataFrame) -> Column:
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.columns import column

        same = Window.partitionBy(*[column(frame, name) for name in self.columns])
        return F.count(F.lit(1)).over(same) == 1
