"""Figures over neighbouring rows, put beside each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from deltaworks.contracts.aggregation import figure_name
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, Names, Some
from deltaworks.contracts.transform import Transform
from deltaworks.model.text_fault import twin_problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Edge = int | Literal["unbounded"]
_RANKS = ("row_number", "rank", "dense_rank")
_SHIFTS = ("lag", "lead")


class Frame(BaseModel):
    """Which rows around a row a function sees: two edges, counted from the row itself."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    rows: tuple[Edge, Edge] | None = None
    """By rows, such as `[-6, 0]` for the six before and the row itself."""
    range: tuple[Edge, Edge] | None = None
    """By the value of the one column in `order_by`, such as `[-10, 10]`."""


class WindowFunction(BaseModel):
    """One new column."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    function: Literal[
        "row_number",
        "rank",
        "dense_rank",
        "lag",
        "lead",
        "sum",
        "avg",
        "min",
        "max",
        "count",
        "first",
        "last",
    ]
    """What is computed."""
    column: str = ""
    """The column it looks at; left out for ranks, and for `count` to count rows."""
    alias: str = ""
    """The new column's name; function and column when left out."""
    offset: int = Field(default=1, ge=1)
    """How many rows `lag` looks back and `lead` ahead."""
    frame: Frame | None = None
    """The rows it sees; with `order_by` all up to the row, else the whole part."""

    def result_name(self) -> str:
        """The name of the new column."""
        return self.alias or figure_name(self.function, self.column)

    def problems(self, *, ordered: bool) -> list[str]:
        """What is wrong between the fields."""
        found = []
        plain = self.function in (*_RANKS, *_SHIFTS)
        if self.function in _RANKS and self.column:
            found.append(f'"{self.function}" takes no "column"')
        if not self.column and self.function not in (*_RANKS, "count"):
            found.append(f'"{self.function}" needs a "column"')
        if not ordered and (plain or self.function in ("first", "last")):
            found.append(f'"{self.function}" needs "order_by"')
        if self.frame and plain:
            found.append(f'"{self.function}" takes no "frame"')
        if self.frame and bool(self.frame.rows) == bool(self.frame.range):
            found.append('a "frame" says either "rows" or "range"')
        return found


class WindowTransform(Transform):
    """Every row with new columns that look at the rows of its part, such as ranks and totals."""

    example: ClassVar[Example] = {
        "partition_by": ["name"],
        "order_by": ["id desc"],
        "functions": [{"function": "sum", "column": "amount", "alias": "running"}],
    }
    row_preserving: ClassVar[bool] = True

    partition_by: Names = ()
    """Columns that make a part; none makes one part of all rows."""
    order_by: Names = ()
    """Columns that order a part; `id desc` turns one round, and NULLs come last either way."""
    functions: Annotated[tuple[WindowFunction, ...], Some]
    """The new columns; where the order leaves rows equal, their content decides, never chance."""

    def problems(self) -> tuple[str, ...]:
        ordered = bool(self.order_by)
        found = [p for wanted in self.functions for p in wanted.problems(ordered=ordered)]
        if problem := twin_problem(wanted.result_name() for wanted in self.functions):
            found.append(f'{problem}; give one of them an "alias"')
        return tuple(found)

    def row_wise(self) -> bool:
        return False

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.frames.columns import refuse_twins, require_columns
        from deltaworks.engines.spark.transforms.window import Parts, windowed

        require_columns(frame, self.partition_by, where="window")
        parts = Parts.of(frame, self.partition_by, self.order_by)
        new = [
            windowed(
                parts,
                wanted.function,
                wanted.column,
                offset=wanted.offset,
                rows=wanted.frame.rows if wanted.frame else None,
                values=wanted.frame.range if wanted.frame else None,
            ).alias(wanted.result_name())
            for wanted in self.functions
        ]
        names = [*frame.columns, *(wanted.result_name() for wanted in self.functions)]
        refuse_twins(names, where="window", hint='give one of them an "alias"')
        return frame.select(F.col("*"), *new)
