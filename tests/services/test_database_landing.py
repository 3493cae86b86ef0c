"""Batches that land in tables of databases: once, by key, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from deltaworks.connectors.databases.batch_table import DatabaseBatches
from deltaworks.connectors.databases.dialect import Place
from deltaworks.contracts.context import RunContext
from deltaworks.engines.spark.read.jdbc import write_rows
from deltaworks.errors import (
    BatchKeyError,
    ConstraintViolated,
    EngineError,
    SchemaMismatch,
    SpecError,
)
from tests.services.databases import Database

pytestmark = pytest.mark.spark
LANDING = "deltaworks.connectors.databases.staged_write"


def test_a_batch_lands_once(database: Database, context: RunContext) -> None:
    database.sql("DROP TABLE IF EXISTS once_t", "CREATE TABLE once_t (id int, name varchar(9))")
    frame = context.spark.createDataFrame([(1, "a"), (2, None)], "id int, name string")
    sink = database.made("sink", table="once_t")
    assert sink.state(context.project_ctx, "writer").txn_version is None
    assert database.land(context, frame, 1, table="once_t").rows_inserted == 2
    found = sink.state(context.project_ctx, "writer")
    assert (found.exists, found.txn_version, found.writers) == (True, 1, ("writer",))
    again = database.land(context, frame, 1, table="once_t")
    assert (again.committed, again.note) == (False, "this batch landed before")
    assert sink.state(context.project_ctx, "somebody else").txn_version is None
    assert database.land(context, frame, 2, table="once_t").rows_inserted == 2
    assert database.sql("SELECT count(*) FROM once_t") == [(4,)]
    stages = (
        "SELECT count(*) FROM information_schema.tables WHERE table_name LIKE '%deltaworks_stage%'"
    )
    assert database.sql(stages) == [(0,)]


def test_a_batch_that_another_driver_landed_meanwhile_is_left_alone(
    database: Database, context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.sql("DROP TABLE IF EXISTS race_t", "CREATE TABLE race_t (id int)")
    sink = database.made("sink", table="race_t")

    def overtaken(*given: Any) -> None:
        write_rows(*given)
        with sink.server.open(sink.address(context.project_ctx), read_only=False) as connection:
            place = sink.server.resolved(connection, Place("", "race_t"))
            DatabaseBatches(sink.server, place).note(connection, "writer", 1)
            connection.commit()

    monkeypatch.setattr(f"{LANDING}.write_rows", overtaken)
    info = database.land(context, context.spark.sql("SELECT 1 AS id"), 1, table="race_t")
    assert (info.committed, info.note) == (False, "this batch landed before")
    assert database.sql("SELECT count(*) FROM race_t") == [(0,)]


def test_rows_that_were_staged_twice_are_not_moved_in(
    database: Database, context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.sql("DROP TABLE IF EXISTS twice_t", "CREATE TABLE twice_t (id int)")

    def twice(*given: Any) -> None:
        write_rows(*given)
        write_rows(*given)

    monkeypatch.setattr(f"{LANDING}.write_rows", twice)
    frame = context.spark.range(3).selectExpr("CAST(id AS int) AS id")
    with pytest.raises(EngineError, match="6 rows were staged and 3 sent"):
        database.land(context, frame, 1, table="twice_t")
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
    info = database.land(context, frame, 1, **given)
    assert (info.rows_inserted, info.rows_updated, info.rows_unchanged) == (1, 1, 1)
    kept = [(1, "new", "kept"), (2, "same", "kept"), (3, None, "kept")]
    assert database.sql("SELECT * FROM up_t ORDER BY id") == kept
    only_keys = database.land(context, frame.select("id"), 2, **given)
    assert (only_keys.rows_inserted, only_keys.rows_updated) == (0, 0)


@pytest.mark.parametrize(
    ("rows", "says"),
    [([(1, "a"), (1, "b")], "more than once: 1"), ([(None, "a")], "1 rows have NULL")],
)
def test_an_upsert_refuses_bad_keys(
    database: Database, context: RunContext, rows: list[Any], says: str
) -> None:
    database.sql("DROP TABLE IF EXISTS keys_t")
    frame = context.spark.createDataFrame(rows, "id int, name string")
    with pytest.raises(BatchKeyError, match=says):
        database.land(context, frame, 1, table="keys_t", mode="upsert", merge_keys=["id"])


def test_an_upsert_needs_a_unique_index(database: Database, context: RunContext) -> None:
    database.sql("DROP TABLE IF EXISTS loose_t", "CREATE TABLE loose_t (id int, name varchar(9))")
    frame = context.spark.createDataFrame([(1, "a")], "id int, name string")
    given = {"table": "loose_t", "mode": "upsert", "merge_keys": ["id"]}
    with pytest.raises(SpecError, match="no unique index on id"):
        database.land(context, frame, 1, **given)
    with pytest.raises(SpecError, match='merge key "idd"'):
        database.land(context, frame, 1, **{**given, "merge_keys": ["idd"]})
    if database.kind == "mysql":
        database.sql("ALTER TABLE loose_t ADD PRIMARY KEY (id), ADD UNIQUE (name)")
        with pytest.raises(SpecError, match="another unique index, on name"):
            database.land(context, frame, 1, **given)


def test_an_overwrite_keeps_the_table_itself(database: Database, context: RunContext) -> None:
    database.numbers("over_t", 5)
    database.sql("CREATE INDEX over_name ON over_t (name)")
    frame = context.spark.createDataFrame([(9, "nine")], "id int, NAME string")
    database.land(context, frame, 1, table="over_t", mode="overwrite")
    assert database.sql("SELECT * FROM over_t") == [(9, "nine")]
    bad = context.spark.createDataFrame([(1, "a"), (1, "b")], "id int, name string")
    with pytest.raises(ConstraintViolated):
        database.land(context, bad, 2, table="over_t", mode="overwrite")
    assert database.sql("SELECT * FROM over_t") == [(9, "nine")]


def test_rows_that_do_not_fit_are_refused_by_name(database: Database, context: RunContext) -> None:
    database.numbers("fit_t", 1)
    spark = context.spark
    extra = spark.createDataFrame([(2, "a", 1)], "id int, name string, nmae2 int")
    with pytest.raises(SchemaMismatch, match='no column "nmae2"'):
        database.land(context, extra, 1, table="fit_t")
    nested = spark.sql("SELECT 1 AS id, named_struct('a', 1) AS name")
    with pytest.raises(SchemaMismatch, match="has no type"):
        database.land(context, nested, 1, table="fit_t")
    planned = database.made("sink", table="fit_t").plan(context, spark.sql("SELECT 5 AS id"))
    assert (planned.exists, planned.rows_to_insert) == (True, 1)
    database.made("sink", table="fit_t").verify(context, spark.sql("SELECT 5 AS id"))
