"""Bring columns of another step to the rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, SomeNames
from deltaworks.contracts.transform import LeavesOut, Transform
from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_KEY = "__deltaworks_key"
_LEAVES_OUT: dict[str, LeavesOut] = {
    "inner": "watched",
    "left": "nothing",
    "full": "nothing",
    "semi": "difference",
    "anti": "difference",
    "right": "unknown",
}
"""Of the rows that are joined; those of the other side are looked up."""


class JoinTransform(Transform):
    """Rows joined with another step or source on columns of equal name."""

    example: ClassVar[Example] = {"with": "other", "on": ["id"], "how": "semi"}

    with_: str = Field(alias="with")
    """The step or source to join with."""
    on: SomeNames
    """Columns of one name on both sides that must be equal; nested fields with semi and anti."""
    how: Literal["inner", "left", "right", "full", "semi", "anti"] = "inner"
    """Which rows stay: matches only, all of one side or both, or those with(out) a match."""

    def row_wise(self) -> bool:
        return self.how not in ("right", "full")

    def leaves_out(self) -> LeavesOut:
        return _LEAVES_OUT[self.how]

    def other_inputs(self) -> tuple[str, ...]:
        return (self.with_,)

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import require_columns
        from deltaworks.engines.spark.transforms.join import inner_join

        other = others[self.with_]
        only_looks = self.how in ("semi", "anti")
        require_columns(frame, self.on, where="join", nested=only_looks)
        require_columns(other, self.on, where=f'join with "{self.with_}"', nested=only_looks)
        self._require_same_types(frame, other)
        if only_looks:
            return self._matched(frame, other)
        self._refuse_twins(frame, other)
        if self.how == "inner" and ctx.watch_left_out is not None:
            return inner_join(frame, other, self.on, ctx.watch_left_out)
        return frame.join(other, on=list(self.on), how=self.how)

    def _matched(self, frame: DataFrame, other: DataFrame) -> DataFrame:
        """Rows with or without a match; keys stand under names that neither side has."""
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.frames.columns import column

        names = [f"{_KEY}_{i}" for i in range(len(self.on))]
        keys = zip(names, self.on, strict=True)
        looked_up = other.select(*[column(other, key).alias(name) for name, key in keys])
        equal = [
            column(frame, key) == F.col(name) for name, key in zip(names, self.on, strict=True)
        ]
        return frame.join(looked_up, on=reduce(and_, equal), how=self.how)

    def _require_same_types(self, frame: DataFrame, other: DataFrame) -> None:
        """Refuse keys that Spark would have to bend before it compares them, such as texts."""
        from deltaworks.engines.spark.frames.columns import require_place

        for key in self.on:
            mine = require_place(frame, key, where="join").kind.simpleString()
            theirs = require_place(other, key, where="join").kind.simpleString()
            if mine != theirs and "string" in (mine, theirs):
                raise SpecError(
                    f'join: column "{key}" is {mine} here and {theirs} in "{self.with_}"',
                    hint="cast one of them first",
                    context={"column": key},
                )

    def _refuse_twins(self, frame: DataFrame, other: DataFrame) -> None:
        keys = {name.lower() for name in self.on}
        mine = {name.lower() for name in frame.columns} - keys
        twins = [name for name in other.columns if name.lower() in mine]
        if twins:
            named = ", ".join(f'"{name}"' for name in twins[:5])
            raise SpecError(
                f'join: both sides have a column {named} besides the keys of "on"',
                hint=f'leave it out of "{self.with_}" with a select step, or derive another name',
            )
