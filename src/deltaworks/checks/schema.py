"""Which columns the rows must have."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.check import Measurement, TableCheck
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.expression import SchemaText
from deltaworks.contracts.plugin import Example

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST = 3


class SchemaCheck(TableCheck):
    """The rows have exactly these columns and types, in any order."""

    example: ClassVar[Example] = {"columns": "id bigint, name string, amount double"}

    columns: SchemaText
    """Columns and types as SQL spells them, such as `id bigint, amount double`."""

    def rule_text(self) -> str:
        return self.name or f"columns are {self.columns}"

    def measure(self, ctx: RunContext, frame: DataFrame) -> Measurement:
        from deltaworks.engines.spark.frames.columns import declared_columns

        wanted = {f.name.lower(): f for f in declared_columns(self.columns).fields}
        given = {f.name.lower(): f for f in frame.schema.fields}
        found = [f'"{f.name}" is missing' for name, f in wanted.items() if name not in given]
        for name, known in given.items():
            kind = known.dataType.simpleString()
            if name not in wanted:
                found.append(f'"{known.name}" {kind} is not declared')
            elif kind != (declared := wanted[name].dataType.simpleString()):
                found.append(f'"{known.name}" is {kind}, not {declared}')
        more = [f"{len(found) - _MOST} more"] if len(found) > _MOST else []
        return Measurement(not found, "; ".join([*found[:_MOST], *more]) or "as declared")
