"""Add columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.expression import SqlExpression
from deltaworks.contracts.plugin import Example, OnceEach
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DeriveTransform(Transform):
    """New or replaced columns, each from an expression; later ones see earlier ones."""

    example: ClassVar[Example] = {"columns": {"twice": "amount * 2"}}
    row_preserving: ClassVar[bool] = True

    columns: Annotated[dict[str, SqlExpression], OnceEach]
    """Column name -> SQL expression; `address.city` sets a field where `address` is a struct."""

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.frames.nested import with_value

        for name, expression in self.columns.items():
            frame = with_value(frame, name, F.expr(expression))
        return frame
