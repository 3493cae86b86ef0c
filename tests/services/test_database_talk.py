"""What is asked of a database before Spark starts: bounds, mistakes, and what a file may say."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deltaworks.connectors.databases.dialect import Place
from deltaworks.errors import (
    ConfigError,
    EngineError,
    InputError,
    SpecError,
    TableNotFound,
    Unreachable,
)
from deltaworks.model.batch import UNBOUNDED, WATERMARK, Bounds
from deltaworks.sources.jdbc import JdbcSource
from tests.services.databases import Database
from tests.services.ports import free_port
from tests.services.postgres_server import PASSWORD, PostgresServer


def moments(database: Database, name: str, *rows: tuple[int, str | None]) -> None:
    """A table of numbers and moments."""
    database.sql(
        f"DROP TABLE IF EXISTS {name}",
        f"CREATE TABLE {name} (id int PRIMARY KEY, changed timestamp NULL)",
    )
    add(database, name, *rows)


def add(database: Database, name: str, *rows: tuple[int, str | None]) -> None:
    for number, moment in rows:
        value = "NULL" if moment is None else f"'{moment}'"
        database.sql(f"INSERT INTO {name} VALUES ({number}, {value})")


def test_a_table_without_a_watermark_is_not_bounded(database: Database, tmp_path: Path) -> None:
    moments(database, "plain_t", (1, "2026-01-01 00:00:00"))
    source = database.made("source", table="plain_t")
    bounds = source.bounds(database.project_ctx(tmp_path), None)
    assert bounds.kind == UNBOUNDED
    assert "cannot be asked" in source.still_there(database.project_ctx(tmp_path), bounds)
    assert source.changed_while_read(database.project_ctx(tmp_path), bounds) == ""


def test_an_increment_holds_only_what_is_new(database: Database, tmp_path: Path) -> None:
    moments(database, "inc_t", (1, "2026-01-01 00:00:00"), (2, "2026-01-02 00:00:00"))
    project_ctx = database.project_ctx(tmp_path)
    source = database.made("source", table="inc_t", incremental=True, watermark="changed")
    first = source.bounds(project_ctx, None)
    assert (first.kind, first.position["rows"]) == (WATERMARK, 2)
    nothing = source.bounds(project_ctx, first)
    assert nothing.nothing
    assert nothing.position["until"] == first.position["until"]
    add(database, "inc_t", (3, "2026-01-03 00:00:00.250000"))
    second = source.bounds(project_ctx, nothing)
    assert (second.position["since"], second.position["rows"]) == (first.position["until"], 1)
    assert not second.nothing


def test_bounds_say_when_their_rows_are_others_now(database: Database, tmp_path: Path) -> None:
    moments(database, "held_t", (1, "2026-01-01 00:00:00"), (2, "2026-01-02 00:00:00"))
    project_ctx = database.project_ctx(tmp_path)
    source = database.made("source", table="held_t", incremental=True, watermark="changed")
    bounds = source.bounds(project_ctx, None)
    assert source.still_there(project_ctx, bounds) == ""
    database.sql("DELETE FROM held_t WHERE id = 1")
    assert "2 rows were to be read" in source.still_there(project_ctx, bounds)
    other = database.made("source", table="held_t", incremental=True, watermark="id")
    assert other.still_there(project_ctx, bounds) == "the source has changed"
    database.sql("DROP TABLE held_t")
    assert "held_t" in source.still_there(project_ctx, bounds)


def test_late_rows_are_read_within_the_overlap(database: Database, tmp_path: Path) -> None:
    moments(database, "late_t", (1, "2026-01-01 00:00:00"), (2, "2026-01-01 01:00:00"))
    project_ctx = database.project_ctx(tmp_path)
    given = {"table": "late_t", "incremental": True, "watermark": "changed", "overlap": "30m"}
    source = database.made("source", **given)
    first = source.bounds(project_ctx, None)
    add(database, "late_t", (3, "2026-01-01 00:45:00"))
    assert source.bounds(project_ctx, first).position["rows"] == 2
    with pytest.raises(SpecError, match="length of time"):
        database.made("source", **{**given, "overlap": 5}).bounds(project_ctx, first)
    by_number = {"table": "late_t", "incremental": True, "watermark": "id", "overlap": 1}
    numbers = database.made("source", **by_number)
    assert numbers.bounds(project_ctx, numbers.bounds(project_ctx, None)).position["rows"] == 1


def test_rows_without_a_watermark_are_told_not_missed(database: Database, tmp_path: Path) -> None:
    moments(database, "null_t", (1, "2026-01-01 00:00:00"), (2, None))
    given = {"table": "null_t", "incremental": True, "watermark": "changed"}
    with pytest.raises(InputError, match='1 rows have no "changed"'):
        database.made("source", **given).bounds(database.project_ctx(tmp_path), None)
    left_out = database.made("source", **given, where="changed IS NOT NULL")
    assert left_out.bounds(database.project_ctx(tmp_path), None).position["rows"] == 1


def test_increments_can_start_at_a_point(database: Database, tmp_path: Path) -> None:
    moments(database, "point_t", (1, "2026-01-01 00:00:00"), (2, "2026-01-02 00:00:00"))
    project_ctx = database.project_ctx(tmp_path)
    source = database.made("source", table="point_t", incremental=True, watermark="changed")
    start = source.start_at(project_ctx, "2026-01-01 12:00:00")
    assert source.bounds(project_ctx, start).position["rows"] == 1


def test_an_empty_table_has_no_rows_yet(database: Database, tmp_path: Path) -> None:
    moments(database, "empty_t")
    source = database.made("source", table="empty_t", incremental=True, watermark="changed")
    bounds = source.bounds(database.project_ctx(tmp_path), None)
    assert bounds.nothing
    assert bounds.summary() == "no rows yet"


def test_a_wrong_password_is_told_without_it(database: Database, tmp_path: Path) -> None:
    project_ctx = database.project_ctx(tmp_path, password="not-the-one-9")  # noqa: S106 - it opens nothing
    with pytest.raises(ConfigError) as caught:
        database.made("source", table="t").bounds(project_ctx, None)
    assert "credential" in caught.value.hint
    assert "not-the-one-9" not in str(caught.value)


def test_a_database_that_is_not_there_is_told(database: Database, tmp_path: Path) -> None:
    source = database.made("source", table="t", database="nowhere")
    with pytest.raises(ConfigError, match="nowhere"):
        source.bounds(database.project_ctx(tmp_path), None)


def test_a_server_that_does_not_answer_is_told(database: Database, tmp_path: Path) -> None:
    source = database.made("source", table="t", port=free_port())
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
        source.bounds(database.project_ctx(tmp_path), None)


def test_a_table_that_is_not_there_is_told_with_the_right_one(
    database: Database, tmp_path: Path
) -> None:
    moments(database, "customers")
    with pytest.raises(TableNotFound, match="custmers") as caught:
        database.made("source", table="custmers").bounds(database.project_ctx(tmp_path), None)
    assert "customers" in caught.value.hint


@pytest.mark.parametrize("field", ["columns", "watermark", "partition_column"])
def test_a_column_that_is_not_there_is_told(database: Database, tmp_path: Path, field: str) -> None:
    moments(database, "columns_t")
    more = {"incremental": True} if field == "watermark" else {}
    source = database.made("source", table="columns_t", **{field: "chnged"}, **more)
    with pytest.raises(SpecError, match="chnged") as caught:
        source.bounds(database.project_ctx(tmp_path), None)
    assert "changed" in caught.value.hint


def test_a_query_that_is_wrong_is_told(database: Database, tmp_path: Path) -> None:
    for query in ("SELECT nothing FROM", "SELECT missing FROM (SELECT 1 AS a) x"):
        with pytest.raises(SpecError):
            database.made("source", query=query).bounds(database.project_ctx(tmp_path), None)


def test_a_query_may_end_in_a_semicolon(database: Database, tmp_path: Path) -> None:
    source = database.made("source", query="SELECT 1 AS a; ")
    assert source.bounds(database.project_ctx(tmp_path), None).kind == UNBOUNDED


def test_a_query_cannot_write(postgres: PostgresServer, tmp_path: Path) -> None:
    database = Database("postgres", postgres)
    moments(database, "victim_t", (1, "2026-01-01 00:00:00"))
    database.sql(
        "CREATE OR REPLACE FUNCTION destroy() RETURNS int LANGUAGE sql AS "
        "'DELETE FROM victim_t RETURNING id'"
    )
    source = database.made(
        "source", query="SELECT destroy() AS id", incremental=True, watermark="id"
    )
    with pytest.raises(SpecError, match="read-only"):
        source.bounds(database.project_ctx(tmp_path), None)
    assert database.sql("SELECT count(*) FROM victim_t") == [(1,)]


def test_only_harmless_options_reach_the_driver(database: Database, tmp_path: Path) -> None:
    for name in ("allowLoadLocalInfile", "autoDeserialize", "socketFactory", "permitMysqlScheme"):
        source = database.made("source", table="t", options={name: "true"})
        assert name in source.problems()[0]
        with pytest.raises(ConfigError, match=name):
            source.address(database.project_ctx(tmp_path))
        with pytest.raises(ConfigError, match=name):
            database.made("source", table="t").address(
                database.project_ctx(tmp_path, options={name: "true"})
            )
    fine = database.made("source", table="t", options={"socketTimeout": "30"})
    told = fine.server.driver_options(fine.address(database.project_ctx(tmp_path)))
    assert told["socketTimeout"] == "30"


@pytest.mark.parametrize(
    "host", ["db/../x", "db?user=root", "db&x=1", "db#", "db:5432", "a,b", "db;x", " "]
)
def test_a_host_cannot_carry_options(database: Database, tmp_path: Path, host: str) -> None:
    source = database.made("source", table="t", host=host)
    assert source.problems()
    with pytest.raises(ConfigError):
        source.address(database.project_ctx(tmp_path))


def test_a_url_holds_no_secret_and_no_open_end(database: Database, tmp_path: Path) -> None:
    source = database.made("source", table="t", host="::1", database="a?b&c=d/e")
    url = source.server.url(source.address(database.project_ctx(tmp_path)))
    assert "[::1]" in url
    assert url.partition("?permit")[0].endswith("/a%3Fb%26c%3Dd%2Fe")
    assert PASSWORD not in url


def test_names_are_quoted_as_the_server_wants_it(database: Database) -> None:
    server = database.made("source", table="t").server
    name = 'we"ird `name'
    found = database.sql(f"SELECT 1 AS {server.quoted(name)}")
    assert found == [(1,)]
    text = "it's \\ fine"
    assert database.sql(f"SELECT {server.literal(text)}") == [(text,)]


def test_a_connection_needs_a_host_and_a_database(database: Database, tmp_path: Path) -> None:
    project_ctx = database.project_ctx(tmp_path, host="", database="")
    with pytest.raises(ConfigError, match='needs "host"'):
        database.made("source", table="t").address(project_ctx)
    with pytest.raises(ConfigError, match='needs "database"'):
        database.made("source", table="t", host="127.0.0.1").address(project_ctx)


def test_an_encryption_that_the_server_does_not_have_is_told(
    database: Database, tmp_path: Path
) -> None:
    project_ctx = database.project_ctx(tmp_path)
    with pytest.raises(Unreachable):
        database.made("source", table="t", tls="require").bounds(project_ctx, None)
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        database.made("source", table="t", tls="verify-full", tls_ca="ca.pem").bounds(
            project_ctx, None
        )
    (tmp_path / "ca.pem").write_text("not a certificate")
    with pytest.raises(Unreachable):
        database.made("source", table="t", tls="verify-full", tls_ca="ca.pem").bounds(
            project_ctx, None
        )


def test_a_problem_between_options_is_told(database: Database) -> None:
    of_source: list[tuple[dict[str, Any], str]] = [
        ({}, "either"),
        ({"table": "t", "query": "SELECT 1"}, "either"),
        ({"table": "t", "incremental": True}, "belong together"),
        ({"table": "t", "overlap": "5m"}, "overlap"),
    ]
    for options, says in of_source:
        assert any(says in problem for problem in database.made("source", **options).problems())
    of_sink: list[tuple[dict[str, Any], str]] = [
        ({"mode": "upsert"}, "merge_keys"),
        ({"merge_keys": ["id"]}, "belongs to mode"),
        ({"options": {"x": "y"}}, "not an option"),
    ]
    for options, says in of_sink:
        assert any(says in p for p in database.made("sink", table="t", **options).problems())


def test_a_probe_reads_one_row(database: Database, tmp_path: Path) -> None:
    moments(database, "probed_t", (1, "2026-01-01 00:00:00"))
    project_ctx = database.project_ctx(tmp_path)
    assert database.made("source", table="probed_t").probe(project_ctx) == "2 columns, rows in them"
    none = database.made("source", table="probed_t", where="id > 5")
    assert none.probe(project_ctx) == "2 columns, no rows in them"
    given = {"system": "oracle", "driver_jar": "x.jar", "credential": "shop", "table": "t"}
    assert "answers" in JdbcSource.model_validate(given).probe(project_ctx)


def test_a_failure_without_a_reason_is_explained_by_a_server_that_is_gone(
    database: Database, tmp_path: Path
) -> None:
    project_ctx = database.project_ctx(tmp_path)
    ctx: Any = SimpleNamespace(project_ctx=project_ctx)
    source = database.made("source", table="t")
    bounds = Bounds(kind=UNBOUNDED, identity="")
    odd, known = EngineError("a task failed"), SpecError("a column is wrong")
    assert source.explain_failure(ctx, bounds, known) is known
    assert source.explain_failure(ctx, bounds, odd) is odd
    gone = database.made("source", table="t", port=free_port())
    assert isinstance(gone.explain_failure(ctx, bounds, odd), Unreachable)


def test_rows_from_quarantine_may_come_later_unless_all_are_replaced(database: Database) -> None:
    assert database.made("sink", table="t").accepts_late_rows()
    assert not database.made("sink", table="t", mode="overwrite").accepts_late_rows()


def test_a_table_that_no_batch_landed_in_has_no_writers(database: Database, tmp_path: Path) -> None:
    moments(database, "untouched_t")
    database.sql("DROP TABLE IF EXISTS _deltaworks_batches")
    project_ctx, sink = database.project_ctx(tmp_path), database.made("sink", table="untouched_t")
    found = sink.state(project_ctx, "writer")
    assert (found.exists, found.txn_version, found.writers) == (True, None, ())
    assert not database.made("sink", table="nowhere_t").state(project_ctx, "writer").exists


def test_a_table_has_blocks_where_the_server_reads_by_them(
    database: Database, tmp_path: Path
) -> None:
    moments(database, "blocks_t", (1, "2026-01-01 00:00:00"))
    source = database.made("source", table="blocks_t")
    with source.server.open(
        source.address(database.project_ctx(tmp_path)), read_only=True
    ) as connection:
        place = source.server.resolved(connection, Place("", "blocks_t"))
        assert source.server.blocks(connection, place) == (1 if database.kind == "postgres" else 0)
