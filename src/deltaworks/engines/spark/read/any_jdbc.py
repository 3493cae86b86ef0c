"""Rows of a database that only its JDBC driver can reach."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from deltaworks.engines.spark.session.connect import add_jars, require_java_zone, require_jvm
from deltaworks.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, kw_only=True)
class AnyJdbc:
    """A connection by a driver that the user brings."""

    spark: SparkSession
    url: str
    driver: str
    jar: str
    jar_sha256: str
    user: str
    password: str = field(repr=False)
    fetch_rows: int
    options: Mapping[str, str] = field(default_factory=dict)

    def rows(
        self,
        *,
        table: str,
        query: str,
        columns: Sequence[str],
        where: str,
        partition_column: str,
        partitions: int,
    ) -> DataFrame:
        """The rows of a table or query, in ranges of a column if one is given."""
        self._load_driver()
        inner = f"({query.strip().rstrip(';')}) q" if query else self._table(table)
        chosen = ", ".join(map(self._quoted, columns)) or "*"
        condition = f" WHERE {where}" if where else ""
        relation = f"(SELECT {chosen} FROM {inner}{condition}) r"
        more: dict[str, str | int] = {}
        if partition_column:
            more = self._range(f"{inner}{condition}", partition_column, partitions)
        return self._read(relation, **more)

    def _range(self, rows: str, column: str, partitions: int) -> dict[str, str | int]:
        """How Spark cuts the rows, between the ends that the column has now."""
        name = self._quoted(column)
        ends = self._read(f"(SELECT min({name}) AS low, max({name}) AS high FROM {rows}) r")
        low, high = ends.collect()[0]
        if low is None:
            return {}
        return {
            "partitionColumn": name,
            "lowerBound": str(low),
            "upperBound": str(high),
            "numPartitions": partitions,
        }

    def _read(self, relation: str, **more: str | int) -> DataFrame:
        require_java_zone(self.spark)
        reader = self.spark.read.format("jdbc").options(**self.options)
        reader = reader.option("url", self.url).option("dbtable", relation)
        reader = reader.option("driver", self.driver).option("fetchsize", self.fetch_rows)
        reader = reader.option("user", self.user).option("password", self.password)
        reader = reader.option("preferTimestampNTZ", value=True)
        return reader.options(**more).load()

    def _table(self, name: str) -> str:
        return ".".join(map(self._quoted, name.split(".")))

    def _quoted(self, name: str) -> str:
        """An identifier as Spark's dialect for this database writes it."""
        require_jvm(self.spark, "`type: jdbc`", instead="choose a profile with a driver of its own")
        dialects = self.spark._jvm.org.apache.spark.sql.jdbc.JdbcDialects  # type: ignore[union-attr]
        if '"' in name or "`" in name or "]" in name:
            raise ConfigError(f'"{name}" is not a name that can be quoted safely')
        return str(dialects.get(self.url).quoteIdentifier(name))

    def _load_driver(self) -> None:
        path = Path(self.jar)
        if not path.is_file():
            raise ConfigError(
                f'there is no driver "{self.jar}"',
                hint="download the database's JDBC driver and name its file",
            )
        if self.jar_sha256:
            found = hashlib.sha256(path.read_bytes()).hexdigest()
            if found != self.jar_sha256.lower():
                raise ConfigError(
                    f'the driver "{self.jar}" has the SHA-256 {found[:12]}..., '
                    f"expected {self.jar_sha256[:12]}...",
                    hint="bring the right file, or correct driver_sha256",
                )
        add_jars(self.spark, [path])
