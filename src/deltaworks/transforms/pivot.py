"""Turn values into columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from deltaworks.contracts.aggregation import Aggregation, aggregation_problems
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, Names, Some
from deltaworks.contracts.transform import LeavesOut, Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class PivotTransform(Transform):
    """One row per group, with figures for each value of a column side by side."""

    example: ClassVar[Example] = {
        "group_by": ["id"],
        "column": "name",
        "values": ["ann", "bob"],
        "aggregations": [{"column": "amount", "function": "sum"}],
    }

    group_by: Names = ()
    """Columns that make a group; none makes one group of all rows."""
    column: str
    """The column whose values become columns."""
    values: tuple[bool | int | float | str, ...] = ()
    """The values, in order; rows with others count as dropped. Found by reading when left out."""
    aggregations: Annotated[tuple[Aggregation, ...], Some]
    """Figures of each group and value; with several, a column is called `value_alias`."""

    def problems(self) -> tuple[str, ...]:
        return aggregation_problems(self.aggregations)

    def columns_known(self) -> bool:
        return bool(self.values)

    def leaves_out(self) -> LeavesOut:
        return "watched" if self.values else "nothing"

    def left_out(self, frame: DataFrame) -> Column | None:
        from deltaworks.engines.spark.frames.columns import column
        from deltaworks.engines.spark.transforms.pivot import typed_values, value_is_none_of

        if not self.values:
            return None
        typed = typed_values(frame, self.column, self.values)
        return value_is_none_of(column(frame, self.column), typed)

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import column, refuse_twins, require_columns
        from deltaworks.engines.spark.transforms.aggregate import figure
        from deltaworks.engines.spark.transforms.pivot import pivoted

        require_columns(frame, self.group_by, where="pivot")
        keys = [column(frame, name) for name in self.group_by]
        figures = [figure(frame, wanted, where="pivot") for wanted in self.aggregations]
        result = pivoted(frame, keys, self.column, values=self.values, figures=figures)
        refuse_twins(result.columns, where="pivot", hint="rename the columns of `group_by` first")
        return result
