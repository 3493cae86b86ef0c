"""Every type of a database, there and back; looked at by clients not ours."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from deltaworks.contracts.context import RunContext
from tests.services.databases import Database

pytestmark = pytest.mark.spark

TYPES: dict[str, dict[str, tuple[str, str, Any]]] = {
    "postgres": {
        "id": ("int PRIMARY KEY", "1", 1),
        "flag": ("boolean", "true", True),
        "small": ("smallint", "-3", -3),
        "big": ("bigint", "9007199254740993", 9007199254740993),
        "fixed": ("numeric(12,3)", "1.250", Decimal("1.250")),
        "free": (
            "numeric",
            "123456789012345678901234567890123456789.5",
            "123456789012345678901234567890123456789.5",
        ),
        "huge": ("numeric(60,2)", "1.25", "1.25"),
        "real4": ("real", "0.5", 0.5),
        "real8": ("double precision", "0.1", 0.1),
        "word": ("varchar(20)", "'é''x'", "é'x"),
        "fill": ("char(4)", "'ab'", "ab  "),
        "bytes": ("bytea", r"'\x00ff'", b"\x00\xff"),
        "day": ("date", "'0999-12-31'", date(999, 12, 31)),
        "at": (
            "timestamptz",
            "'2026-03-29 01:30:00.123456+05'",
            datetime(2026, 3, 28, 20, 30, 0, 123456, tzinfo=UTC),
        ),
        "local": ("timestamp", "'2026-03-29 02:30:00'", datetime.fromisoformat("2026-03-29T02:30")),
        "clock": ("time", "'23:59:59.5'", "23:59:59.5"),
        "span": ("interval", "'1 day 2 hours'", "1 day 02:00:00"),
        "doc": ("jsonb", """'{"a": 1}'""", '{"a": 1}'),
        "plain_doc": ("json", """'{"a":1}'""", '{"a":1}'),
        "mark": (
            "uuid",
            "'6f1c9c0e-0000-4000-8000-000000000000'",
            "6f1c9c0e-0000-4000-8000-000000000000",
        ),
        "address": ("inet", "'10.0.0.1/8'", "10.0.0.1/8"),
        "list": ("int[]", "'{1,NULL,3}'", [1, None, 3]),
        "words": ("text[]", "'{a,NULL}'", ["a", None]),
        "sums": ("numeric[]", "'{1.5}'", ["1.5"]),
        "marks": (
            "uuid[]",
            "'{6f1c9c0e-0000-4000-8000-000000000000}'",
            ["6f1c9c0e-0000-4000-8000-000000000000"],
        ),
    },
    "mysql": {
        "id": ("int PRIMARY KEY", "1", 1),
        "flag": ("tinyint(1)", "2", 2),
        "small": ("smallint unsigned", "65535", 65535),
        "middle": ("mediumint", "-8388608", -8388608),
        "wide": ("int unsigned", "4294967295", 4294967295),
        "big": ("bigint unsigned", "18446744073709551615", Decimal(18446744073709551615)),
        "fixed": ("decimal(12,3)", "1.250", Decimal("1.250")),
        "huge": ("decimal(65,2)", "1.25", "1.25"),
        "real4": ("float", "0.5", 0.5),
        "real8": ("double", "0.1", 0.1),
        "word": ("varchar(20)", "'é''x'", "é'x"),
        "long_word": ("longtext", "'x'", "x"),
        "bytes": ("varbinary(10)", "x'00ff'", b"\x00\xff"),
        "chunk": ("blob", "x'00ff'", b"\x00\xff"),
        "day": ("date", "'2026-01-31'", date(2026, 1, 31)),
        "no_day": ("date", "'0000-00-00'", None),
        "no_moment": ("datetime", "'0000-00-00 00:00:00'", None),
        "local": (
            "datetime(6)",
            "'2026-03-29 02:30:00.123456'",
            datetime.fromisoformat("2026-03-29T02:30:00.123456"),
        ),
        "at": (
            "timestamp(6) NULL",
            "'2026-03-29 02:30:00.123456'",  # the server's own zone is +05:30
            datetime(2026, 3, 28, 21, 0, 0, 123456, tzinfo=UTC),
        ),
        "clock": ("time", "'-30:00:01'", "-30:00:01"),
        "yr": ("year", "2026", 2026),
        "bit1": ("bit(1)", "b'1'", True),
        "bit9": ("bit(9)", "b'100000001'", Decimal(257)),
        "doc": ("json", """'{"a": 1}'""", '{"a": 1}'),
        "choice": ("enum('a','b')", "'b'", "b"),
        "chosen": ("set('a','b')", "'a,b'", "a,b"),
    },
}
LOST_ON_THE_WAY = ("no_day", "no_moment")
"""What no other system has a value for, and comes back as NULL."""


def all_types(database: Database, name: str) -> dict[str, Any]:
    """A table with every type, in one full row and one of NULLs; what Spark should see."""
    kinds = TYPES[database.kind]
    columns = ", ".join(f"{column} {kind}" for column, (kind, _, _) in kinds.items())
    values = ", ".join(value for _, value, _ in kinds.values())
    loose = ("SET sql_mode = ''",) if database.kind == "mysql" else ()
    database.sql(
        f"DROP TABLE IF EXISTS {name}",
        f"CREATE TABLE {name} ({columns})",
        *loose,
        f"INSERT INTO {name} VALUES ({values})",
        f"INSERT INTO {name} (id) VALUES (2)",
    )
    return {column: expected for column, (_, _, expected) in kinds.items()}


def test_every_type_makes_the_round_trip(database: Database, context: RunContext) -> None:
    expected = all_types(database, "types_in")
    frame = database.read(context, table="types_in")
    full, empty = sorted((row.asDict() for row in frame.collect()), key=lambda row: row["id"])
    full = {k: bytes(v) if isinstance(v, bytearray) else v for k, v in full.items()}
    full["at"] = full["at"].replace(tzinfo=UTC)
    assert full == expected
    assert {name for name, value in empty.items() if value is not None} == {"id"}
    like = "types_in" if database.kind == "mysql" else "(LIKE types_in INCLUDING ALL)"
    word = "LIKE " if database.kind == "mysql" else ""
    database.sql("DROP TABLE IF EXISTS types_out", f"CREATE TABLE types_out {word}{like}")
    landed = database.land(context, frame, 1, table="types_out")
    assert landed.rows_inserted == 2
    for column in expected:
        if column not in LOST_ON_THE_WAY:
            kept = f"SELECT {column} FROM {{}} ORDER BY id"
            assert database.sql(kept.format("types_out")) == database.sql(kept.format("types_in"))


def test_a_new_table_gets_types_that_hold_the_values(
    database: Database, context: RunContext
) -> None:
    database.sql("DROP TABLE IF EXISTS fresh_t")
    frame = context.spark.sql(
        "SELECT 1 AS id, 'a' AS word, true AS flag, 1.25BD AS sum, date'2026-01-31' AS day, "
        "timestamp'2026-01-31 12:00:00.5' AS at, timestamp_ntz'2026-01-31 12:00:00' AS local, "
        "x'00ff' AS bytes, CAST(0.1 AS double) AS share, CAST(7 AS tinyint) AS tiny"
    )
    database.land(context, frame, 1, table="fresh_t", mode="upsert", merge_keys=["id"])
    back = database.read(context, table="fresh_t").select(*frame.columns).collect()[0].asDict()
    assert back["sum"] == Decimal("1.25")
    assert (back["day"], bytes(back["bytes"])) == (date(2026, 1, 31), b"\x00\xff")
    assert back["at"].replace(tzinfo=None).isoformat() == "2026-01-31T12:00:00.500000"
    assert back["local"].isoformat() == "2026-01-31T12:00:00"
    assert (back["share"], back["tiny"]) == (0.1, 7)
