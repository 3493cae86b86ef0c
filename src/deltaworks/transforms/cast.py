"""Give columns their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import REJECTED, Example
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class CastTransform(Transform):
    """Columns under the same names with new types."""

    example: ClassVar[Example] = {"columns": {"amount": "decimal(12,2)"}}
    row_preserving: ClassVar[bool] = True

    columns: dict[str, str]
    """Column name -> SQL type, such as `amount: decimal(12,2)`."""
    on_error: Literal["fail", "set_null", "quarantine"] = "fail"
    """What happens to a value that does not fit its type."""

    def columns_converted(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.columns import column, require_columns

        require_columns(frame, self.columns, where="cast", nested=False)
        if self.on_error == "fail":
            new = {name: column(frame, name).cast(kind) for name, kind in self.columns.items()}
            return frame.withColumns(new)
        tried = {name: column(frame, name).try_cast(kind) for name, kind in self.columns.items()}
        if self.on_error == "set_null":
            return frame.withColumns(tried)
        return frame.withColumns({**tried, REJECTED: self._mark(frame, tried)})

    def _mark(self, frame: DataFrame, tried: Mapping[str, Column]) -> Column:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.columns import column
        from deltaworks.engines.spark.rejects import rejection

        reasons = []
        for name, attempt in tried.items():
            value = column(frame, name)
            shown = F.concat(
                F.lit(f"{name}: '"), value.cast("string"), F.lit(f"' is not {self.columns[name]}")
            )
            reasons.append(F.when(value.isNotNull() & attempt.isNull(), shown))
        reason = F.concat_ws("; ", *reasons)
        rule = self.name or "cast"
        return rejection(reason != "", frame, rule=f"{rule}: values fit their types", reason=reason)
