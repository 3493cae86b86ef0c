"""Columns that tell rows apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.contracts.check import RowCheck
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, SomeNames

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from deltaworks.contracts.sink import Beside


class UniqueCheck(RowCheck):
    """No two rows have the same values in the named columns; NULL equals NULL."""

    example: ClassVar[Example] = {"columns": ["id"]}

    columns: SomeNames
    """Columns that together must differ from row to row."""
    scope: Literal["batch", "table"] = "batch"
    """Whether rows are compared with each other only, or also with those that stay in the table."""

    def problems(self) -> tuple[str, ...]:
        if self.scope == "table" and self.on_fail not in ("fail", "warn"):
            return (f'with "scope: table" rows cannot be taken out: "on_fail: {self.on_fail}"',)
        return ()

    def rule_text(self) -> str:
        where = " in the table" if self.scope == "table" else ""
        return self.name or f"unique({', '.join(self.columns)}){where}"

    def columns_used(self) -> tuple[str, ...]:
        return self.columns

    def looks_at_targets(self) -> bool:
        return self.scope == "table"

    def condition(self, ctx: RunContext, frame: DataFrame) -> Column:
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.frames.columns import column

        same = Window.partitionBy(*[column(frame, name) for name in self.columns])
        return F.count(F.lit(1)).over(same) == 1

    def condition_beside(
        self, ctx: RunContext, frame: DataFrame, targets: Sequence[Beside]
    ) -> Column:
        from functools import reduce

        conditions = [self._condition_in(ctx, frame, target) for target in targets]
        return reduce(lambda left, right: left & right, conditions or [self.condition(ctx, frame)])

    def _condition_in(self, ctx: RunContext, frame: DataFrame, target: Beside) -> Column:
        from deltaworks.engines.spark.delta.lookup import repeated, stands_in, with_columns

        if target.lands is not None:
            twice, pairs = repeated(target.lands, target.stays, self.columns)
            return ~stands_in(frame, twice, pairs, null_equals=True)
        alone = self.condition(ctx, frame)
        if target.stays is None:
            return alone
        known = with_columns(target.stays, self.columns)
        same = {name: name for name in self.columns}
        return alone & ~stands_in(frame, known, same, null_equals=True)
