"""MySQL and MariaDB."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from deltaworks.connectors.databases.connection_params import Address
from deltaworks.connectors.databases.dialect import AHEAD_DAYS, Column, Connection, Dialect, Place
from deltaworks.connectors.databases.errors import database_error
from deltaworks.errors import DeltaworksError

_KINDS = {
    "login": (1045, 1698, 1251, 3118),
    "database": (1049,),
    "rights": (1044, 1142, 1143, 1227),
    "table": (1146, 1051),
    "statement": (1054, 1064, 1305, 1052, 1060, 1247),
    "writes": (1792, 1290),
    "rule": (1048, 1062, 1451, 1452, 1364, 3819, 4025),
    "value": (1264, 1265, 1292, 1366, 1406, 3140),
    "conflict": (1205, 1213),
    "connection": (0, 2002, 2003, 2006, 2013, 2014, 2055, 1040, 1053, 1927),
}
_TROUBLE = {code: kind for kind, codes in _KINDS.items() for code in codes}
_NAMES = {
    0: "decimal",
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "float",
    5: "double",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
    14: "date",
    16: "bit",
    245: "json",
    246: "decimal",
    255: "geometry",
}
"""Numbers of types in the protocol -> what they are called; the others are text or bytes."""
_RANGES = ("tinyint", "smallint", "mediumint", "int", "bigint", "date", "datetime", "timestamp")
_MAX_DIGITS = 38
_TYPES = {
    "tinyint": "tinyint",
    "smallint": "smallint",
    "int": "int",
    "bigint": "bigint",
    "float": "float",
    "double": "double",
    "string": "longtext",
    "boolean": "tinyint(1)",
    "binary": "longblob",
    "date": "date",
    "timestamp": "datetime(6)",
    "timestamp_ntz": "datetime(6)",
}
_SIGN = re.compile(r"\[deltaworks ([0-9a-f]{32})\]")
_SIGN_SECONDS = 5
"""How long a table's comment may wait for those who read the table."""
_JDBC_TLS = {
    "disable": "disable",
    "require": "trust",
    "verify-ca": "verify-ca",
    "verify-full": "verify-full",
}


