"""PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from deltaworks.connectors.databases.connection_params import Address
from deltaworks.connectors.databases.dialect import (
    AHEAD_DAYS,
    BLOCK_BYTES,
    Column,
    Connection,
    Dialect,
    Place,
)
from deltaworks.connectors.databases.errors import database_error

_SETTINGS = (
    "SET TIME ZONE 'UTC'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres'; "
    "SET extra_float_digits = 3; SET bytea_output = 'hex'"
)
"""What every connection says, so that all write a value in the same way."""
_BLOCK_RANGES = 140_000
"""The first version that reads a range of blocks without looking at the others."""
_PLAIN = (
    *("boolean", "smallint", "integer", "bigint", "real", "double precision", "text", "bytea"),
    *("character varying", "character", "name", "date"),
    *("timestamp with time zone", "timestamp without time zone"),
)
_PLAIN_ITEMS = frozenset(_PLAIN) - {"bytea", "character", "name"}
_MAX_DIGITS = 38
_RANGES = ("smallint", "integer", "bigint", "date", "timestamp with time zone")
_MOMENTS = ("date", "timestamp with time zone", "timestamp without time zone")
_NO_EQUALITY = ("json", "xml", "point", "box", "polygon", "path", "circle", "line", "lseg")
_TYPES = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "boolean": "boolean",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
}
_KINDS = {
    "28": "login",
    "3D": "database",
    "42501": "rights",
    "42P01": "table",
    "3F": "table",
    "42": "statement",
    "25006": "writes",
    "23": "rule",
    "22": "value",
    "40": "conflict",
    "08": "connection",
    "57P": "connection",
}
"""The beginnings of SQL states, the longest that fits counts."""


class Postgres(Dialect):
    """PostgreSQL, by psycopg and its JDBC driver."""

    name = "postgres"
    title = "PostgreSQL"
    default_port = 5432
    driver_class = "org.postgresql.Driver"
    allowed_options = frozenset(
        (
            *("ApplicationName", "connectTimeout", "gssEncMode", "loginTimeout", "socketTimeout"),
            *("prepareThreshold", "targetServerType", "tcpKeepAlive"),
        )
    )

    def _connect(self, address: Address) -> Any:
        return self.driver("psycopg").connect(
            host=address.host,
            port=address.port,
            dbname=address.database,
            user=address.user,
            password=address.password or None,
            connect_timeout=address.timeout_seconds,
            application_name="deltaworks",
            **_tls(address),
        )

    @contextmanager
    def translate_errors(
        self, address: Address, *, connecting: bool = False, committing: bool = False
    ) -> Iterator[None]:
        psycopg = self.driver("psycopg")
        try:
            yield
        except psycopg.Error as error:
            kind = _kind(error.sqlstate or "", str(error), connecting=connecting)
            if not kind and isinstance(error, psycopg.OperationalError):
                kind = "connection"
            said = error.diag.message_primary or str(error)
            raise database_error(kind, said, address, committing=committing) from error

    def prepare(self, connection: Connection, *, read_only: bool) -> None:
        connection.run(_SETTINGS)
        connection.commit()
        if read_only:
            connection.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def url(self, address: Address) -> str:
        place = f"{address.url_host}:{address.port}/{quote(address.database, safe='')}"
        return f"jdbc:postgresql://{place}"

    def driver_options(self, address: Address) -> Mapping[str, str]:
        ours = {"connectTimeout": str(address.timeout_seconds), "ApplicationName": "deltaworks"}
        return {**ours, **_tls(address), **address.options}

    def reader_options(self) -> Mapping[str, str]:
        # Numbers and moments travel as bytes from the first row on, and nobody writes and parses
        # texts of them.
        return {"prepareThreshold": "-1"}

    def first_statement(self, snapshot: str) -> str:
        begin = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
        if snapshot:
            begin = f"{begin}; SET TRANSACTION SNAPSHOT {self.literal(snapshot)}"
        return f"{begin}; {_SETTINGS}"

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def columns(self, connection: Connection, relation: str) -> tuple[Column, ...]:
        found = connection.described(f"SELECT * FROM {relation} LIMIT 0")
        oids = sorted({item.type_code for item in found})
        names = dict(
            connection.rows("SELECT t, format_type(t, NULL) FROM unnest(%s::oid[]) t", oids)
        )
        return tuple(
            Column(item.name, names[item.type_code], item.precision, item.scale) for item in found
        )

    def readable(self, column: Column) -> str:
        name, kind = self.quoted(column.name), column.kind
        if kind in _PLAIN or (kind == "numeric" and _fits(column)):
            return name
        if kind.endswith("[]"):
            return f"{name}::text[]" if _is_odd_array(kind) else name
        return f"{name}::text"

    def resolved(self, connection: Connection, place: Place) -> Place | None:
        found = connection.rows(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n "
            "ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)",
            self.sql_of(place),
        )
        return Place(*found[0]) if found else None

    def is_table(self, connection: Connection, place: Place) -> bool:
        kinds = "relkind IN ('r', 'p', 'm')"
        sql = f"SELECT {kinds} FROM pg_class WHERE oid = to_regclass(%s)"
        return bool(connection.one(sql, self.sql_of(place)))

    def home(self, connection: Connection) -> str:
        return str(connection.one("SELECT current_schema()"))

    def identity(self, connection: Connection, place: Place) -> str:
        return str(connection.one("SELECT to_regclass(%s)::oid", self.sql_of(place)))

    def near_names(self, connection: Connection, place: Place) -> list[str]:
        found = connection.rows(
            "SELECT schemaname, tablename, schemaname = ANY (current_schemas(false)) "
            "FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        return [table if seen and not place.schema else f"{s}.{table}" for s, table, seen in found]

    def as_text(self, expression: str) -> str:
        return f"({expression})::text"

    def earlier(self, literal: str, column: Column, seconds: int) -> str:
        return f"({literal}::{column.kind} - interval '{seconds} seconds')"

    def endless(self, column: Column) -> str:
        if column.kind in ("real", "double precision", "numeric"):
            return f"{self.quoted(column.name)}::text IN ('NaN', 'Infinity', '-Infinity')"
        return f"NOT isfinite({self.quoted(column.name)})" if column.kind in _MOMENTS else ""

    def ahead(self, moment: str, column: Column) -> str:
        if column.kind not in _MOMENTS:
            return ""
        now = "now()" if column.kind.endswith("with time zone") else "now() AT TIME ZONE 'UTC'"
        typed = moment if moment == self.quoted(column.name) else f"{moment}::{column.kind}"
        return f"{typed} > {now} + interval '{AHEAD_DAYS} days'"

    def digest(self, columns: Sequence[Column]) -> str:
        return f"md5(ROW({', '.join(self.quoted(column.name) for column in columns)})::text)"

    def digest_sum(self, digest: str) -> str:
        return f"sum(('x' || left({digest}, 15))::bit(60)::bigint)"

    def partition_key(self, connection: Connection, place: Place) -> str:
        found = connection.rows(
            "SELECT a.attname, format_type(a.atttypid, NULL) FROM pg_index i "
            "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
            "WHERE i.indrelid = to_regclass(%s) AND i.indisprimary",
            self.sql_of(place),
        )
        return next((name for name, kind in found if kind in _RANGES), "")

    def blocks(self, connection: Connection, place: Place) -> int:
        found = connection.rows(
            "SELECT relkind, current_setting('server_version_num')::int, pg_relation_size(oid) "
            "FROM pg_class WHERE oid = to_regclass(%s)",
            self.sql_of(place),
        )
        plain = (
            bool(found) and found[0][0] in ("r", "m", b"r", b"m") and found[0][1] >= _BLOCK_RANGES
        )
        return int(found[0][2]) // BLOCK_BYTES if plain else 0

    def snapshot(self, connection: Connection) -> str:
        return str(connection.one("SELECT pg_export_snapshot()"))

    def writer_options(self) -> Mapping[str, str]:
        # Texts go in as what the column is: json, uuid, inet and the like.
        return {"stringtype": "unspecified", "reWriteBatchedInserts": "true"}

    def type_for(self, spark_type: str) -> str:
        if found := re.fullmatch(r"decimal\((\d+),(\d+)\)", spark_type):
            return f"numeric({found[1]},{found[2]})"
        if found := re.fullmatch(r"array<(.+)>", spark_type):
            item = self.type_for(found[1])
            return f"{item}[]" if item and not item.endswith("[]") else ""
        return _TYPES.get(spark_type, "")

    def make_stage(
        self, connection: Connection, stage: Place, target: Place | None, columns: Mapping[str, str]
    ) -> None:
        connection.run(f"DROP TABLE IF EXISTS {self.sql_of(stage)}")
        if target is None:
            typed = ", ".join(f"{self.quoted(name)} {kind}" for name, kind in columns.items())
            connection.run(f"CREATE UNLOGGED TABLE {self.sql_of(stage)} ({typed})")
            return
        names = ", ".join(
            f"{self.quoted(n)}::text[]" if _is_odd_array(kind) else self.quoted(n)
            for n, kind in columns.items()
        )
        rows = f"SELECT {names} FROM {self.sql_of(target)}"
        connection.run(f"CREATE UNLOGGED TABLE {self.sql_of(stage)} AS {rows} WITH NO DATA")

    def moved(self, column: Column) -> str:
        name = self.quoted(column.name)
        return f"{name}::{column.kind}" if _is_odd_array(column.kind) else name

    def unique_keys(self, connection: Connection, place: Place) -> list[tuple[str, ...]]:
        found = connection.rows(
            "SELECT i.indexrelid, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_index i "
            "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) "
            "WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indpred IS NULL "
            "AND i.indexprs IS NULL GROUP BY 1",
            self.sql_of(place),
        )
        return [tuple(names) for _, names in found]

    def clear(self, connection: Connection, place: Place) -> int | None:
        connection.run(f"TRUNCATE {self.sql_of(place)}")
        return None

    def merge(
        self,
        connection: Connection,
        stage: Place,
        target: Place,
        columns: Sequence[Column],
        keys: Sequence[str],
    ) -> tuple[int, int]:
        names = ", ".join(self.quoted(column.name) for column in columns)
        others = [column for column in columns if column.name not in keys]
        sets = ", ".join(f"{self.quoted(c.name)} = excluded.{self.quoted(c.name)}" for c in others)
        changed = " OR ".join(self._changed(column) for column in others)
        action = f"DO UPDATE SET {sets} WHERE {changed}" if others else "DO NOTHING"
        found = connection.rows(
            f"WITH done AS (INSERT INTO {self.sql_of(target)} AS old ({names}) "
            f"SELECT {', '.join(map(self.moved, columns))} FROM {self.sql_of(stage)} "
            f"ON CONFLICT ({', '.join(map(self.quoted, keys))}) {action} "
            "RETURNING (old.xmax = 0) AS fresh) "
            "SELECT count(*) FILTER (WHERE fresh), count(*) FILTER (WHERE NOT fresh) FROM done"
        )
        return int(found[0][0]), int(found[0][1])

    def _changed(self, column: Column) -> str:
        name = self.quoted(column.name)
        cast = "::text" if column.kind in _NO_EQUALITY else ""
        return f"old.{name}{cast} IS DISTINCT FROM excluded.{name}{cast}"


def _is_odd_array(kind: str) -> bool:
    """Whether the items of an array travel as texts."""
    return kind.endswith("[]") and kind.removesuffix("[]") not in _PLAIN_ITEMS


def _fits(column: Column) -> bool:
    if column.precision is None or column.scale is None:
        return False
    return column.precision <= _MAX_DIGITS and 0 <= column.scale <= column.precision


def _kind(state: str, said: str, *, connecting: bool) -> str:
    for length in (5, 3, 2):
        if state[:length] in _KINDS and len(state) >= length:
            return _KINDS[state[:length]]
    if connecting:
        return _connecting_kind(said)
    return ""


def _connecting_kind(said: str) -> str:
    """A connection that fails carries no state, only the server's words."""
    if "authentication failed" in said or "no password" in said or "pg_hba" in said:
        return "login"
    if re.search(r'role ".*" does not exist', said):
        return "login"
    if re.search(r'database ".*" does not exist', said):
        return "database"
    return "connection"


def _tls(address: Address) -> dict[str, str]:
    options = {"sslmode": address.tls} if address.tls else {}
    return {**options, **({"sslrootcert": address.tls_ca} if address.tls_ca else {})}


POSTGRES = Postgres()
