"""Call a function of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, field_validator

from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.expression import SchemaText
from deltaworks.contracts.plugin import Example
from deltaworks.contracts.transform import Transform
from deltaworks.errors import Problem, SpecError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaworks.engines.spark.transforms.python import ProjectFunction


class PythonTransform(Transform):
    """What a Python function of the project makes of the frame, or of each row."""

    example: ClassVar[Example] = {"function": "transforms/orders.py:clean"}

    function: str
    """A file of the project and a function in it, or `module:function`."""
    row: bool = False
    """Whether it takes and returns one row, as a dict; otherwise it takes and returns a frame."""
    schema_: SchemaText | None = Field(default=None, alias="schema")
    """The columns of the rows it returns, for `row`, such as `id bigint, amount double`."""

    @field_validator("function")
    @classmethod
    def _place_and_name(cls, function: str) -> str:
        place, _, name = function.rpartition(":")
        if not place or not name.isidentifier():
            raise ValueError("write a file and a function: transforms/cleaning.py:clean")
        return function

    def problems(self) -> tuple[str, ...]:
        if self.row and not self.schema_:
            return ('"row" needs a "schema": the columns that the function returns',)
        if self.schema_ and not self.row:
            return ('"schema" goes with "row: true"; a frame brings its own columns',)
        return ()

    def keeps_every_row(self) -> bool:
        return self.row

    def columns_known(self) -> bool:
        return self.row

    def code_fingerprint(self, project_ctx: ProjectContext) -> str:
        return self._found(project_ctx, self.name or self.plugin_type()).fingerprint()

    def code_problems(self, project_ctx: ProjectContext) -> tuple[Problem, ...]:
        try:
            found = self._found(project_ctx, self.name or self.plugin_type()).problem(row=self.row)
        except SpecError as error:
            return error.problems
        return (found,) if found else ()

    def _found(self, project_ctx: ProjectContext, step: str) -> ProjectFunction:
        from deltaworks.engines.spark.transforms.python import ProjectFunction

        return ProjectFunction.named(self.function, root=project_ctx.root, step=step)

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import declared_columns, refuse_twins

        function = self._found(ctx.project_ctx, ctx.step or self.name or self.plugin_type())
        if self.schema_ is not None:
            result = function.on_rows(frame, declared_columns(self.schema_))
        else:
            result = function.on_frame(frame, ctx)
        refuse_twins(result.columns, where=f"function {function.name}", hint="rename one of them")
        return result
