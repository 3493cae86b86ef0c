"""How many rows a batch must have."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.check import Measurement, TableCheck
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RowCountCheck(TableCheck):
    """The number of rows lies between two bounds."""

    example: ClassVar[Example] = {"min": 0}

    min: int | None = None
    """The fewest rows allowed."""
    max: int | None = None
    """The most rows allowed."""

    def problems(self) -> tuple[str, ...]:
        if self.min is None and self.max is None:
            return ('say "min", "max" or both',)
        return ()

    def rule_text(self) -> str:
        if self.name:
            return self.name
        low = "" if self.min is None else f"{self.min} <= "
        high = "" if self.max is None else f" <= {self.max}"
        return f"{low}rows{high}"

    def measure(self, ctx: RunContext, frame: DataFrame) -> Measurement:
        rows = frame.count()
        enough = self.min is None or rows >= self.min
        not_too_many = self.max is None or rows <= self.max
        return Measurement(enough and not_too_many, f"{rows:,} rows", rows)
