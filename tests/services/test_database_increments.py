"""Increments of a database lose no row and read none twice, whatever its watermarks are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaworks.connectors.databases import increments
from deltaworks.errors import GuardError, InputError
from deltaworks.model.batch import Bounds
from deltaworks.runtime.source_bounds import refuse_changed_files
from tests.services.databases import Database
from tests.services.postgres_server import PostgresServer

if TYPE_CHECKING:
    from deltaworks.contracts.context import RunContext

NOON, ONE, TWO = "2026-01-01 12:00:00", "2026-01-01 13:00:00", "2026-01-01 14:00:00"


def events(database: Database, name: str, kind: str = "timestamp NULL") -> None:
    """A table of events with a watermark of some type."""
    database.sql(
        f"DROP TABLE IF EXISTS {name}",
        f"CREATE TABLE {name} (id int, note varchar(20), at {kind})",
    )


def add(database: Database, name: str, *rows: tuple[int, str]) -> None:
    for number, moment in rows:
        database.sql(f"INSERT INTO {name} VALUES ({number}, 'n{number}', '{moment}')")


def reader(database: Database, name: str, **more: Any) -> Any:
    return database.made("source", table=name, incremental=True, watermark="at", **more)


def on_record(bounds: Bounds) -> Bounds:
    return Bounds.from_json(bounds.to_json())


def ids(ctx: RunContext, source: Any, bounds: Bounds) -> list[int]:
    return sorted(row.id for row in source.read(ctx, bounds).select("id").collect())


def test_rows_that_come_later_with_the_last_watermark_are_read_once(
    database: Database, context: RunContext
) -> None:
    events(database, "tied")
    add(database, "tied", (1, NOON), (2, ONE), (3, ONE))
    source, project_ctx = reader(database, "tied"), context.project_ctx
    first = on_record(source.bounds(project_ctx, None))
    add(database, "tied", (4, ONE), (5, ONE))  # after the plan, and before the read
    database.sql(f"UPDATE tied SET note = 'new', at = '{ONE}' WHERE id = 3")
    assert ids(context, source, first) == [1, 2]
    second = on_record(source.bounds(project_ctx, first))
    assert (second.position["rows"], second.position["since"]) == (3, first.position["until"])
    assert ids(context, source, second) == [3, 4, 5]
    assert source.bounds(project_ctx, second).nothing
    add(database, "tied", (6, ONE), (7, TWO))
    third = on_record(source.bounds(project_ctx, second))
    assert ids(context, source, third) == [6, 7]
    assert ids(context, source, third.from_the_start()) == [1, 2, 3, 4, 5, 6, 7]
    database.sql("DELETE FROM tied WHERE id = 7")
    assert source.bounds(project_ctx, third).nothing


@pytest.mark.parametrize("adds", [True, False], ids=["rows are added", "rows are found again"])
def test_a_row_that_changed_at_the_last_watermark_comes_again_where_it_is_found_again(
    database: Database, tmp_path: Path, *, adds: bool
) -> None:
    events(database, "keyed")
    database.sql("ALTER TABLE keyed ADD PRIMARY KEY (id)")
    add(database, "keyed", (1, NOON), (2, ONE))
    source, project_ctx = reader(database, "keyed"), database.project_ctx(tmp_path)
    first = on_record(source.bounds(project_ctx, None))
    database.sql(f"UPDATE keyed SET note = 'new', at = '{ONE}' WHERE id = 2")
    since = replace(first, position={**first.position, "adds": adds})
    second = source.bounds(project_ctx, since)
    assert (second.nothing, second.repeats) == (adds, 0)
    add(database, "keyed", (3, ONE))
    third = source.bounds(project_ctx, since)
    assert third.position["rows"] == (1 if adds else 2)
    database.sql("DELETE FROM keyed WHERE id > 1")
    assert source.bounds(project_ctx, since).nothing


def test_a_watermark_that_is_a_key_has_no_company(database: Database, tmp_path: Path) -> None:
    database.sql(
        "DROP TABLE IF EXISTS counted",
        "CREATE TABLE counted (id int PRIMARY KEY, note varchar(20))",
        "INSERT INTO counted VALUES (1, 'a'), (2, 'b')",
    )
    source = database.made("source", table="counted", incremental=True, watermark="id")
    project_ctx = database.project_ctx(tmp_path)
    first = on_record(source.bounds(project_ctx, None))
    assert "ties" not in first.position
    database.sql("UPDATE counted SET note = 'changed' WHERE id = 2")
    assert source.bounds(project_ctx, first).nothing


@pytest.mark.parametrize("what", ["query", "view"])
def test_rows_of_a_query_are_told_by_their_number_only(
    database: Database, tmp_path: Path, what: str
) -> None:
    """What it gives may change by itself, such as the time at which it was asked."""
    events(database, "asked")
    add(database, "asked", (1, NOON), (2, ONE))
    query = "SELECT id, at, CURRENT_TIMESTAMP AS asked_at FROM asked"
    given: dict[str, Any] = {"query": query}
    if what == "view":
        database.sql("DROP VIEW IF EXISTS asked_v", f"CREATE VIEW asked_v AS {query}")
        given = {"table": "asked_v"}
    source = database.made("source", incremental=True, watermark="at", **given)
    project_ctx = database.project_ctx(tmp_path)
    first = on_record(source.bounds(project_ctx, None))
    assert source.bounds(project_ctx, first).nothing
    assert source.still_there(project_ctx, first) == ""
    assert source.changed_while_read(project_ctx, first) == ""
    add(database, "asked", (3, ONE))
    second = source.bounds(project_ctx, first)
    assert (second.repeats, second.position["rows"]) == (1, 2)
    assert "rows have come" in source.changed_while_read(project_ctx, first)
    database.sql("DELETE FROM asked WHERE id > 1")
    assert source.bounds(project_ctx, first).nothing
    if what == "view":
        database.sql("DROP VIEW asked_v")


def test_equal_rows_at_the_last_watermark_are_told_not_guessed(
    database: Database, tmp_path: Path
) -> None:
    events(database, "twins")
    add(database, "twins", (1, NOON), (1, NOON))
    source, project_ctx = reader(database, "twins"), database.project_ctx(tmp_path)
    first = source.bounds(project_ctx, None)
    add(database, "twins", (1, NOON))
    second = source.bounds(project_ctx, first)
    assert (second.repeats, second.position["rows"]) == (2, 3)


def test_many_rows_at_the_last_watermark_are_read_again_where_some_are_new(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(increments, "_MAX_TIES", 2)
    monkeypatch.setattr(increments, "_MAX_DIGESTED", 2)
    events(database, "crowd")
    add(database, "crowd", (1, NOON), (2, NOON), (3, NOON))
    source, project_ctx = reader(database, "crowd"), database.project_ctx(tmp_path)
    first = on_record(source.bounds(project_ctx, None))
    assert source.bounds(project_ctx, first).nothing
    assert source.changed_while_read(project_ctx, first) == ""
    assert source.still_there(project_ctx, first) == ""
    add(database, "crowd", (4, NOON))
    assert "rows have come or changed" in source.changed_while_read(project_ctx, first)
    second = source.bounds(project_ctx, first)
    assert (second.repeats, second.position["rows"]) == (3, 4)
    assert source.bounds(project_ctx, second).nothing


class _Load:
    """A sink, as far as its bounds are asked about."""

    def __init__(self, *, appends: bool) -> None:
        self.plugin = self
        self.appends = appends

    def is_append(self) -> bool:
        return self.appends


def test_rows_that_cannot_be_told_apart_stop_an_append_only() -> None:
    bounds = Bounds(kind="watermark", identity="t", position={"since": NOON, "repeats": 3})
    for appends in (False, True):
        plan: Any = type("Plan", (), {"loads": [_Load(appends=appends)]})
        if appends:
            with pytest.raises(GuardError, match="cannot be determined") as caught:
                refuse_changed_files(plan, {"orders": bounds})
            assert f"--from '{NOON}'" in caught.value.hint
        else:
            refuse_changed_files(plan, {"orders": bounds})


def test_positions_of_older_versions_and_points_read_what_is_above_them(
    database: Database, tmp_path: Path
) -> None:
    events(database, "older")
    add(database, "older", (1, NOON), (2, ONE))
    source, project_ctx = reader(database, "older"), database.project_ctx(tmp_path)
    first = source.bounds(project_ctx, None)
    told = {key: first.position[key] for key in ("until", "since", "rows")}
    old = replace(first, position=told)
    assert source.still_there(project_ctx, old) == ""
    oldest = replace(first, position={key: told[key] for key in ("until", "since")})
    assert source.still_there(project_ctx, oldest) == ""
    add(database, "older", (3, TWO))
    assert source.bounds(project_ctx, old).position["rows"] == 1


def test_rows_that_were_exchanged_are_noticed_though_they_are_as_many(
    database: Database, tmp_path: Path
) -> None:
    events(database, "exchanged")
    add(database, "exchanged", (1, NOON), (2, ONE))
    source, project_ctx = reader(database, "exchanged"), database.project_ctx(tmp_path)
    first = on_record(source.bounds(project_ctx, None))
    assert source.still_there(project_ctx, first) == ""
    database.sql("UPDATE exchanged SET note = 'other' WHERE id = 1")
    assert "are not what they were" in source.still_there(project_ctx, first)


@pytest.mark.parametrize("kind", ["timestamp NULL", "date", "timestamp with time zone"])
def test_watermarks_of_the_far_future_are_refused_unless_they_are_allowed(
    database: Database, tmp_path: Path, kind: str
) -> None:
    if database.kind == "mysql":
        kind = kind.replace("timestamp with time zone", "datetime")
        kind = kind.replace("timestamp NULL", "datetime")
    events(database, "future", kind)
    add(database, "future", (1, NOON), (2, "2199-12-31 00:00:00"))
    source, project_ctx = reader(database, "future"), database.project_ctx(tmp_path)
    with pytest.raises(InputError, match='1 rows have a "at" in the future') as caught:
        source.bounds(project_ctx, None)
    assert "allow_future" in caught.value.hint
    condition = caught.value.hint.partition("where: '")[2].partition("'),")[0]
    assert (
        reader(database, "future", where=condition).bounds(project_ctx, None).position["rows"] == 1
    )
    allowed = reader(database, "future", allow_future=True)
    far = allowed.bounds(project_ctx, None)
    assert far.position["rows"] == 2
    assert allowed.bounds(project_ctx, far).nothing
    with pytest.raises(GuardError, match="rows that change now come before that") as ended:
        source.bounds(project_ctx, far)
    assert "--from" in ended.value.hint


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("double precision", "NaN"),
        ("double precision", "Infinity"),
        ("real", "-Infinity"),
        ("numeric", "NaN"),
        ("timestamp", "infinity"),
        ("timestamp with time zone", "-infinity"),
        ("date", "infinity"),
    ],
)
def test_watermarks_that_nothing_comes_after_are_told(
    postgres: PostgresServer, tmp_path: Path, kind: str, value: str
) -> None:
    database = Database("postgres", postgres)
    events(database, "endless", kind)
    plain = "1" if kind in ("double precision", "real", "numeric") else NOON
    add(database, "endless", (1, plain), (2, value), (3, value))
    source, project_ctx = reader(database, "endless"), database.project_ctx(tmp_path)
    with pytest.raises(InputError, match="2 rows have a") as caught:
        source.bounds(project_ctx, None)
    condition = caught.value.hint.partition("where: '")[2][:-1]
    fine = reader(database, "endless", where=condition)
    first = fine.bounds(project_ctx, None)
    assert first.position["rows"] == 1
    ended = replace(first, position={"until": value, "since": None, "rows": 3})
    with pytest.raises(GuardError, match="the last batch ended at"):
        fine.bounds(project_ctx, ended)


def test_a_source_spelled_otherwise_does_not_start_over_silently(
    database: Database, tmp_path: Path
) -> None:
    events(database, "spelled")
    add(database, "spelled", (1, NOON))
    project_ctx = database.project_ctx(tmp_path)
    first = reader(database, "spelled").bounds(project_ctx, None)
    query = "SELECT * FROM spelled"
    other = database.made("source", query=query, incremental=True, watermark="at")
    with pytest.raises(GuardError, match="spelled") as caught:
        other.bounds(project_ctx, first)
    assert f"--from '{first.position['until']}'" in caught.value.hint
    files = Bounds(kind="files", identity="data/*.csv")
    assert other.bounds(project_ctx, files).position["rows"] == 1


def test_rows_of_every_type_can_be_told_apart(database: Database, tmp_path: Path) -> None:
    """The digest of a row is the same for every connection, and another for other values."""
    odd = "f float, d double precision, n decimal(40,2)"
    more = (
        "b bit(5), g point, j json, t time, x blob, s timestamp NULL"
        if database.kind == "mysql"
        else "b bit(5), g point, j json, t interval, x bytea, s timestamptz"
    )
    database.sql(
        "DROP TABLE IF EXISTS typed",
        f"CREATE TABLE typed (id int, at timestamp NULL, {odd}, {more})",
        f"INSERT INTO typed (id, at, f, d, n) VALUES (1, '{NOON}', 0.1, 0.1, 1.5)",
    )
    source, project_ctx = reader(database, "typed"), database.project_ctx(tmp_path)
    first = on_record(source.bounds(project_ctx, None))
    assert source.bounds(project_ctx, first).nothing
    values = ("d = 0.30000000000000004", "n = 1.51", "s = '2026-01-01 01:02:03'")
    for change in ("f = 0.3", *values):
        database.sql(f"UPDATE typed SET {change}, at = '{NOON}'")
        second = on_record(source.bounds(project_ctx, first))
        assert second.position["rows"] == 1
        assert source.bounds(project_ctx, second).nothing
        first = second
    assert "needs" in database.made("source", table="typed", allow_future=True).problems()[0]
