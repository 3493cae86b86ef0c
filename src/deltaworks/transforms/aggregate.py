"""One row per group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from deltaworks.contracts.aggregation import Aggregation, aggregation_problems
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, Names, Some
from deltaworks.contracts.transform import LeavesOut, Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class AggregateTransform(Transform):
    """Groups of rows and figures of each."""

    example: ClassVar[Example] = {
        "group_by": ["name"],
        "aggregations": [{"column": "amount", "function": "sum", "alias": "total"}],
    }

    group_by: Names = ()
    """Columns that make a group; none makes one group of all rows."""
    aggregations: Annotated[tuple[Aggregation, ...], Some]
    """Figures of each group."""

    def problems(self) -> tuple[str, ...]:
        return aggregation_problems(self.aggregations, group_by=self.group_by)

    def leaves_out(self) -> LeavesOut:
        return "nothing"

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import column, refuse_twins, require_columns
        from deltaworks.engines.spark.transforms.aggregate import figure

        require_columns(frame, self.group_by, where="aggregate")
        keys = [column(frame, name) for name in self.group_by]
        figures = [figure(frame, wanted, where="aggregate") for wanted in self.aggregations]
        result = frame.groupBy(*keys).agg(*figures)
        refuse_twins(result.columns, where="aggregate", hint='give one of them an "alias"')
        return result
