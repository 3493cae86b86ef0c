"""The tables of a project: one by name, its rows, and queries over several."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, Unpack

from deltaworks.config.project import ProjectConfig
from deltaworks.contracts.context import ProjectContext
from deltaworks.contracts.engine import CanRead
from deltaworks.model.table_ref import TableRef, is_url, table_name_problem
from deltaworks.runtime.spark import SparkStarter

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaworks.tables.listing import ListedTable
    from deltaworks.tables.manager import RowWords, TableManager
    from deltaworks.tables.rows import RowsRead

QueryEngine = Literal["delta-rs", "spark"]


class ProjectTables:
    """What a project knows of its tables."""

    config: ProjectConfig
    _starter: SparkStarter

    @property
    def project_ctx(self) -> ProjectContext:
        """Where the project's paths and tables are."""
        return ProjectContext.of(self.config)

    def tables(self) -> tuple[ListedTable, ...]:
        """Every table of the warehouse, as far as its log describes it; no JVM is needed."""
        from deltaworks.tables.listing import listed_tables

        return listed_tables(self.config.warehouse, self.config.stores)

    def table(self, name: str) -> TableManager:
        """A table, by its name in the warehouse or by a path."""
        from deltaworks.tables.manager import TableManager

        is_path = is_url(name) or "/" in name or bool(table_name_problem(name))
        quarantine = name.endswith("__quarantine") and "/" not in name
        if quarantine:
            name, is_path = f"{self.config.warehouse}/{name}", True
        ref = self.project_ctx.table(table="" if is_path else name, path=name if is_path else "")
        spark = partial(self._spark_engine, ref.location)
        stores = self.config.stores
        return TableManager(ref, spark=spark, stores=stores, names=self._table_names)

    def read(self, name: str, **words: Unpack[RowWords]) -> pa.Table:
        """Rows of a table, read without a JVM where delta-rs reads what Spark reads.

        `where` is a condition of Spark's SQL. Rows come in no particular order.
        """
        return self.table(name).rows(**words).rows

    def sql(
        self, query: str, *, engine: QueryEngine = "delta-rs", limit: int | None = None
    ) -> pa.Table:
        """The answer to a SELECT statement over tables by name.

        delta-rs answers in DataFusion's SQL, without a JVM; "spark" takes Spark's SQL.
        """
        return self.query(query, engine=engine, limit=limit).rows

    def query(
        self, query: str, *, engine: QueryEngine = "delta-rs", limit: int | None = None
    ) -> RowsRead:
        """As `sql`, with the versions that were read, and whether there are more rows."""
        from deltaworks.tables.answers import answer_by_deltars, answer_by_spark
        from deltaworks.tables.query import parse_query

        if engine == "spark":
            parsed = parse_query(query, dialect="spark")
            refs = self._refs(parsed.names)
            spark = partial(self._spark_engine, *(ref.location for ref in refs.values()))
            return answer_by_spark(parsed, refs, spark=spark, limit=limit)
        parsed = parse_query(query, dialect="")
        refs = self._refs(parsed.names)
        return answer_by_deltars(parsed, refs, stores=self.config.stores, limit=limit)

    def _refs(self, names: Sequence[str]) -> dict[str, TableRef]:
        """The tables that a query names; refused when one is not there."""
        tables = {name: self.table(name) for name in names}
        for table in tables.values():
            table.require()
        return {name: table.ref for name, table in tables.items()}

    def _table_names(self) -> tuple[str, ...]:
        from deltaworks.tables.listing import table_names

        return table_names(self.config.warehouse, self.config.stores)

    def _spark_engine(self, *locations: str) -> CanRead:
        from deltaworks.engines.spark.delta.tables import SparkEngine

        self._starter.need(locations, self.config.stores)
        return SparkEngine(self._starter.shared())
