"""Values that must exist in another table."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator

from deltaworks.contracts.check import RowCheck
from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.plugin import Example, OnceEach, Some
from deltaworks.model.table_ref import table_place_problems

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def _paired(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        return {name: name for name in names}
    return value


class ReferencesCheck(RowCheck):
    """The values of some columns stand together in a row of another Delta table."""

    example: ClassVar[Example] = {"table": "orders", "columns": {"id": "id"}}

    table: str = ""
    """The other table's name in the warehouse."""
    path: str = ""
    """The other table's folder, instead of a name."""
    columns: Annotated[dict[str, str], BeforeValidator(_paired), Some, OnceEach]
    """Column -> the other table's column, such as `customer_id: id`; a list where both are one."""
    allow_null: bool = False
    """Whether a row passes that has NULL in one of the columns."""

    def problems(self) -> tuple[str, ...]:
        return tuple(table_place_problems(table=self.table, path=self.path))

    def rule_text(self) -> str:
        own, other = ", ".join(self.columns), ", ".join(self.columns.values())
        return self.name or f"{own} in {self.table or self.path}({other})"

    def columns_used(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def tables_read(self, project_ctx: ProjectContext) -> tuple[str, ...]:
        return (project_ctx.table(table=self.table, path=self.path).location,)

    def condition(self, ctx: RunContext, frame: DataFrame) -> Column:
        from deltaworks.engines.spark.delta.lookup import looked_up, stands_in
        from deltaworks.engines.spark.frames.columns import column

        ref = ctx.project_ctx.table(table=self.table, path=self.path)
        names = tuple(self.columns.values())
        rows = looked_up(ctx, ref, names, where=f"check {self.plugin_type()}")
        holds = stands_in(frame, rows, self.columns)
        if not self.allow_null:
            return holds
        nulls = [column(frame, name).isNull() for name in self.columns]
        return reduce(lambda left, right: left | right, nulls) | holds
