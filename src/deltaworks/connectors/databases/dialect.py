"""What every kind of database server can be asked, each in its own words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from deltaworks.connectors.databases.connection_params import Address
from deltaworks.errors import MissingDependencyError

STAGE = "_deltaworks_stage_"
BATCHES = "_deltaworks_batches"
BLOCK_BYTES = 8192
AHEAD_DAYS = 2
"""How far after now a timestamp counts as future: clocks of all time zones are within it."""


@dataclass(frozen=True)
class Column:
    """A column of a table or a query, as its server describes it."""

    name: str
    kind: str
    """The type's name."""
    precision: int | None = None
    scale: int | None = None


@dataclass(frozen=True)
class Place:
    """A table by its own name and that of the schema it is in."""

    schema: str
    table: str

    @property
    def label(self) -> str:
        """The table for people."""
        return f"{self.schema}.{self.table}" if self.schema else self.table


def named_place(name: str) -> Place:
    """`orders` or `sales.orders`."""
    schema, _, table = name.rpartition(".")
    return Place(schema, table)


class Connection:
    """An open connection; every error of the driver arrives in our words."""

    def __init__(self, server: Dialect, connection: Any, address: Address) -> None:
        self._server = server
        self._connection = connection
        self._address = address

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What a query answers."""
        with self._server.translate_errors(self._address), self._connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def one(self, sql: str, *values: object) -> Any:
        """The one value that a query answers; None when it has no row."""
        found = self.rows(sql, *values)
        return found[0][0] if found else None

    def run(self, sql: str, *values: object) -> int:
        """Carry out a statement; how many rows it touched."""
        with self._server.translate_errors(self._address), self._connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return int(cursor.rowcount)

    def described(self, sql: str) -> Sequence[Any]:
        """The columns of a query's answer, as the driver describes them."""
        with self._server.translate_errors(self._address), self._connection.cursor() as cursor:
            cursor.execute(sql)
            return tuple(cursor.description or ())

    def commit(self) -> None:
        """Make everything since the last commit count."""
        with self._server.translate_errors(self._address, committing=True):
            self._connection.commit()

    def close(self) -> None:
        """End the connection; what was not committed never was."""
        self._connection.close()


