"""One row per group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, Names, Some
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Function = Literal[
    "sum",
    "avg",
    "min",
    "max",
    "count",
    "count_distinct",
    "median",
    "stddev",
    "variance",
    "first",
    "last",
    "collect_list",
    "collect_set",
]


class Aggregation(BaseModel):
    """One figure of a group."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    column: str = ""
    """The column to aggregate; left out only for `count`, which then counts rows."""
    function: Function
    """How its values become one."""
    alias: str = ""
    """The result's name; function and column when left out."""

    def result_name(self) -> str:
        """The name the figure gets."""
        return self.alias or "_".join(part for part in (self.function, self.column) if part)


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
        return tuple(
            f'aggregation "{wanted.function}" needs a "column"'
            for wanted in self.aggregations
            if not wanted.column and wanted.function != "count"
        )

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.columns import column, require_columns

        named = [wanted.column for wanted in self.aggregations if wanted.column]
        require_columns(frame, [*self.group_by, *named], where="aggregate")
        figures = [_figure(frame, wanted) for wanted in self.aggregations]
        return frame.groupBy(*[column(frame, name) for name in self.group_by]).agg(*figures)


def _figure(frame: DataFrame, wanted: Aggregation) -> Column:
    from pyspark.sql import functions as F

    from deltaworks.engines.spark.columns import column

    if not wanted.column:
        return F.count(F.lit(1)).alias(wanted.result_name())
    function = getattr(F, wanted.function)
    figure: Column = function(column(frame, wanted.column))
    return figure.alias(wanted.result_name())
