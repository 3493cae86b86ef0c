"""Give columns their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.expression import TypeText
from deltaworks.contracts.plugin import REJECTED, Example, OnceEach
from deltaworks.contracts.tolerance import MaxFailed
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from deltaworks.engines.spark.frames.casts import Cast


class CastTransform(Transform):
    """Columns under the same names with new types."""

    example: ClassVar[Example] = {"columns": {"amount": "decimal(12,2)"}}
    row_preserving: ClassVar[bool] = True

    columns: Annotated[dict[str, TypeText], OnceEach]
    """Column or nested field -> SQL type, such as `amount: decimal(12,2)`."""
    formats: dict[str, str] = Field(default_factory=dict)
    """Column -> how its texts are written: `dd.MM.yyyy`, or 1234.56 written so: `1.234,56`."""
    exact: bool = True
    """Whether a value that would be rounded or cut, such as 2.7 as `int`, does not fit."""
    on_error: Literal["fail", "set_null", "quarantine"] = "fail"
    """What happens to a value that does not fit its type."""
    max_failed: MaxFailed = None
    """How many rows may go into quarantine, as `10` or `0.1%` of those that come; more stop it."""

    def problems(self) -> tuple[str, ...]:
        from deltaworks.engines.spark.frames.text_formats import format_problem

        found = [
            format_problem(name, self.columns[name], text)
            if name in self.columns
            else f'"formats" names "{name}", and "columns" does not'
            for name, text in self.formats.items()
        ]
        return (*super().problems(), *(problem for problem in found if problem))

    def columns_converted(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.frames.casts import casts
        from deltaworks.engines.spark.frames.nested import changed

        made = casts(frame, self.columns, self.formats, exact=self.exact)
        if self.on_error == "quarantine":
            # the mark shows values as they came in, so it is made before they change
            frame = frame.withColumn(REJECTED, self._mark(frame, made))
        fails = self.on_error == "fail"
        changes = [(cast.place, cast.strict(ctx.step) if fails else cast.lenient) for cast in made]
        return changed(frame, changes)

    def _mark(self, frame: DataFrame, made: list[Cast]) -> Column:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.frames.columns import column
        from deltaworks.engines.spark.frames.rejects import rejection

        reason = F.concat_ws("; ", *[cast.reason(column(frame, cast.name)) for cast in made])
        rule = self.name or "cast"
        return rejection(reason != "", frame, rule=f"{rule}: values fit their types", reason=reason)
