"""What all sources of databases have in common: a table or query, read in parts of one moment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from deltaworks.contracts.context import RunContext, Site
from deltaworks.contracts.duration import duration
from deltaworks.contracts.plugin import Names
from deltaworks.contracts.source import Source
from deltaworks.engines.database_end import DatabaseEnd
from deltaworks.engines.databases.address import Address
from deltaworks.engines.databases.server import BLOCK_BYTES, Column, Conversation, named_place
from deltaworks.engines.databases.slices import (
    PART,
    Slices,
    block_slices,
    parts_for,
    value_slices,
)
from deltaworks.errors import DeltaworksError, EngineError, InputError, SpecError, TableNotFound
from deltaworks.model.batch import UNBOUNDED, WATERMARK, Bounds
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_NUMBERS = (
    *("smallint", "integer", "bigint", "numeric", "real", "double precision"),
    *("tinyint", "mediumint", "int", "decimal", "float", "double"),
)
_BIG_INCREMENT_ROWS = 500_000


class DatabaseSource(DatabaseEnd, Source):
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
    partitions: int | None = Field(default=None, ge=1, le=1000)
    """Connections that read side by side; chosen by the table's size when left out."""
    partition_column: str = ""
    """The column that is cut into ranges for them; found when left out."""
    fetch_rows: int = Field(default=10_000, ge=1)
    """Rows that the driver fetches at once."""
    consistent: bool = True
    """Whether all rows are read as of one moment."""

    @field_validator("overlap", mode="before")
    @classmethod
    def _a_length(cls, value: object) -> object:
        text = str(value)
        if text and not _NUMBER.fullmatch(text):
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
        return tuple(found)

    def reads_increments(self) -> bool:
        return self.incremental

    def repeats_rows(self) -> bool:
        return bool(self.overlap)

    def bounds(self, site: Site, since: Bounds | None) -> Bounds:
        address = self.address(site)
        with self.server.open(address, read_only=True) as talk:
            columns = self._columns(talk)
            identity = self._identity(address)
            if not self.incremental:
                return Bounds(kind=UNBOUNDED, identity=identity)
            same = since is not None and since.identity == identity
            last = since.position["until"] if since is not None and same else None
            return self._increment(talk, identity, _named(columns, self.watermark), last)

    def holds_rows(self, site: Site, bounds: Bounds) -> bool:
        if bounds.kind != UNBOUNDED or not self.table or self.where:
            return False  # the server might have to search for one
        with self.server.open(self.address(site), read_only=True) as talk:
            return bool(talk.rows(f"SELECT 1 FROM {self._relation()} LIMIT 1"))

    def probe(self, site: Site) -> str:
        with self.server.open(self.address(site), read_only=True) as talk:
            columns = self._columns(talk)
            where = f" WHERE {self.where}" if self.where else ""
            found = talk.rows(f"SELECT 1 FROM {self._relation()}{where} LIMIT 1")
        return f"{len(columns)} columns, {'rows' if found else 'no rows'} in them"

    def start_at(self, site: Site, point: str) -> Bounds | None:
        position = {"until": point, "rows": None}
        return Bounds(
            kind=WATERMARK, identity=self._identity(self.address(site)), position=position
        )

    def still_there(self, site: Site, bounds: Bounds) -> str:
        if bounds.kind == UNBOUNDED:
            return "what a table or query gave once cannot be asked of the database again"
        if bounds.identity != self._identity(self.address(site)):
            return "the source has changed"
        rows = bounds.position.get("rows")
        try:
            with self.server.open(self.address(site), read_only=True) as talk:
                column = _named(self._columns(talk), self.watermark)
                found = self._count(talk, self._range(bounds, column))
        except DeltaworksError as problem:
            return problem.message
        if rows is None or rows == found:
            return ""
        return (
            f"{rows:,} rows were to be read up to {bounds.position['until']}, now it is {found:,}"
        )

    def changed_while_read(self, site: Site, bounds: Bounds) -> str:
        return ""  # one snapshot was read; what was changed since has a higher watermark

    def explain_failure(
        self, ctx: RunContext, bounds: Bounds, error: DeltaworksError
    ) -> DeltaworksError:
        """A task that failed need not say why: then the server is asked whether it is there."""
        if type(error) is not EngineError:
            return error
        try:
            with self.server.open(self.address(ctx.site), read_only=True):
                return error
        except DeltaworksError as problem:
            return problem.at(error.file, error.line)

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from deltaworks.engines.spark.connection import parallelism
        from deltaworks.engines.spark.jdbc import JdbcRead, read_rows

        address, server = self.address(ctx.site), self.server
        talk = ctx.until_end.enter_context(server.open(address, read_only=True))
        columns = self._columns(talk)
        condition = self._condition(bounds, columns)
        cores = parallelism(ctx.spark)
        slices = self._slices(talk, bounds, condition, cores)
        snapshot = server.snapshot(talk) if self.consistent else ""
        if not snapshot:
            talk.commit()  # nothing waits for what this connection saw
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

    def _columns(self, talk: Conversation) -> tuple[Column, ...]:
        """All columns there are; a table or a column that is not there is told."""
        if self.table:
            self._require_table(talk)
        found = self.server.columns(talk, self._relation())
        for name in (*self.columns, self.watermark, self.partition_column):
            if name:
                _named(found, name)
        return found

    def _require_table(self, talk: Conversation) -> None:
        place = named_place(self.table)
        if self.server.resolved(talk, place) is None:
            hint = did_you_mean(self.table, self.server.near_names(talk, place))
            raise TableNotFound(f'there is no table "{self.table}" in the database', hint=hint)

    def _chosen(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return tuple(_named(columns, name) for name in self.columns) or columns

    def _condition(self, bounds: Bounds, columns: tuple[Column, ...]) -> str:
        parts = [f"({self.where})"] if self.where else []
        if bounds.kind == WATERMARK:
            parts.append(self._range(bounds, _named(columns, self.watermark)))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _range(self, bounds: Bounds, column: Column) -> str:
        """The rows of an increment."""
        name, until = self.server.quoted(column.name), bounds.position["until"]
        if until is None:
            return "1 = 0"
        upper = f"{name} <= {self._literal(until, column)}"
        last = bounds.position.get("since")
        return upper if last is None else f"{name} > {self._lower(last, column)} AND {upper}"

    def _lower(self, last: str, column: Column) -> str:
        literal = self._literal(last, column)
        if not self.overlap:
            return literal
        if column.kind in _NUMBERS:
            return f"({literal} - {self.overlap})"
        if _NUMBER.fullmatch(self.overlap):
            raise SpecError(
                f'"overlap" of "{column.name}" must be a length of time, not {self.overlap}',
                hint="such as 15m",
            )
        seconds = int(duration(self.overlap).total_seconds())
        return self.server.earlier(literal, column, seconds)

    def _literal(self, text: str, column: Column) -> str:
        number = column.kind in _NUMBERS and _NUMBER.fullmatch(text)
        return text if number else self.server.literal(text)

    def _increment(
        self, talk: Conversation, identity: str, column: Column, last: str | None
    ) -> Bounds:
        name, where = self.server.quoted(column.name), f"({self.where}) AND " if self.where else ""
        missing = self._count(talk, f"{name} IS NULL")
        if missing:
            raise InputError(
                f'{missing:,} rows have no "{column.name}", so that no increment would have them',
                hint=f'fill it, or leave such rows out: where: "{column.name} IS NOT NULL"',
            )
        newer = "1 = 1" if last is None else f"{name} > {self._lower(last, column)}"
        highest = self.server.as_text(f"max({name})")
        until = talk.one(f"SELECT {highest} FROM {self._relation()} WHERE {where}{newer}")
        position: dict[str, str | int | None] = {"until": until or last, "since": last}
        bounds = Bounds(kind=WATERMARK, identity=identity, position=position)
        rows = self._count(talk, self._range(bounds, column))
        return Bounds(kind=WATERMARK, identity=identity, position={**position, "rows": rows})

    def _count(self, talk: Conversation, condition: str) -> int:
        where = f"({self.where}) AND " if self.where else ""
        return int(talk.one(f"SELECT count(*) FROM {self._relation()} WHERE {where}{condition}"))

    def _slices(self, talk: Conversation, bounds: Bounds, condition: str, cores: int) -> Slices:
        """How the read is cut: by blocks where the server can, else by ranges of a column."""
        rows = bounds.position.get("rows")
        small = rows is not None and rows < _BIG_INCREMENT_ROWS and self.partitions is None
        if small or self.partitions == 1:
            return Slices()
        server = self.server
        place = server.resolved(talk, named_place(self.table)) if self.table else None
        blocks = server.blocks(talk, place) if place and not self.partition_column else 0
        if place is not None and blocks:
            parts = self.partitions or parts_for(blocks * BLOCK_BYTES, cores=cores)
            return block_slices(server, blocks, parts)
        column = self.partition_column
        if not column and place is not None and self.partitions:
            column = server.partition_key(talk, place)
        if not column:
            return Slices()
        name = server.quoted(column)
        sql = f"SELECT min({name}), max({name}) FROM {self._relation()}{condition}"
        low, high = talk.rows(sql)[0]
        return value_slices(server, column, low, high, self.partitions or cores)


def _named(columns: tuple[Column, ...], name: str) -> Column:
    for column in columns:
        if column.name == name:
            return column
    names = [column.name for column in columns]
    raise SpecError(f'column "{name}" does not exist', hint=did_you_mean(name, names))
