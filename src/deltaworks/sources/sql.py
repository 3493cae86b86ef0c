"""Read the result of a query over Delta tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, field_validator

from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.expression import tables_of
from deltaworks.contracts.plugin import Example
from deltaworks.contracts.source import Source
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import VERSIONS, Bounds
from deltaworks.model.table_ref import table_name_problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SqlSource(Source):
    """The result of one SELECT over tables, at the versions they have when a batch is planned."""

    example: ClassVar[Example] = {"query": "SELECT id, name, amount FROM orders"}

    query: str
    """The SELECT; it reads tables of the warehouse, or those that `inputs` names."""
    inputs: dict[str, str] = Field(default_factory=dict)
    """Names in the query -> tables of the warehouse, such as `o: sales.orders`."""

    @field_validator("query")
    @classmethod
    def _one_query(cls, query: str) -> str:
        tables_of(query, named_under="inputs")
        return query

    def problems(self) -> tuple[str, ...]:
        tables = self._tables()
        unread = [name for name in self.inputs if name not in tables]
        found = [f'"inputs" names "{name}", which the query does not read' for name in unread]
        found.extend(problem for name in tables.values() if (problem := table_name_problem(name)))
        return tuple(found) if tables else ("the query reads no table",)

    def _tables(self) -> dict[str, str]:
        """Names in the query -> tables of the warehouse."""
        return {name: self.inputs.get(name, name) for name in tables_of(self.query)}

    def _locations(self, project_ctx: ProjectContext) -> Iterator[tuple[str, str, str]]:
        for name, table in self._tables().items():
            yield name, table, project_ctx.table(table=table, path="").location

    def tables_read(self, project_ctx: ProjectContext) -> tuple[str, ...]:
        return tuple(location for _, _, location in self._locations(project_ctx))

    def bounds(self, project_ctx: ProjectContext, since: Bounds | None) -> Bounds:
        from deltaworks.connectors.delta.source import table_info

        tables = {}
        for name, table, location in self._locations(project_ctx):
            found = table_info(location, label=table, stores=project_ctx.stores)
            tables[name] = {"id": found.table_id, "version": found.version}
        return Bounds(kind=VERSIONS, identity=self.query, position={"tables": tables})

    def still_there(self, project_ctx: ProjectContext, bounds: Bounds) -> str:
        from deltaworks.connectors.delta.source import table_info

        if bounds.identity != self.query:
            return "the query has changed"
        for name, table, location in self._locations(project_ctx):
            pinned = bounds.position["tables"][name]
            try:
                found = table_info(
                    location, label=table, version=pinned["version"], stores=project_ctx.stores
                )
            except DeltaworksError as problem:
                return problem.message
            if found.table_id != pinned["id"]:
                return f'"{table}" is another table now'
        return ""

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from deltaworks.engines.spark.delta.tables import SparkEngine
        from deltaworks.engines.spark.frames.columns import quoted

        for name, _, location in self._locations(ctx.project_ctx):
            version = bounds.position["tables"][name]["version"]
            frame = SparkEngine(ctx.spark).read(location, version=version)
            frame.createOrReplaceTempView(quoted(name))
        return ctx.spark.sql(self.query)