class MySql(Dialect):
    """MySQL and MariaDB, by PyMySQL and MariaDB's JDBC driver."""

    name = "mysql"
    title = "MySQL"
    default_port = 3306
    merges_by_any_key = True
    driver_class = "org.mariadb.jdbc.Driver"
    allowed_options = frozenset(
        (
            "connectTimeout",
            "socketTimeout",
            "tcpKeepAlive",
            "useCompression",
            "connectionAttributes",
        )
    )

    def _connect(self, address: Address) -> Any:
        return self.driver("pymysql").connect(
            host=address.host,
            port=address.port,
            database=address.database,
            user=address.user,
            password=address.password,
            connect_timeout=address.timeout_seconds,
            charset="utf8mb4",
            autocommit=False,
            **_tls(address),
        )

    @contextmanager
    def translate_errors(
        self, address: Address, *, connecting: bool = False, committing: bool = False
    ) -> Iterator[None]:
        pymysql = self.driver("pymysql")
        try:
            yield
        except (pymysql.Error, OSError) as error:  # certificates are opened before anything else
            code = error.args[0] if error.args and isinstance(error.args[0], int) else None
            said = str(error.args[-1]) if error.args else ""
            otherwise = "connection" if connecting or code is None else ""
            kind = _TROUBLE.get(code or 0, otherwise)
            raise database_error(kind, said, address, committing=committing) from error

    def prepare(self, connection: Connection, *, read_only: bool) -> None:
        connection.run("SET time_zone = '+00:00'")
        connection.run("SET sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES')")
        if read_only:
            connection.run("SET SESSION TRANSACTION READ ONLY")

    def url(self, address: Address) -> str:
        place = f"{address.url_host}:{address.port}/{quote(address.database, safe='')}"
        # Spark knows the server's own words only behind this scheme.
        return f"jdbc:mysql://{place}?permitMysqlScheme"

    def driver_options(self, address: Address) -> Mapping[str, str]:
        tls = {"sslMode": _JDBC_TLS[address.tls]} if address.tls else {}
        return {
            "connectTimeout": str(address.timeout_seconds * 1000),
            "tinyInt1isBit": "false",
            "sessionVariables": "time_zone='+00:00'",
            **tls,
            **({"serverSslCert": address.tls_ca} if address.tls_ca else {}),
            **address.options,
        }

    def first_statement(self, snapshot: str) -> str:
        return "SET SESSION TRANSACTION READ ONLY"

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def literal(self, text: str) -> str:
        return super().literal(text.replace("\\", "\\\\"))

    def columns(self, connection: Connection, relation: str) -> tuple[Column, ...]:
        found = connection.described(f"SELECT * FROM {relation} LIMIT 0")
        return tuple(
            Column(item[0], _NAMES.get(item[1], "text"), item[4], item[5]) for item in found
        )

    def readable(self, column: Column) -> str:
        name, kind = self.quoted(column.name), column.kind
        if kind in ("date", "datetime"):
            return f"IF(MONTH({name}) > 0 AND DAYOFMONTH({name}) > 0, {name}, NULL)"
        if kind == "timestamp":
            return f"IF(MONTH({name}) > 0, CAST({name} AS datetime(6)), NULL)"
        if kind == "year":
            return f"CAST({name} AS signed)"
        if kind == "bit" and column.precision != 1:
            return f"CAST({name} AS unsigned)"
        if kind == "geometry":
            return f"ST_AsText({name})"
        too_long = kind == "decimal" and _digits(column) > _MAX_DIGITS
        return f"CAST({name} AS char)" if too_long or kind in ("time", "json") else name

    def instants(self, columns: Sequence[Column]) -> tuple[str, ...]:
        return tuple(column.name for column in columns if column.kind == "timestamp")

    def resolved(self, connection: Connection, place: Place) -> Place | None:
        found = connection.rows(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_schema = COALESCE(NULLIF(%s, ''), DATABASE()) AND table_name = %s",
            place.schema,
            place.table,
        )
        return Place(*found[0]) if found else None

    def is_table(self, connection: Connection, place: Place) -> bool:
        sql = "SELECT table_type FROM information_schema.tables "
        named = "WHERE table_schema = %s AND table_name = %s"
        return bool(connection.one(sql + named, place.schema, place.table) == "BASE TABLE")

    def home(self, connection: Connection) -> str:
        return str(connection.one("SELECT DATABASE()"))

    def identity(self, connection: Connection, place: Place) -> str:
        """The sign in the table's comment: there is no number that an ALTER TABLE leaves alone."""
        found = _SIGN.search(self._comment(connection, place))
        return found[1] if found else place.label

    def mark(self, connection: Connection, place: Place) -> str:
        comment = self._comment(connection, place)
        if not _SIGN.search(comment):
            signed = f"{comment} [deltaworks {uuid4().hex}]".strip()
            connection.run(f"SET SESSION lock_wait_timeout = {_SIGN_SECONDS}")
            with suppress(DeltaworksError):  # a view, or no right to: then its name must do
                connection.run(f"ALTER TABLE {self.sql_of(place)} COMMENT = {self.literal(signed)}")
            connection.run("SET SESSION lock_wait_timeout = DEFAULT")
        return self.identity(connection, place)

    def _comment(self, connection: Connection, place: Place) -> str:
        sql = "SELECT table_comment FROM information_schema.tables "
        named = "WHERE table_schema = COALESCE(NULLIF(%s, ''), DATABASE()) AND table_name = %s"
        return str(connection.one(sql + named, place.schema, place.table) or "")

    def near_names(self, connection: Connection, place: Place) -> list[str]:
        found = connection.rows(
            "SELECT table_schema, table_name, table_schema = DATABASE() "
            "FROM information_schema.tables WHERE table_schema NOT IN "
            "('information_schema', 'mysql', 'performance_schema', 'sys')"
        )
        return [table if here and not place.schema else f"{s}.{table}" for s, table, here in found]

    def as_text(self, expression: str) -> str:
        return f"CAST({expression} AS char)"

    def earlier(self, literal: str, column: Column, seconds: int) -> str:
        return f"({literal} - INTERVAL {seconds} SECOND)"

    def ahead(self, moment: str, column: Column) -> str:
        if column.kind not in ("date", "datetime", "timestamp"):
            return ""
        return f"{moment} > UTC_TIMESTAMP() + INTERVAL {AHEAD_DAYS} DAY"

    def digest(self, columns: Sequence[Column]) -> str:
        parts = (f"IFNULL(MD5({self._exactly(column)}), '-')" for column in columns)
        return f"MD5(CONCAT_WS('|', {', '.join(parts)}))"

    def _exactly(self, column: Column) -> str:
        """A value as bytes that no other value of its type has."""
        name = self.quoted(column.name)
        if column.kind in ("float", "double", "bit"):
            return f"CAST({name} * 1 AS char)"
        if column.kind == "geometry":
            return f"ST_AsText({name})"
        return name if column.kind == "text" else f"CAST({name} AS char)"

    def digest_sum(self, digest: str) -> str:
        return f"SUM(CAST(CONV(LEFT({digest}, 15), 16, 10) AS unsigned))"

    def partition_key(self, connection: Connection, place: Place) -> str:
        found = connection.rows(
            "SELECT c.column_name, c.data_type FROM information_schema.statistics s "
            "JOIN information_schema.columns c USING (table_schema, table_name, column_name) "
            "WHERE s.index_name = 'PRIMARY' AND s.seq_in_index = 1 "
            "AND s.table_schema = %s AND s.table_name = %s",
            place.schema,
            place.table,
        )
        return next((name for name, kind in found if kind in _RANGES), "")

    def writer_options(self) -> Mapping[str, str]:
        return {"useBulkStmts": "true"}

    def type_for(self, spark_type: str) -> str:
        if found := re.fullmatch(r"decimal\((\d+),(\d+)\)", spark_type):
            return f"decimal({found[1]},{found[2]})"
        return _TYPES.get(spark_type, "")

    def key_type(self, kind: str) -> str:
        return {"longtext": "varchar(255)", "longblob": "varbinary(255)"}.get(kind, kind)

    def sends(self, kind: str) -> str:
        return "timestamp_ntz"  # in UTC, as the connection is

    def make_stage(
        self, connection: Connection, stage: Place, target: Place | None, columns: Mapping[str, str]
    ) -> None:
        connection.run(f"DROP TABLE IF EXISTS {self.sql_of(stage)}")
        if target is None:
            typed = ", ".join(f"{self.quoted(name)} {kind} NULL" for name, kind in columns.items())
            connection.run(f"CREATE TABLE {self.sql_of(stage)} ({typed})")
            return
        names = ", ".join(map(self.quoted, columns))
        rows = f"SELECT {names} FROM {self.sql_of(target)} LIMIT 0"
        connection.run(f"CREATE TABLE {self.sql_of(stage)} AS {rows}")

    def unique_keys(self, connection: Connection, place: Place) -> list[tuple[str, ...]]:
        found = connection.rows(
            "SELECT index_name, column_name FROM information_schema.statistics "
            "WHERE non_unique = 0 AND table_schema = %s AND table_name = %s "
            "ORDER BY index_name, seq_in_index",
            place.schema,
            place.table,
        )
        keys: dict[str, tuple[str, ...]] = {}
        for index, column in found:
            keys[index] = (*keys.get(index, ()), column)
        return list(keys.values())

    def clear(self, connection: Connection, place: Place) -> int | None:
        # TRUNCATE would commit by itself, and leave the table empty if the rest failed.
        return connection.run(f"DELETE FROM {self.sql_of(place)}")

    def merge(
        self,
        connection: Connection,
        stage: Place,
        target: Place,
        columns: Sequence[Column],
        keys: Sequence[str],
    ) -> tuple[int, int]:
        new, old = self.sql_of(stage), self.sql_of(target)
        names = ", ".join(self.quoted(column.name) for column in columns)
        others = [c.name for c in columns if c.name not in keys] or list(keys[:1])
        sets = ", ".join(f"{self.quoted(n)} = VALUES({self.quoted(n)})" for n in others)
        by = ", ".join(map(self.quoted, keys))
        matched = int(connection.one(f"SELECT count(*) FROM {new} JOIN {old} USING ({by})"))
        inserted = int(connection.one(f"SELECT count(*) FROM {new}")) - matched
        touched = connection.run(
            f"INSERT INTO {old} ({names}) SELECT {names} FROM {new} ON DUPLICATE KEY UPDATE {sets}"
        )
        # The server counts one for a row it inserts, and two for one it changes.
        return inserted, max(0, touched - inserted) // 2


def _digits(column: Column) -> int:
    """How many digits a decimal has; its length counts the sign and the point as well."""
    return (column.precision or 0) - 1 - (1 if column.scale else 0)


def _tls(address: Address) -> dict[str, Any]:
    if address.tls in (None, "disable"):
        return {"ssl_disabled": True}
    if address.tls == "require":
        return {"ssl": {"verify_mode": "none", "check_hostname": False}}
    full = address.tls == "verify-full"
    return {"ssl_ca": address.tls_ca, "ssl_verify_cert": True, "ssl_verify_identity": full}


MYSQL = MySql()
