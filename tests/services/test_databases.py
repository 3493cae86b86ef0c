"""Databases in and out, through pipelines, on real servers; looked at by clients not ours."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaworks.config.cache import cache_dir
from deltaworks.contracts.context import BatchWrite, RunContext
from deltaworks.engines.databases.server import Place
from deltaworks.engines.spark.connector_jars import add_jars, connector_jars
from deltaworks.engines.spark.jars import jar_files
from deltaworks.engines.spark.jdbc import write_rows
from deltaworks.model.commit import Txn
from tests.services.databases import Database
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
LANDING = "deltaworks.engines.spark.database_landing"


@pytest.fixture(autouse=True)
def _credential(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in database.environment().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def context(database: Database, spark: SparkSession, tmp_path: Path) -> Iterator[RunContext]:
    """A run of its own, with the driver's jar."""
    add_jars(spark, jar_files(connector_jars([database.kind]), cache=cache_dir(os.environ)))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ctx = RunContext(site=database.site(tmp_path), spark=spark, run_id="run", now=now)
    yield ctx
    ctx.until_end.close()


def read(database: Database, ctx: RunContext, **options: Any) -> DataFrame:
    source = database.made("source", **options)
    frame: DataFrame = source.read(ctx, source.bounds(ctx.site, None))
    return frame


def land(database: Database, ctx: RunContext, frame: DataFrame, n: int, **options: Any) -> Any:
    batch = BatchWrite(n=n, txn=Txn("writer", n), user_metadata="{}")
    return database.made("sink", **options).write(ctx, frame, batch)


def numbers(database: Database, name: str, rows: int) -> None:
    """A table of so many rows."""
    values = ", ".join(f"({n}, 'row {n}')" for n in range(1, rows + 1))
    database.sql(
        f"DROP TABLE IF EXISTS {name}",
        f"CREATE TABLE {name} (id int PRIMARY KEY, name varchar(40))",
        f"INSERT INTO {name} VALUES {values}",
    )


TYPES = {
    "postgres": {
        "id": ("int PRIMARY KEY", "1", 1),
        "flag": ("boolean", "true", True),
        "small": ("smallint", "-3", -3),
        "big": ("bigint", "9007199254740993", 9007199254740993),
        "fixed": ("numeric(12,3)", "1.250", Decimal("1.250")),
        "free": ("numeric", "123456789012345678901234567890123456789.5", None),
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
        "local": ("datetime(6)", "'2026-03-29 02:30:00.123456'", None),
        "at": ("timestamp(6) NULL", "'2026-03-29 02:30:00.123456'", None),
        "clock": ("time", "'-30:00:01'", "-30:00:01"),
        "yr": ("year", "2026", 2026),
        "bit1": ("bit(1)", "b'1'", True),
        "bit9": ("bit(9)", "b'100000001'", Decimal(257)),
        "doc": ("json", """'{"a": 1}'""", '{"a": 1}'),
        "choice": ("enum('a','b')", "'b'", "b"),
        "chosen": ("set('a','b')", "'a,b'", "a,b"),
    },
}
TYPES["postgres"]["free"] = (
    "numeric",
    "123456789012345678901234567890123456789.5",
    "123456789012345678901234567890123456789.5",
)
TYPES["mysql"]["local"] = (
    "datetime(6)",
    "'2026-03-29 02:30:00.123456'",
    datetime.fromisoformat("2026-03-29T02:30:00.123456"),
)
TYPES["mysql"]["at"] = (
    "timestamp(6) NULL",
    "'2026-03-29 02:30:00.123456'",  # the server's own zone is +05:30
    datetime(2026, 3, 28, 21, 0, 0, 123456, tzinfo=UTC),
)
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
    frame = read(database, context, table="types_in")
    full, empty = sorted((row.asDict() for row in frame.collect()), key=lambda row: row["id"])
    full = {k: bytes(v) if isinstance(v, bytearray) else v for k, v in full.items()}
    full["at"] = full["at"].replace(tzinfo=UTC)
    assert full == expected
    assert {name for name, value in empty.items() if value is not None} == {"id"}
    like = "types_in" if database.kind == "mysql" else "(LIKE types_in INCLUDING ALL)"
    word = "LIKE " if database.kind == "mysql" else ""
    database.sql("DROP TABLE IF EXISTS types_out", f"CREATE TABLE types_out {word}{like}")
    landed = land(database, context, frame, 1, table="types_out")
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
    land(database, context, frame, 1, table="fresh_t", mode="upsert", merge_keys=["id"])
    back = read(database, context, table="fresh_t").select(*frame.columns).collect()[0].asDict()
    assert back["sum"] == Decimal("1.25")
    assert (back["day"], bytes(back["bytes"])) == (date(2026, 1, 31), b"\x00\xff")
    assert back["at"].replace(tzinfo=None).isoformat() == "2026-01-31T12:00:00.500000"
    assert back["local"].isoformat() == "2026-01-31T12:00:00"
    assert (back["share"], back["tiny"]) == (0.1, 7)


