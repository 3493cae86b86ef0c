"""How old the newest row may be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.check import Measurement, TableCheck
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.duration import Duration, duration, duration_text
from deltaworks.contracts.expression import SqlExpression
from deltaworks.contracts.plugin import Example
from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class FreshnessCheck(TableCheck):
    """The newest timestamp in a column is not too long before the run."""

    example: ClassVar[Example] = {"column": "timestamp_seconds(id)", "max_age": "36500d"}

    column: SqlExpression
    """A column of dates or timestamps, or an expression such as `to_timestamp(day)`."""
    max_age: Duration
    """How long before the run the newest timestamp may be, such as `15m`, `24h` or `7d`."""

    def rule_text(self) -> str:
        return self.name or f"age of {self.column} <= {self.max_age}"

    def measure(self, ctx: RunContext, frame: DataFrame) -> Measurement:
        from pyspark.sql import functions as F

        moment = F.expr(self.column)
        kind = frame.select(moment).schema.fields[0].dataType.simpleString()
        if kind not in ("date", "timestamp", "timestamp_ntz"):
            raise SpecError(
                f'check {self.plugin_type()} needs timestamps, and "{self.column}" is {kind}',
                hint=f"make it one, such as to_timestamp({self.column})",
            )
        newest = F.unix_micros(F.max(moment.cast("timestamp")))
        found = frame.agg(F.count(F.lit(1)), newest).collect()[0]
        return self._judged(ctx.now, rows=int(found[0]), micros=found[1])

    def _judged(self, now: datetime, *, rows: int, micros: int | None) -> Measurement:
        if rows == 0:
            return Measurement(passed=True, detail="no rows", rows=rows)
        if micros is None:
            detail = f'"{self.column}" is NULL in every row'
            return Measurement(passed=False, detail=detail, rows=rows)
        newest = _EPOCH + timedelta(microseconds=micros)
        age = now - newest
        detail = f"the newest is of {newest:%Y-%m-%d %H:%M:%S} UTC, {duration_text(age)} old"
        return Measurement(age <= duration(self.max_age), detail, rows)
