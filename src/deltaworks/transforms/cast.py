"""Give columns their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import REJECTED, Example
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from deltaworks.engines.spark.nested import Change


class CastTransform(Transform):
    """Columns under the same names with new types."""

    example: ClassVar[Example] = {"columns": {"amount": "decimal(12,2)"}}
    row_preserving: ClassVar[bool] = True

    columns: dict[str, str]
    """Column or nested field -> SQL type, such as `amount: decimal(12,2)`."""
    on_error: Literal["fail", "set_null", "quarantine"] = "fail"
    """What happens to a value that does not fit its type."""

    def columns_converted(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.nested import changed, require_single

        places = [require_single(frame, name, where="cast") for name in self.columns]
        kinds = list(self.columns.values())
        changes = [(place, self._cast(kind)) for place, kind in zip(places, kinds, strict=True)]
        if self.on_error == "quarantine":
            # the mark shows values as they came in, so it is made before they change
            frame = frame.withColumn(REJECTED, self._mark(frame))
        return changed(frame, changes)

    def _cast(self, kind: str) -> Change:
        if self.on_error == "fail":
            return lambda value: value.cast(kind)
        return lambda value: value.try_cast(kind)

    def _mark(self, frame: DataFrame) -> Column:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.columns import column
        from deltaworks.engines.spark.rejects import rejection

        reasons = []
        for name, kind in self.columns.items():
            value = column(frame, name)
            text = value.cast("string")
            shown = F.concat(F.lit(f"{name}: '"), text, F.lit(f"' is not {kind}"))
            reasons.append(F.when(value.isNotNull() & value.try_cast(kind).isNull(), shown))
        reason = F.concat_ws("; ", *reasons)
        rule = self.name or "cast"
        return rejection(reason != "", frame, rule=f"{rule}: values fit their types", reason=reason)
