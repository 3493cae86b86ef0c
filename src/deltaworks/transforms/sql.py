"""A query over steps and sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import field_validator

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.expression import tables_of
from deltaworks.contracts.plugin import Example
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SqlTransform(Transform):
    """The result of one SELECT; the previous step is called `input` in it."""

    example: ClassVar[Example] = {"query": "SELECT id, amount FROM input"}

    query: str
    """The SELECT; it reads `input` and any step or source by its name."""

    @field_validator("query")
    @classmethod
    def _one_query(cls, query: str) -> str:
        tables_of(query)
        return query

    def other_inputs(self) -> tuple[str, ...]:
        return tuple(name for name in tables_of(self.query) if name != "input")

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import quoted

        for name, other in {**others, "input": frame}.items():
            other.createOrReplaceTempView(quoted(name))
        return ctx.spark.sql(self.query)
