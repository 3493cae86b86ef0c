"""Turn the items of a list into rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example
from deltaworks.contracts.transform import LeavesOut, Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class ExplodeTransform(Transform):
    """One row for each item of an array or entry of a map, the other columns beside it."""

    example: ClassVar[Example] = {"column": "split(name, ' ')", "alias": "word"}

    column: str
    """The array or map: a column, a nested field, or an expression such as `split(tags, ',')`."""
    alias: str = ""
    """The item's column, `lines` by default; a map's are `lines_key` and `lines_value`."""
    outer: bool = False
    """Whether a row without items stays, with NULL; otherwise it counts as dropped by this step."""
    position: str = ""
    """A column for the item's place, counted from 0; none when left out."""

    def row_wise(self) -> bool:
        return True

    def leaves_out(self) -> LeavesOut:
        return "nothing" if self.outer else "watched"

    def left_out(self, frame: DataFrame) -> Column | None:
        from deltaworks.engines.spark.transforms.explode import has_no_items, items_of

        return None if self.outer else has_no_items(items_of(frame, self.column, self.alias))

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import refuse_twins
        from deltaworks.engines.spark.transforms.explode import exploded, items_of

        items = items_of(frame, self.column, self.alias)
        result = exploded(frame, items, outer=self.outer, position=self.position)
        refuse_twins(result.columns, where="explode", hint='choose another "alias"')
        return result