def test_parts_hold_every_row_once(database: Database, context: RunContext) -> None:
    numbers(database, "parts_t", 5000)
    expected = (5000, 5000 * 5001 // 2)
    ways: list[dict[str, Any]] = [
        {"table": "parts_t", "partitions": 3},
        {"table": "parts_t", "partitions": 3, "partition_column": "id"},
        {"query": "SELECT id, name FROM parts_t", "partitions": 3, "partition_column": "id"},
        {"table": "parts_t"},
    ]
    for way in ways:
        frame = read(database, context, **way)
        assert frame.columns == ["id", "name"]
        assert frame.rdd.getNumPartitions() == way.get("partitions", 1)
        assert tuple(frame.selectExpr("count(DISTINCT id)", "sum(id)").collect()[0]) == expected


def test_a_table_of_tables_is_cut_by_its_key(database: Database, context: RunContext) -> None:
    if database.kind != "postgres":
        pytest.skip("only PostgreSQL has blocks to read by, which such tables lack")
    database.sql(
        "DROP TABLE IF EXISTS split_t",
        "CREATE TABLE split_t (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE split_1 PARTITION OF split_t FOR VALUES FROM (0) TO (1000)",
        "INSERT INTO split_t SELECT generate_series(1, 99)",
        "CREATE OR REPLACE VIEW seen_v AS SELECT * FROM split_t",
    )
    frame = read(database, context, table="split_t", partitions=3)
    assert (frame.rdd.getNumPartitions(), frame.count()) == (3, 99)
    assert read(database, context, table="seen_v", partitions=3).rdd.getNumPartitions() == 1


def test_rows_without_a_part_are_read_too(database: Database, context: RunContext) -> None:
    numbers(database, "nulls_t", 10)
    database.sql(
        "ALTER TABLE nulls_t ADD bucket int", "UPDATE nulls_t SET bucket = id WHERE id > 4"
    )
    frame = read(database, context, table="nulls_t", partitions=4, partition_column="bucket")
    assert frame.count() == 10


def test_columns_and_conditions_stay_with_the_server(
    database: Database, context: RunContext
) -> None:
    numbers(database, "pushed_t", 100)
    frame = read(
        database, context, table="pushed_t", columns=["name"], where="id > 98", partitions=2
    )
    assert frame.columns == ["name"]
    assert sorted(row.name for row in frame.collect()) == ["row 100", "row 99"]


def test_all_parts_see_one_moment(database: Database, context: RunContext) -> None:
    if database.kind != "postgres":
        pytest.skip("MySQL cannot share what one connection sees with others")
    numbers(database, "moment_t", 2000)
    frame = read(database, context, table="moment_t", partitions=2)
    loose = read(database, context, table="moment_t", partitions=2, consistent=False)
    database.sql("DELETE FROM moment_t WHERE id > 10")
    assert (frame.count(), frame.count(), loose.count()) == (2000, 2000, 10)


def test_a_batch_lands_once(database: Database, context: RunContext) -> None:
    database.sql("DROP TABLE IF EXISTS once_t", "CREATE TABLE once_t (id int, name varchar(9))")
    frame = context.spark.createDataFrame([(1, "a"), (2, None)], "id int, name string")
    sink = database.made("sink", table="once_t")
    assert sink.state(context.site, "writer").txn_version is None
    assert land(database, context, frame, 1, table="once_t").rows_inserted == 2
    found = sink.state(context.site, "writer")
    assert (found.exists, found.txn_version, found.writers) == (True, 1, ("writer",))
    again = land(database, context, frame, 1, table="once_t")
    assert (again.committed, again.note) == (False, "this batch landed before")
    assert sink.state(context.site, "somebody else").txn_version is None
    assert land(database, context, frame, 2, table="once_t").rows_inserted == 2
    assert database.sql("SELECT count(*) FROM once_t") == [(4,)]
    stages = (
        "SELECT count(*) FROM information_schema.tables WHERE table_name LIKE '%deltaworks_stage%'"
    )
    assert database.sql(stages) == [(0,)]


def test_a_batch_that_another_driver_landed_meanwhile_is_left_alone(
    database: Database, context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltaworks.engines.databases.books import Books

    database.sql("DROP TABLE IF EXISTS race_t", "CREATE TABLE race_t (id int)")
    sink = database.made("sink", table="race_t")

    def overtaken(*given: Any) -> None:
        write_rows(*given)
        with sink.server.open(sink.address(context.site), read_only=False) as talk:
            place = sink.server.resolved(talk, Place("", "race_t"))
            Books(sink.server, place).note(talk, "writer", 1)
            talk.commit()

    monkeypatch.setattr(f"{LANDING}.write_rows", overtaken)
    info = land(database, context, context.spark.sql("SELECT 1 AS id"), 1, table="race_t")
    assert (info.committed, info.note) == (False, "this batch landed before")
    assert database.sql("SELECT count(*) FROM race_t") == [(0,)]


def test_rows_that_were_staged_twice_are_not_moved_in(
    database: Database, context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltaworks.errors import EngineError

    database.sql("DROP TABLE IF EXISTS twice_t", "CREATE TABLE twice_t (id int)")

    def twice(*given: Any) -> None:
        write_rows(*given)
        write_rows(*given)

    monkeypatch.setattr(f"{LANDING}.write_rows", twice)
    frame = context.spark.range(3).selectExpr("CAST(id AS int) AS id")
    with pytest.raises(EngineError, match="6 rows were staged and 3 sent"):
        land(database, context, frame, 1, table="twice_t")
    assert database.sql("SELECT count(*) FROM twice_t") == [(0,)]


def test_an_upsert_updates_and_inserts_by_key(database: Database, context: RunContext) -> None:
    database.sql(
        "DROP TABLE IF EXISTS up_t",
        "CREATE TABLE up_t (id int PRIMARY KEY, name varchar(9), extra varchar(9) DEFAULT 'kept')",
        "INSERT INTO up_t (id, name) VALUES (1, 'old'), (2, 'same')",
    )
    given = {"table": "up_t", "mode": "upsert", "merge_keys": ["id"]}
    rows = [(1, "new"), (2, "same"), (3, None)]
    frame = context.spark.createDataFrame(rows, "id int, name string")
    info = land(database, context, frame, 1, **given)
    assert (info.rows_inserted, info.rows_updated, info.rows_unchanged) == (1, 1, 1)
    kept = [(1, "new", "kept"), (2, "same", "kept"), (3, None, "kept")]
    assert database.sql("SELECT * FROM up_t ORDER BY id") == kept
    only_keys = land(database, context, frame.select("id"), 2, **given)
    assert (only_keys.rows_inserted, only_keys.rows_updated) == (0, 0)


@pytest.mark.parametrize(
    ("rows", "says"),
    [([(1, "a"), (1, "b")], "more than once: 1"), ([(None, "a")], "1 rows have NULL")],
)
def test_an_upsert_refuses_bad_keys(
    database: Database, context: RunContext, rows: list[Any], says: str
) -> None:
    from deltaworks.errors import BatchKeyError

    database.sql("DROP TABLE IF EXISTS keys_t")
    frame = context.spark.createDataFrame(rows, "id int, name string")
    with pytest.raises(BatchKeyError, match=says):
        land(database, context, frame, 1, table="keys_t", mode="upsert", merge_keys=["id"])


def test_an_upsert_needs_a_unique_index(database: Database, context: RunContext) -> None:
    from deltaworks.errors import SpecError

    database.sql("DROP TABLE IF EXISTS loose_t", "CREATE TABLE loose_t (id int, name varchar(9))")
    frame = context.spark.createDataFrame([(1, "a")], "id int, name string")
    given = {"table": "loose_t", "mode": "upsert", "merge_keys": ["id"]}
    with pytest.raises(SpecError, match="no unique index on id"):
        land(database, context, frame, 1, **given)
    with pytest.raises(SpecError, match='merge key "idd"'):
        land(database, context, frame, 1, **{**given, "merge_keys": ["idd"]})
    if database.kind == "mysql":
        database.sql("ALTER TABLE loose_t ADD PRIMARY KEY (id), ADD UNIQUE (name)")
        with pytest.raises(SpecError, match="another unique index, on name"):
            land(database, context, frame, 1, **given)


def test_an_overwrite_keeps_the_table_itself(database: Database, context: RunContext) -> None:
    numbers(database, "over_t", 5)
    database.sql("CREATE INDEX over_name ON over_t (name)")
    frame = context.spark.createDataFrame([(9, "nine")], "id int, NAME string")
    land(database, context, frame, 1, table="over_t", mode="overwrite")
    assert database.sql("SELECT * FROM over_t") == [(9, "nine")]
    bad = context.spark.createDataFrame([(1, "a"), (1, "b")], "id int, name string")
    from deltaworks.errors import ConstraintViolated

    with pytest.raises(ConstraintViolated):
        land(database, context, bad, 2, table="over_t", mode="overwrite")
    assert database.sql("SELECT * FROM over_t") == [(9, "nine")]


def test_rows_that_do_not_fit_are_refused_by_name(database: Database, context: RunContext) -> None:
    from deltaworks.errors import SchemaMismatch

    numbers(database, "fit_t", 1)
    spark = context.spark
    extra = spark.createDataFrame([(2, "a", 1)], "id int, name string, nmae2 int")
    with pytest.raises(SchemaMismatch, match='no column "nmae2"'):
        land(database, context, extra, 1, table="fit_t")
    nested = spark.sql("SELECT 1 AS id, named_struct('a', 1) AS name")
    with pytest.raises(SchemaMismatch, match="has no type"):
        land(database, context, nested, 1, table="fit_t")
    planned = database.made("sink", table="fit_t").plan(context, spark.sql("SELECT 5 AS id"))
    assert (planned.exists, planned.rows_to_insert) == (True, 1)
    database.made("sink", table="fit_t").verify(context, spark.sql("SELECT 5 AS id"))


EXTRACT = "extract: {{type: {kind}, credential: shop, {what}}}\n"
TO_DELTA = "load: {type: delta, table: out}\n"


def pipeline(bench: Workbench, database: Database, what: str, load: str = TO_DELTA) -> None:
    bench.pipeline("p", EXTRACT.format(kind=database.kind, what=what) + load)


def test_increments_go_on_where_the_last_batch_ended(database: Database, bench: Workbench) -> None:
    numbers(database, "orders", 3)
    pipeline(bench, database, "table: orders, incremental: true, watermark: id")
    assert bench.run("p")["batches"][0]["rows_read"] == 3
    assert bench.run("p")["status"] == "skipped"
    database.sql("INSERT INTO orders VALUES (4, 'late')")
    bench.run("p")
    assert sorted(row["id"] for row in bench.rows("out")) == [1, 2, 3, 4]


def test_an_overlap_needs_a_sink_that_finds_rows_again(
    database: Database, bench: Workbench
) -> None:
    if database.kind != "postgres":
        pytest.skip("past the source nothing depends on the server")
    numbers(database, "orders", 3)
    what = "table: orders, incremental: true, watermark: id, overlap: 2"
    pipeline(bench, database, what)
    assert "use mode upsert" in bench.fail("p").stderr
    upsert = "load: {type: delta, table: out, mode: upsert, merge_keys: [id]}\n"
    pipeline(bench, database, what, upsert)
    bench.run("p")
    database.sql(
        "UPDATE orders SET name = 'seen' WHERE id = 2", "INSERT INTO orders VALUES (4, '')"
    )
    bench.run("p")
    assert [row["name"] for row in bench.rows("out") if row["id"] == 2] == ["seen"]
    assert len(bench.rows("out")) == 4


def test_an_empty_result_is_no_error(database: Database, bench: Workbench) -> None:
    numbers(database, "orders", 1)
    pipeline(bench, database, "query: 'SELECT id, name FROM orders WHERE id < 0'")
    assert bench.run("p")["batches"][0]["rows_read"] == 0
    assert bench.version("out") is None


def test_a_column_that_appears_is_told_or_merged(database: Database, bench: Workbench) -> None:
    if database.kind != "postgres":
        pytest.skip("past the source nothing depends on the server")
    numbers(database, "orders", 1)
    what = "table: orders, incremental: true, watermark: id"
    pipeline(bench, database, what)
    bench.run("p")
    database.sql(
        "ALTER TABLE orders ADD color varchar(9)", "INSERT INTO orders VALUES (2, '', 'red')"
    )
    assert "color" in bench.fail("p").stderr
    pipeline(bench, database, what, "load: {type: delta, table: out, merge_schema: true}\n")
    bench.run("p")
    assert sorted((row["id"], row["color"]) for row in bench.rows("out")) == [(1, None), (2, "red")]


def test_rows_without_bounds_land_once_for_each_batch_id(
    database: Database, bench: Workbench
) -> None:
    if database.kind != "postgres":
        pytest.skip("past the source nothing depends on the server")
    numbers(database, "orders", 2)
    pipeline(bench, database, "table: orders")
    assert "--batch-id" in bench.run("p")["notes"][0]
    assert bench.run("p", "--batch-id", "monday")["notes"] == []
    assert bench.run("p", "--batch-id", "monday")["status"] == "skipped"
    assert len(bench.rows("out")) == 4


def test_a_secret_is_nowhere(
    database: Database, bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers(database, "orders", 2)
    pipeline(bench, database, "table: orders")
    secret = database.server.record()["password"]
    said = bench.cli("plan", "p", "--json").stdout + bench.cli("run", "p", "--json").stdout
    for name, value in database.environment(password="wrong-one-77").items():  # noqa: S106 - it opens nothing
        monkeypatch.setenv(name, value)
    answered = bench.fail("p")
    assert answered.code == 2
    said += answered.stdout + answered.stderr
    for path in bench.root.rglob("*"):
        if path.is_file():
            said += path.read_bytes().decode("latin-1")
    assert secret not in said
    assert "wrong-one-77" not in said


CSV_TO = (
    "extract: {{type: csv, path: in.csv, schema: 'id int, name string'}}\n"
    "load: {{type: {kind}, credential: shop, table: {table}{more}}}\n"
)


def from_csv(bench: Workbench, database: Database, table: str, more: str = "") -> None:
    bench.write("in.csv", "id,name\n" + "".join(f"{n},row {n}\n" for n in range(1, 21)))
    bench.pipeline("p", CSV_TO.format(kind=database.kind, table=table, more=more))


def test_a_batch_that_landed_before_the_end_is_not_landed_again(
    database: Database, bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltaworks.runtime.ledger import Ledger

    database.sql("DROP TABLE IF EXISTS cut_t")
    from_csv(bench, database, "cut_t")

    def cut(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "done", cut)
        bench.fail("p")
    assert database.sql("SELECT count(*) FROM cut_t") == [(20,)]
    again = bench.run("p")
    assert "had landed" in " ".join(again["notes"])
    assert database.sql("SELECT count(*) FROM cut_t") == [(20,)]
    assert bench.run("p")["status"] == "skipped"
    database.sql("DROP TABLE cut_t")
    assert "is gone" in bench.fail("p").stderr


@contextmanager
def killed_when(database: Database, busy: str) -> Iterator[Callable[[], None]]:
    """Kill the server as soon as it is at a statement; it is up again after the block."""
    asks = {
        "postgres": "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' "
        f"AND query LIKE '%{busy}%' AND query NOT LIKE '%pg_stat_%' AND wait_event = 'PgSleep'",
        "mysql": "SELECT count(*) FROM information_schema.processlist "
        f"WHERE info LIKE '%{busy}%' AND info NOT LIKE '%processlist%' AND state = 'User sleep'",
    }
    killed = threading.Event()

    def watch() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not killed.is_set():
            if database.sql(asks[database.kind])[0][0]:
                database.server.kill()
                killed.set()
            time.sleep(0.05)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield lambda: None
        assert killed.is_set()
    finally:
        killed.set()
        thread.join()
        if database.server.process is None:
            database.server.restart()


def nap(database: Database, seconds: float) -> None:
    """A function that takes its time."""
    bodies = {
        "postgres": "CREATE OR REPLACE FUNCTION nap() RETURNS boolean LANGUAGE sql AS "
        f"'SELECT pg_sleep({seconds}) IS NOT NULL'",
        "mysql": "CREATE OR REPLACE FUNCTION nap() RETURNS boolean NOT DETERMINISTIC "
        f"RETURN SLEEP({seconds}) >= 0",
    }
    database.sql(bodies[database.kind])


def test_a_server_killed_while_it_is_read_loses_nothing(
    database: Database, bench: Workbench
) -> None:
    numbers(database, "orders", 20)
    nap(database, 2)
    pipeline(bench, database, "query: 'SELECT id, name FROM orders WHERE nap()'")
    with killed_when(database, "nap()"):
        answered = bench.fail("p")
    assert answered.code == 4
    assert "server is up" in answered.stderr
    assert bench.version("out") is None
    nap(database, 0)
    bench.run("p")
    assert len(bench.rows("out")) == 20


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_server_killed_while_it_is_written_loses_nothing(
    database: Database, bench: Workbench, mode: str
) -> None:
    nap(database, 2)
    trigger = {
        "postgres": (
            """CREATE OR REPLACE FUNCTION napping() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM nap(); RETURN NEW; END'""",
            "CREATE TRIGGER naps BEFORE INSERT ON slow_t FOR EACH ROW EXECUTE FUNCTION napping()",
        ),
        "mysql": ("CREATE TRIGGER naps AFTER INSERT ON slow_t FOR EACH ROW SET @x = nap()",),
    }
    database.sql(
        "DROP TABLE IF EXISTS slow_t",
        "CREATE TABLE slow_t (id int PRIMARY KEY, name varchar(20))",
        *trigger[database.kind],
    )
    keys = ", mode: upsert, merge_keys: [id]" if mode == "upsert" else ""
    from_csv(bench, database, "slow_t", keys)
    with killed_when(database, {"postgres": "slow_t", "mysql": "nap()"}[database.kind]):
        answered = bench.fail("p")
    assert answered.code == 4
    assert database.sql("SELECT count(*) FROM slow_t") == [(0,)]
    nap(database, 0)
    bench.run("p")
    assert database.sql("SELECT count(*), count(DISTINCT id) FROM slow_t") == [(20, 20)]
    assert bench.run("p")["status"] in ("skipped", "succeeded")
    assert database.sql("SELECT count(*) FROM slow_t") == [(20,)]


def test_every_pipeline_of_the_page_on_databases_runs(database: Database, bench: Workbench) -> None:
    if database.kind != "postgres":
        pytest.skip("the page shows PostgreSQL")
    database.sql(
        "DROP TABLE IF EXISTS orders",
        "DROP TABLE IF EXISTS orders_copy",
        "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10, 2), "
        "updated_at timestamptz NOT NULL DEFAULT now())",
        "INSERT INTO orders (id, customer, amount) VALUES (1, 'ann', 5), (2, 'bob', 0)",
    )
    page = (Path(__file__).parents[2] / "docs" / "databases.md").read_text(encoding="utf-8")
    for text in re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        name = text.partition("\n")[0].removeprefix("# pipelines/").removesuffix(".yaml")
        bench.write(f"pipelines/{name}.yaml", text)
        bench.run(name)
    assert [row["id"] for row in bench.rows("orders")] == [1]
    assert database.sql("SELECT id, customer FROM orders_copy ORDER BY id") == [
        (1, "ann"),
        (2, "bob"),
    ]


def test_any_database_is_read_by_the_driver_its_user_brings(
    database: Database, context: RunContext
) -> None:
    from deltaworks.errors import ConfigError
    from deltaworks.sources.jdbc import JdbcSource

    numbers(database, "any_t", 50)
    (jar,) = connector_jars([database.kind])
    (file,) = jar_files([jar], cache=cache_dir(os.environ))
    given: dict[str, Any] = {
        "system": {"postgres": "postgresql", "mysql": "mariadb"}[database.kind],
        "driver_jar": str(file),
        "driver_sha256": jar.sha256,
        "credential": "shop",
        "table": "any_t",
    }

    def rows(**more: Any) -> DataFrame:
        source = JdbcSource.model_validate({**given, **more})
        assert source.problems() == ()
        frame: DataFrame = source.read(context, source.bounds(context.site, None))
        return frame

    cut = rows(columns=["id"], where="id > 10", partition_column="id", partitions=3)
    assert (cut.columns, cut.count(), cut.rdd.getNumPartitions()) == (["id"], 40, 3)
    asked = rows(table="", query="SELECT id, name FROM any_t WHERE id < 0;", partition_column="id")
    assert (asked.columns, asked.count()) == (["id", "name"], 0)
    for wrong, says in (
        ({"driver_sha256": "00"}, "SHA-256"),
        ({"driver_jar": "none.jar"}, "no driver"),
        ({"database": "a;b=c"}, "name of a database"),
        ({"columns": ['a"b']}, "quoted safely"),
    ):
        with pytest.raises(ConfigError, match=says):
            rows(**wrong)
    source = JdbcSource.model_validate(
        {**given, "query": "SELECT 1", "options": {"autoDeserialize": "x"}}
    )
    assert len(source.problems()) == 2
    bounds = source.bounds(context.site, None)
    assert "cannot be asked" in source.still_there(context.site, bounds)
    assert source.changed_while_read(context.site, bounds) == ""
    nowhere = JdbcSource.model_validate({**given, "credential": ""})
    with pytest.raises(ConfigError, match="host"):
        nowhere.bounds(context.site, None)
