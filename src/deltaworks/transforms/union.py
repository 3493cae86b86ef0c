"""Put rows of several steps together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, SomeTexts
from deltaworks.contracts.transform import LeavesOut, Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class UnionTransform(Transform):
    """All rows of this input and of other steps or sources; columns are matched by name."""

    example: ClassVar[Example] = {"with": ["orders"]}
    adds_inputs: ClassVar[bool] = True

    with_: SomeTexts = Field(alias="with")
    """The steps or sources whose rows are added."""
    missing_columns: Literal["refuse", "fill"] = "refuse"
    """What happens when one side lacks a column or nested field: stop, or fill it with NULL."""

    def other_inputs(self) -> tuple[str, ...]:
        return self.with_

    def row_wise(self) -> bool:
        return False

    def leaves_out(self) -> LeavesOut:
        return "nothing"

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.transforms.union import require_union

        fill = self.missing_columns == "fill"
        for name in self.with_:
            require_union(frame, others[name], name=name, fill=fill)
            frame = frame.unionByName(others[name], allowMissingColumns=fill)
        return frame
