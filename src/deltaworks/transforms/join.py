"""Bring columns of another step to the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, SomeNames
from deltaworks.contracts.transform import Transform
from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class JoinTransform(Transform):
    """Rows joined with another step or source on columns of equal name."""

    example: ClassVar[Example] = {"with": "other", "on": ["id"], "how": "semi"}

    with_: str = Field(alias="with")
    """The step or source to join with."""
    on: SomeNames
    """Columns, of the same name on both sides, that must be equal."""
    how: Literal["inner", "left", "right", "full", "semi", "anti"] = "inner"
    """Which rows stay: matches only, all of one side or both, or those with(out) a match."""

    def row_wise(self) -> bool:
        return self.how not in ("right", "full")

    def other_inputs(self) -> tuple[str, ...]:
        return (self.with_,)

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.columns import require_columns

        other = others[self.with_]
        require_columns(frame, self.on, where="join", nested=False)
        require_columns(other, self.on, where=f'join with "{self.with_}"', nested=False)
        if self.how not in ("semi", "anti"):
            self._refuse_twins(frame, other)
        return frame.join(other, on=list(self.on), how=self.how)

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
