"""Keep one of several rows that are alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, Names
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DeduplicateTransform(Transform):
    """One row of those that are equal in some columns or in all; the rest count as dropped."""

    example: ClassVar[Example] = {"columns": ["name"], "keep": "newest", "by": "id"}
    drops_rows: ClassVar[bool] = True

    columns: Names = ()
    """Columns in which rows are compared, NULL being equal to NULL; all when left out."""
    keep: Literal["newest", "oldest"] | None = None
    """The row with the highest or the lowest value of `by`; different rows that tie are refused."""
    by: str = ""
    """The column that tells which row is newer; a row without a value there comes last."""

    def problems(self) -> tuple[str, ...]:
        if bool(self.keep) != bool(self.by):
            return ('"keep" and "by" go together',)
        if self.keep and not self.columns:
            return ('"keep" needs "columns": rows equal in all columns do not differ in age',)
        return ()

    def row_wise(self) -> bool:
        return False

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import require_columns
        from deltaworks.engines.spark.frames.dedupe import distinct_rows, one_of_each

        named = [*self.columns, *([self.by] if self.by else [])]
        require_columns(frame, named, where="deduplicate")
        if not self.columns:
            return distinct_rows(frame)
        return one_of_each(
            frame,
            self.columns,
            keep=self.keep or "newest",
            by=self.by,
            step=ctx.step or self.name or self.plugin_type(),
        )