class Dialect(ABC):
    """One kind of database server."""

    name: ClassVar[str]
    title: ClassVar[str]
    default_port: ClassVar[int]
    driver_class: ClassVar[str]
    allowed_options: ClassVar[frozenset[str]]
    merges_by_any_key: ClassVar[bool] = False
    """Whether an upsert updates a row that shares any unique key, not only that of the merge."""

    @contextmanager
    def open(self, address: Address, *, read_only: bool) -> Iterator[Connection]:
        """A conversation with the server; it ends with the block."""
        with self.translate_errors(address, connecting=True):
            opened = self._connect(address)
        connection = Connection(self, opened, address)
        try:
            self.prepare(connection, read_only=read_only)
            yield connection
        finally:
            connection.close()

    def driver(self, package: str) -> Any:
        """The Python package by which the server is asked."""
        try:
            return import_module(package)
        except ModuleNotFoundError:
            raise MissingDependencyError(
                f"{self.title} needs the package {package}, which is not installed",
                hint=f"pip install 'deltaworks[{self.name}]'",
            ) from None

    @abstractmethod
    def _connect(self, address: Address) -> Any:
        """A connection of the Python driver, without autocommit."""

    @abstractmethod
    def translate_errors(
        self, address: Address, *, connecting: bool = False, committing: bool = False
    ) -> AbstractContextManager[None]:
        """Translate the driver's errors."""

    @abstractmethod
    def prepare(self, connection: Connection, *, read_only: bool) -> None:
        """Set up a fresh connection."""

    @abstractmethod
    def url(self, address: Address) -> str:
        """The URL for Spark: host, port and database, and nothing else of the user's."""

    @abstractmethod
    def driver_options(self, address: Address) -> Mapping[str, str]:
        """What the JDBC driver is told besides."""

    @abstractmethod
    def first_statement(self, snapshot: str) -> str:
        """What every reading connection of Spark says first."""

    @abstractmethod
    def quoted(self, name: str) -> str:
        """An identifier."""

    def literal(self, text: str) -> str:
        """A text; quotes are doubled, which both servers read alike."""
        return "'" + text.replace("'", "''") + "'"

    def sql_of(self, place: Place) -> str:
        """A table in a statement."""
        names = (place.schema, place.table) if place.schema else (place.table,)
        return ".".join(self.quoted(name) for name in names)

    @abstractmethod
    def columns(self, connection: Connection, relation: str) -> tuple[Column, ...]:
        """The columns of what stands behind a FROM."""

    @abstractmethod
    def readable(self, column: Column) -> str:
        """The column as an expression whose type Spark reads exactly."""

    def instants(self, columns: Sequence[Column]) -> tuple[str, ...]:
        """Columns that are read as UTC without a zone, and are instants."""
        return ()

    @abstractmethod
    def resolved(self, connection: Connection, place: Place) -> Place | None:
        """The table with the schema it is really in; None when there is none."""

    @abstractmethod
    def is_table(self, connection: Connection, place: Place) -> bool:
        """Whether it holds its rows itself, so that the same ones are there when asked again."""

    @abstractmethod
    def home(self, connection: Connection) -> str:
        """The schema in which a table without one is made."""

    @abstractmethod
    def identity(self, connection: Connection, place: Place) -> str:
        """Another one as soon as another table has the same name, where the server can tell."""

    @abstractmethod
    def near_names(self, connection: Connection, place: Place) -> list[str]:
        """Tables that may have been meant."""

    @abstractmethod
    def as_text(self, expression: str) -> str:
        """A value as text that reads back as the same value."""

    @abstractmethod
    def earlier(self, literal: str, column: Column, seconds: int) -> str:
        """A timestamp some seconds before another."""

    def endless(self, column: Column) -> str:
        """The condition for values that come before or after all others; empty for none."""
        return ""

    @abstractmethod
    def ahead(self, moment: str, column: Column) -> str:
        """The condition for a timestamp that lies well after now; empty where it is not one."""

    @abstractmethod
    def digest(self, columns: Sequence[Column]) -> str:
        """A text of 32 signs that tells rows apart, whichever connection asks."""

    @abstractmethod
    def digest_sum(self, digest: str) -> str:
        """The sum of many digests, in which their order does not count."""

    def mark(self, connection: Connection, place: Place) -> str:
        """The identity of a table that batches land in; it gets one where it has none."""
        return self.identity(connection, place)

    @abstractmethod
    def partition_key(self, connection: Connection, place: Place) -> str:
        """A column of the primary key that can be cut into ranges; empty when there is none."""

    def blocks(self, connection: Connection, place: Place) -> int:
        """How many blocks a table has that can be read one range by one; 0 when it cannot."""
        return 0

    def snapshot(self, connection: Connection) -> str:
        """The name of what this conversation sees, for others to see the same; empty for none."""
        return ""

    def reader_options(self) -> Mapping[str, str]:
        """What the driver is told when Spark reads, unless the user says otherwise."""
        return {}

    @abstractmethod
    def writer_options(self) -> Mapping[str, str]:
        """Options of the URL by which Spark writes."""

    @abstractmethod
    def type_for(self, spark_type: str) -> str:
        """The type of a new column that holds values of a type of Spark's; empty for none."""

    def key_type(self, kind: str) -> str:
        """The type of a new column that is part of a key."""
        return kind

    def sends(self, kind: str) -> str:
        """Whether timestamps go to a column as instants or in UTC without a zone."""
        return "timestamp_ntz" if "without time zone" in kind else "timestamp"

    @abstractmethod
    def make_stage(
        self, connection: Connection, stage: Place, target: Place | None, columns: Mapping[str, str]
    ) -> None:
        """An empty table with some columns, typed as in the target or else as told."""

    def moved(self, column: Column) -> str:
        """A staged value as the target takes it."""
        return self.quoted(column.name)

    @abstractmethod
    def unique_keys(self, connection: Connection, place: Place) -> list[tuple[str, ...]]:
        """The columns of each unique index of a table."""

    @abstractmethod
    def clear(self, connection: Connection, place: Place) -> int | None:
        """Remove all rows within the transaction; how many, where that is known."""

    @abstractmethod
    def merge(
        self,
        connection: Connection,
        stage: Place,
        target: Place,
        columns: Sequence[Column],
        keys: Sequence[str],
    ) -> tuple[int, int]:
        """Insert or update by keys; how many rows were inserted, and how many updated."""
