"""Keep some columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, Names
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SelectTransform(Transform):
    """Columns by name or expression, or all but some."""

    example: ClassVar[Example] = {"columns": ["id", "upper(name) as name"]}
    row_preserving: ClassVar[bool] = True

    columns: Names = ()
    """Columns to keep, in order; an expression such as `upper(name) as name` works too."""
    exclude: Names = ()
    """Columns to leave out; all others stay."""

    def problems(self) -> tuple[str, ...]:
        if bool(self.columns) == bool(self.exclude):
            return ('say either "columns" or "exclude"',)
        return ()

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.columns import column, require_columns

        if self.exclude:
            require_columns(frame, self.exclude, where="select", nested=False)
            return frame.drop(*self.exclude)
        known = {name.lower() for name in frame.columns}
        return frame.select(
            *[
                column(frame, wanted) if wanted.lower() in known else F.expr(wanted)
                for wanted in self.columns
            ]
        )
