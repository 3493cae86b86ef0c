"""Read a table or a query of any database that has a JDBC driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from deltaworks.connectors.databases.connection_params import require_allowed, require_host
from deltaworks.connectors.databases.jdbc_urls import ALLOWED_OPTIONS, SYSTEMS
from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.credentials import NeedsCredential
from deltaworks.contracts.plugin import Example, Names, TextMap
from deltaworks.contracts.source import Source
from deltaworks.errors import ConfigError
from deltaworks.model.batch import UNBOUNDED, Bounds
from deltaworks.storage.tcp_check import reach

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class JdbcSource(NeedsCredential, Source):
    """Rows of any database, by a driver that its user brings; each part at its own time."""

    example: ClassVar[Example] = {
        "system": "sqlserver",
        "driver_jar": "drivers/mssql-jdbc.jar",
        "credential": "shop",
        "table": "orders",
    }

    system: Literal["postgresql", "mariadb", "sqlserver", "oracle", "db2"]
    """The kind of database, from which its URL is built."""
    driver_jar: str
    """The file of the driver."""
    driver_sha256: str = ""
    """The checksum that the file must have; it is not looked at when left out."""
    host: str = ""
    """The server; what its credential says when left out."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """The server's port; the usual one when neither this nor the credential says it."""
    database: str = ""
    """The database or service; what the credential says when left out."""
    table: str = ""
    """The table or view, with its schema where it has one, such as `sales.orders`."""
    query: str = ""
    """A SELECT in the server's own SQL, instead of a table."""
    columns: Names = ()
    """Columns to read; all when left out."""
    where: str = ""
    """A condition in the server's own SQL; only rows for which it is true leave the server."""
    partition_column: str = ""
    """A column of numbers that is cut into ranges, which are read side by side."""
    partitions: int = Field(default=4, ge=1, le=1000)
    """How many ranges."""
    fetch_rows: int = Field(default=10_000, ge=1)
    """Rows that the driver fetches at once."""
    options: TextMap = Field(default_factory=dict)
    """Further options of the driver; only those that can do no harm are taken."""

    def problems(self) -> tuple[str, ...]:
        found = []
        if bool(self.table) == bool(self.query.strip()):
            found.append('say either "table" or "query"')
        try:
            require_allowed(self.options, ALLOWED_OPTIONS, server=self.system)
            if self.host:
                require_host(self.host)
        except ConfigError as problem:
            found.append(problem.message)
        return tuple(found)

    def bounds(self, project_ctx: ProjectContext, since: Bounds | None) -> Bounds:
        url, what = self._url(project_ctx), self.table or self.query
        return Bounds(kind=UNBOUNDED, identity=f"jdbc {url} {what}")

    def probe(self, project_ctx: ProjectContext) -> str:
        self._url(project_ctx)
        record = self.connection(project_ctx)
        host, port = self.host or record.host, self.port or record.port
        reach(host, port or SYSTEMS[self.system].port)
        return "the server answers; only a run tries the driver and the login"

    def still_there(self, project_ctx: ProjectContext, bounds: Bounds) -> str:
        return "what a table or query gave once cannot be asked of the database again"

    def changed_while_read(self, project_ctx: ProjectContext, bounds: Bounds) -> str:
        return ""

    def _url(self, project_ctx: ProjectContext) -> str:
        record = self.connection(project_ctx)
        host, database = self.host or record.host, self.database or record.database
        if not host or not database:
            raise ConfigError(
                'a jdbc connection needs "host" and "database"',
                hint="say them in the file or keep them in the credential",
            )
        return SYSTEMS[self.system].address(require_host(host), self.port or record.port, database)

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from deltaworks.engines.spark.read.any_jdbc import AnyJdbc

        record = self.connection(ctx.project_ctx)
        require_allowed(record.options, ALLOWED_OPTIONS, server=self.system)
        given = AnyJdbc(
            spark=ctx.spark,
            url=self._url(ctx.project_ctx),
            driver=SYSTEMS[self.system].driver,
            jar=ctx.project_ctx.path(self.driver_jar),
            jar_sha256=self.driver_sha256,
            user=record.user,
            password=record.secret("password"),
            fetch_rows=self.fetch_rows,
            options={**record.options, **self.options},
        )
        return given.rows(
            table=self.table,
            query=self.query,
            columns=self.columns,
            where=self.where,
            partition_column=self.partition_column,
            partitions=self.partitions,
        )
