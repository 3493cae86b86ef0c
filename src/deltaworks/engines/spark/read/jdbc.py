"""Rows between Spark and a database, by its JDBC driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.engines.spark.session.connect import require_java_zone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, kw_only=True)
class JdbcRead:
    """What is read, by whom, and in which parts."""

    url: str
    driver: str
    user: str
    password: str = field(repr=False)
    relation: str
    conditions: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    """What the driver is told besides."""
    first_statement: str
    fetch_rows: int
    instants: tuple[str, ...] = ()
    """Columns that come in UTC without a zone, and are instants."""


def read_rows(spark: SparkSession, asked: JdbcRead) -> DataFrame:
    """The rows, each part by a connection of its own, as they are asked for."""
    require_java_zone(spark)
    properties = {
        **asked.options,
        **_login(asked.driver, asked.user, asked.password),
        "fetchsize": str(asked.fetch_rows),
        "sessionInitStatement": asked.first_statement,
        "preferTimestampNTZ": "true",
    }
    if asked.conditions:
        conditions = list(asked.conditions)
        frame = spark.read.jdbc(
            asked.url, asked.relation, predicates=conditions, properties=properties
        )
    else:
        frame = spark.read.jdbc(asked.url, asked.relation, properties=properties)
    instants = {name: f"CAST({quoted(name)} AS timestamp)" for name in asked.instants}
    names = [name for name in frame.columns if name != PART]
    return frame.selectExpr(
        *(f"{instants.get(name, quoted(name))} AS {quoted(name)}" for name in names)
    )


@dataclass(frozen=True, kw_only=True)
class JdbcWrite:
    """Where rows are put, and by whom."""

    url: str
    driver: str
    user: str
    password: str = field(repr=False)
    table: str
    options: Mapping[str, str] = field(default_factory=dict)
    """What the driver is told besides."""
    moments: Mapping[str, str] = field(default_factory=dict)
    """Columns of timestamps -> the type they are sent as."""


def write_rows(frame: DataFrame, asked: JdbcWrite) -> None:
    """Add the rows to a table that is there; several connections, each with its own commit."""
    require_java_zone(frame.sparkSession)
    sent = frame.selectExpr(
        *(
            f"CAST({quoted(name)} AS {asked.moments[name]}) AS {quoted(name)}"
            if name in asked.moments
            else quoted(name)
            for name in frame.columns
        )
    )
    login = _login(asked.driver, asked.user, asked.password)
    properties = {**asked.options, **login, "batchsize": "5000"}
    sent.write.mode("append").jdbc(asked.url, asked.table, properties=properties)


def _login(driver: str, user: str, password: str) -> dict[str, str]:
    return {"driver": driver, "user": user, "password": password}


PART = "_deltaworks_part"
"""The column that the parts are told by; it is read by the server only."""
