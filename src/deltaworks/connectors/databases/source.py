"""What all database sources share: a table or query, read in parts as of one point in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from deltaworks.connectors.databases.connection_params import Address
from deltaworks.connectors.databases.dialect import BLOCK_BYTES, Column, Connection, named_place
from deltaworks.connectors.databases.increments import NUMBER, Increments
from deltaworks.connectors.databases.options import DatabaseOptions
from deltaworks.connectors.databases.read_partitions import (
    Slices,
    block_slices,
    parts_for,
    value_slices,
)
from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.duration import duration
from deltaworks.contracts.plugin import Names
from deltaworks.contracts.source import Source
from deltaworks.engines.spark.read.jdbc import PART
from deltaworks.errors import DeltaworksError, EngineError, GuardError, SpecError, TableNotFound
from deltaworks.model.batch import UNBOUNDED, WATERMARK, Bounds
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BIG_INCREMENT_ROWS = 500_000


class DatabaseSource(DatabaseOptions, Source):
    """Rows of a table or a query."""

    table: str = ""
    """The table or view, with its schema where it has one, such as `sales.orders`."""
    query: str = ""
    """A SELECT in the server's own SQL, instead of a table."""
    columns: Names = ()
    """Columns to read; all when left out."""
    where: str = ""
    """A condition in the server's own SQL; only rows for which it is true leave the server."""
    incremental: bool = False
    """Read only rows whose watermark is higher than any that was read before."""
    watermark: str = ""
    """The column that grows with every change, such as `updated_at`, for increments."""
    overlap: str = ""
    """How far back an increment reads once more for rows that came late: `15m`, or a number."""
    allow_future: bool = False
    """Whether a watermark may lie in the future, though rows that change until then are missed."""
    partitions: int | None = Field(default=None, ge=1, le=1000)
    """Connections that read side by side; chosen by the table's size when left out."""
    partition_column: str = ""
    """The column that is cut into ranges for them; found when left out."""
    fetch_rows: int = Field(default=10_000, ge=1)
    """Rows that the driver fetches at once."""
    consistent: bool = True
    """Whether all rows are read as of one point in time."""

    @field_validator("overlap", mode="before")
    @classmethod
    def _a_length(cls, value: object) -> object:
        text = str(value)
        if text and not NUMBER.fullmatch(text):
            duration(text)
        return text

    def problems(self) -> tuple[str, ...]:
        found = self.option_problems()
        if bool(self.table) == bool(self.query.strip()):
            found.append('say either "table" or "query"')
        if self.incremental != bool(self.watermark):
            found.append('"incremental: true" and "watermark" belong together')
        if self.overlap and not self.incremental:
            found.append('"overlap" needs "incremental: true"')
        if self.allow_future and not self.incremental:
            found.append('"allow_future" needs "incremental: true"')
        return tuple(found)

    def reads_increments(self) -> bool:
        return self.incremental

    def repeats_rows(self) -> bool:
        return bool(self.overlap)

    def bounds(self, project_ctx: ProjectContext, since: Bounds | None) -> Bounds:
        address = self.address(project_ctx)
        with self.server.open(address, read_only=True) as connection:
            columns = self._columns(connection)
            identity = self._identity(address)
            if not self.incremental:
                return Bounds(kind=UNBOUNDED, identity=identity)
            read = since if since is not None and since.kind == WATERMARK else None
            if read is not None:
                self._refuse_other(read, identity)
            increments = self._increments(connection, columns)
            position = increments.next(connection, read.position if read else None)
            return Bounds(kind=WATERMARK, identity=identity, position=position)

    def _refuse_other(self, since: Bounds, identity: str) -> None:
        if since.identity != identity:
            raise GuardError(
                f"the last batch read {_told(since.identity)}, and the source is {_told(identity)}",
                hint=f"go on by --from '{since.position['until']}', read all of it by an earlier "
                "point, or reload everything with --full-refresh",
            )

    def holds_rows(self, project_ctx: ProjectContext, bounds: Bounds) -> bool:
        if bounds.kind != UNBOUNDED or not self.table or self.where:
            return False  # the server might have to search for one
        with self.server.open(self.address(project_ctx), read_only=True) as connection:
            return bool(connection.rows(f"SELECT 1 FROM {self._relation()} LIMIT 1"))

    def probe(self, project_ctx: ProjectContext) -> str:
        with self.server.open(self.address(project_ctx), read_only=True) as connection:
            columns = self._columns(connection)
            where = f" WHERE {self.where}" if self.where else ""
            found = connection.rows(f"SELECT 1 FROM {self._relation()}{where} LIMIT 1")
        return f"{len(columns)} columns, {'rows' if found else 'no rows'} in them"

    def start_at(self, project_ctx: ProjectContext, point: str) -> Bounds | None:
        position = {"until": point, "rows": None}
        return Bounds(
            kind=WATERMARK, identity=self._identity(self.address(project_ctx)), position=position
        )

    def still_there(self, project_ctx: ProjectContext, bounds: Bounds) -> str:
        if bounds.kind == UNBOUNDED:
            return "what a table or query gave once cannot be asked of the database again"
        if bounds.identity != self._identity(self.address(project_ctx)):
            return "the source has changed"
        try:
            with self.server.open(self.address(project_ctx), read_only=True) as connection:
                increments = self._increments(connection, self._columns(connection))
                return increments.why_others(connection, bounds.position)
        except DeltaworksError as problem:
            return problem.message

    def changed_while_read(self, project_ctx: ProjectContext, bounds: Bounds) -> str:
        """One snapshot was read, and what was changed since has a higher watermark, or the same."""
        if "ties" not in bounds.position or "each" in bounds.position["ties"]:
            return ""
        with self.server.open(self.address(project_ctx), read_only=True) as connection:
            increments = self._increments(connection, self._columns(connection))
            return increments.why_other_ties(connection, bounds.position)

    def explain_failure(
        self, ctx: RunContext, bounds: Bounds, error: DeltaworksError
    ) -> DeltaworksError:
        """A task that failed need not say why: then the server is asked whether it is there."""
        if type(error) is not EngineError:
            return error
        try:
            with self.server.open(self.address(ctx.project_ctx), read_only=True):
                return error
        except DeltaworksError as problem:
            return problem.at(error.file, error.line)

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from deltaworks.engines.spark.read.jdbc import JdbcRead, read_rows
        from deltaworks.engines.spark.session.connect import parallelism

        address, server = self.address(ctx.project_ctx), self.server
        connection = ctx.until_end.enter_context(server.open(address, read_only=True))
        columns = self._columns(connection)
        condition = self._condition(connection, bounds, columns)
        cores = parallelism(ctx.spark)
        slices = self._slices(connection, bounds, condition, cores)
        snapshot = server.snapshot(connection) if self.consistent else ""
        if not snapshot:
            connection.commit()  # nothing waits for what this connection saw
        chosen = self._chosen(columns)
        listed = [f"{server.readable(c)} AS {server.quoted(c.name)}" for c in chosen]
        if slices.expression:
            listed.append(f"{slices.expression} AS {server.quoted(PART)}")
        rows = f"SELECT {', '.join(listed)} FROM {self._relation()}{condition}"
        return read_rows(
            ctx.spark,
            JdbcRead(
                url=server.url(address),
                driver=server.driver_class,
                user=address.user,
                password=address.password,
                relation=f"({rows}) q",
                conditions=slices.conditions,
                options={**server.reader_options(), **server.driver_options(address)},
                first_statement=server.first_statement(snapshot),
                fetch_rows=self.fetch_rows,
                instants=server.instants(chosen),
            ),
        )

    def _identity(self, address: Address) -> str:
        return f"{self.plugin_type()} {address.label} {self.table or self.query} {self.watermark}"

    def _relation(self) -> str:
        if self.query:
            return f"({self.query.strip().rstrip(';')}) q"
        return self.server.sql_of(named_place(self.table))

    def _columns(self, connection: Connection) -> tuple[Column, ...]:
        """All columns there are; a table or a column that is not there is told."""
        if self.table:
            self._require_table(connection)
        found = self.server.columns(connection, self._relation())
        for name in (*self.columns, self.watermark, self.partition_column):
            if name:
                _named(found, name)
        return found

    def _require_table(self, connection: Connection) -> None:
        place = named_place(self.table)
        if self.server.resolved(connection, place) is None:
            hint = did_you_mean(self.table, self.server.near_names(connection, place))
            raise TableNotFound(f'there is no table "{self.table}" in the database', hint=hint)

    def _chosen(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return tuple(_named(columns, name) for name in self.columns) or columns

    def _condition(
        self, connection: Connection, bounds: Bounds, columns: tuple[Column, ...]
    ) -> str:
        parts = [f"({self.where})"] if self.where else []
        if bounds.kind == WATERMARK:
            parts.append(self._increments(connection, columns).range(bounds.position))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _increments(self, connection: Connection, columns: tuple[Column, ...]) -> Increments:
        server = self.server
        place = server.resolved(connection, named_place(self.table)) if self.table else None
        keys = server.unique_keys(connection, place) if place else []
        return Increments(
            server=server,
            relation=self._relation(),
            where=self.where,
            column=_named(columns, self.watermark),
            identities=Increments.identities_of(server, connection, place, columns),
            unique=(self.watermark,) in keys,
            overlap=self.overlap,
            allow_future=self.allow_future,
        )

    def _slices(self, connection: Connection, bounds: Bounds, condition: str, cores: int) -> Slices:
        """How the read is cut: by blocks where the server can, else by ranges of a column."""
        rows = bounds.position.get("rows")
        small = rows is not None and rows < _BIG_INCREMENT_ROWS and self.partitions is None
        if small or self.partitions == 1:
            return Slices()
        server = self.server
        place = server.resolved(connection, named_place(self.table)) if self.table else None
        blocks = server.blocks(connection, place) if place and not self.partition_column else 0
        if place is not None and blocks:
            parts = self.partitions or parts_for(blocks * BLOCK_BYTES, cores=cores)
            return block_slices(server, blocks, parts)
        column = self.partition_column
        if not column and place is not None and self.partitions:
            column = server.partition_key(connection, place)
        if not column:
            return Slices()
        name = server.quoted(column)
        sql = f"SELECT min({name}), max({name}) FROM {self._relation()}{condition}"
        low, high = connection.rows(sql)[0]
        return value_slices(server, column, low, high, self.partitions or cores)


def _named(columns: tuple[Column, ...], name: str) -> Column:
    for column in columns:
        if column.name == name:
            return column
    names = [column.name for column in columns]
    raise SpecError(f'column "{name}" does not exist', hint=did_you_mean(name, names))


def _told(identity: str) -> str:
    """A source for people: all but the kind of its server."""
    return f'"{identity.partition(" ")[2]}"'
