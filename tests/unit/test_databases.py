"""Databases as far as they need no server: parts, types, URLs and the words for what goes wrong."""

from __future__ import annotations

import sqlite3
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from deltaworks.connectors.databases.connection_params import Address
from deltaworks.connectors.databases.dialect import Column
from deltaworks.connectors.databases.errors import database_error, first_line
from deltaworks.connectors.databases.mysql import MYSQL
from deltaworks.connectors.databases.postgres import POSTGRES, _connecting_kind
from deltaworks.connectors.databases.read_partitions import (
    Slices,
    block_slices,
    parts_for,
    value_slices,
)
from deltaworks.engines.spark.errors.connectors import jdbc_error
from deltaworks.engines.spark.read.jdbc import PART
from deltaworks.errors import (
    CommitUnknown,
    ConstraintViolated,
    EngineError,
    MissingDependencyError,
    Unreachable,
)

ADDRESS = Address(host="db", port=1, database="shop", user="u", password="p")  # noqa: S106 - nobody's


def hits(slices: Slices, values: list[Any]) -> list[int]:
    """In how many parts each value is, as a real database sees it."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f'CREATE TABLE t (n INTEGER, "{PART}")')
    connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(values)))
    found = [0] * len(values)
    for condition in slices.conditions:
        for (n,) in connection.execute(f"SELECT n FROM t WHERE {condition}"):
            found[n] += 1
    connection.close()
    return found


@pytest.mark.parametrize("parts", [2, 3, 7, 100])
def test_ranges_of_numbers_hold_every_value_once(parts: int) -> None:
    slices = value_slices(POSTGRES, "id", -5, 20, parts)
    assert set(hits(slices, [None, *range(-9, 25)])) == {1}
    assert len(slices.conditions) == min(parts, 26)


def test_ranges_of_days_and_moments_hold_every_value_once() -> None:
    days = [date(2026, 1, day) for day in range(1, 31)]
    slices = value_slices(POSTGRES, "day", days[0], days[-1], 4)
    assert set(hits(slices, [None, *map(str, days)])) == {1}
    moments = [datetime.fromisoformat(f"2026-01-{day:02d}T12:00:00") for day in range(1, 31)]
    slices = value_slices(POSTGRES, "at", moments[0], moments[-1], 4)
    assert set(hits(slices, [None, *map(str, moments)])) == {1}


def test_one_value_or_none_is_not_cut() -> None:
    assert value_slices(POSTGRES, "id", None, None, 4) == Slices()
    assert value_slices(POSTGRES, "id", 3, 3, 4) == Slices()
    assert value_slices(POSTGRES, "id", Decimal(1), Decimal(9), 1) == Slices()
    assert len(value_slices(POSTGRES, "id", Decimal(1), Decimal(9), 2).conditions) == 2


def test_blocks_are_cut_where_there_are_enough() -> None:
    assert len(block_slices(POSTGRES, 1000, 4).conditions) == 4
    assert block_slices(POSTGRES, 1, 4).conditions == ()
    assert block_slices(POSTGRES, 1000, 1).conditions == ()


def test_a_small_table_is_one_part_and_a_large_one_keeps_all_cores_busy() -> None:
    assert parts_for(0, cores=2) == 1
    assert parts_for(10_000_000, cores=2) == 1
    assert parts_for(50_000_000, cores=2) == 2
    assert parts_for(10**9, cores=2) == 3
    assert parts_for(10**12, cores=2) == 8


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("geometry", "ST_AsText(`c`)"),
        ("json", "CAST(`c` AS char)"),
        ("year", "CAST(`c` AS signed)"),
        ("int", "`c`"),
    ],
)
def test_mysql_types_that_spark_does_not_know_are_read_as_others(kind: str, expected: str) -> None:
    assert MYSQL.readable(Column("c", kind)) == expected


def test_types_without_a_column_have_none() -> None:
    for server in (MYSQL, POSTGRES):
        assert server.type_for("struct<a:int>") == ""
        assert server.type_for("decimal(10,2)").endswith("(10,2)")
    assert POSTGRES.type_for("array<decimal(10,2)>") == "numeric(10,2)[]"
    assert POSTGRES.type_for("array<array<int>>") == ""
    assert MYSQL.key_type("longtext") == "varchar(255)"


def test_a_missing_driver_is_told_with_its_extra() -> None:
    with pytest.raises(MissingDependencyError, match="no_such_driver") as caught:
        POSTGRES.driver("no_such_driver")
    assert caught.value.hint == "pip install 'deltaworks[postgres]'"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ('password authentication failed for user "x"', "login"),
        ("no pg_hba.conf entry for host", "login"),
        ('role "x" does not exist', "login"),
        ('database "x" does not exist', "database"),
        ("could not translate host name", "connection"),
    ],
)
def test_why_postgres_lets_nobody_in_is_known_by_its_words(said: str, kind: str) -> None:
    assert _connecting_kind(said) == kind


def test_a_commit_whose_end_nobody_saw_is_not_called_failed() -> None:
    assert isinstance(database_error("connection", "gone", ADDRESS, committing=True), CommitUnknown)
    assert isinstance(database_error("connection", "gone", ADDRESS), Unreachable)
    assert type(database_error("", "odd", ADDRESS)) is EngineError
    assert "p" not in str(ADDRESS).partition("password")[2]


def test_only_the_first_line_of_a_server_is_shown() -> None:
    assert first_line("\nERROR:  no\nLINE 1: x") == "no"
    assert first_line("") == "no reason given"


@pytest.mark.parametrize(
    ("class_name", "message", "error"),
    [
        ("org.postgresql.util.PSQLException", "An I/O error occurred while sending", Unreachable),
        ("java.sql.SQLNonTransientConnectionException", "(conn=7) Socket error", Unreachable),
        ("java.sql.BatchUpdateException", "ERROR: value violates check", ConstraintViolated),
        ("java.sql.SQLException", "(conn=7) odd", EngineError),
        (
            "org.apache.spark.SparkException",
            "Lost task 0.0: org.postgresql.util.PSQLException: FATAL: terminating connection\n\tat",
            Unreachable,
        ),
    ],
)
def test_what_a_jdbc_driver_says_has_a_word_of_ours(
    class_name: str, message: str, error: type[EngineError]
) -> None:
    found = jdbc_error(class_name, message)
    assert type(found) is error
    assert "conn=7" not in str(found)


def test_what_no_jdbc_driver_says_is_left_to_others() -> None:
    assert jdbc_error("java.lang.IllegalStateException", "connection closed") is None


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full", "disable"])
def test_both_drivers_hear_of_encryption(mode: Any) -> None:
    address = Address(host="db", port=1, database="shop", user="u", tls=mode, tls_ca="/ca.pem")
    assert POSTGRES.driver_options(address)["sslmode"] == mode
    told = MYSQL.driver_options(address)
    assert (told["sslMode"], told["serverSslCert"]) == (
        {"require": "trust"}.get(mode, mode),
        "/ca.pem",
    )
