"""Keep some rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.expression import SqlExpression
from deltaworks.contracts.plugin import Example
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FilterTransform(Transform):
    """Rows for which a condition is true; the rest count as dropped by this step."""

    example: ClassVar[Example] = {"condition": "amount > 1"}
    drops_rows: ClassVar[bool] = True

    condition: SqlExpression
    """Rows stay where this is true; false and NULL leave."""

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        return frame.filter(self.condition)
