"""A condition every row must meet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.check import RowCheck
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.expression import SqlExpression
from deltaworks.contracts.plugin import Example

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_OTHER_ROWS = re.compile(r"\b(over|select)\b", re.IGNORECASE)


class ExpressionCheck(RowCheck):
    """True for every row; false and NULL fail."""

    example: ClassVar[Example] = {"rule": "amount >= 0"}

    rule: SqlExpression
    """An SQL condition, such as `amount >= 0`; write `amount is null or ...` to let NULL pass."""

    def rule_text(self) -> str:
        return self.name or self.rule

    def row_wise(self) -> bool:
        return _OTHER_ROWS.search(self.rule) is None

    def condition(self, ctx: RunContext, frame: DataFrame) -> Column:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.frames.columns import require_condition

        return require_condition(frame, F.expr(self.rule), text=self.rule)
