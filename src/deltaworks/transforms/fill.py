"""Put values where there are none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, OnceEach, Some
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaworks.engines.spark.frames.columns import Place
    from deltaworks.engines.spark.frames.nested import Change


class FillTransform(Transform):
    """Columns with a value in place of NULL."""

    example: ClassVar[Example] = {"columns": {"name": "nobody", "amount": 0}}
    row_preserving: ClassVar[bool] = True

    columns: Annotated[dict[str, bool | int | float | str], Some, OnceEach]
    """Column name -> value of the column's type; a field of a struct that is NULL stays NULL."""

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.frames.nested import changed

        return changed(frame, [self._filled(frame, name) for name in self.columns])

    def _filled(self, frame: DataFrame, name: str) -> tuple[Place, Change]:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.frames.literals import literal_of
        from deltaworks.engines.spark.frames.nested import require_single

        place = require_single(frame, name, where="fill")
        value = literal_of(self.columns[name], place.kind, name=name, where="fill")
        return place, lambda before: F.coalesce(before, value)
