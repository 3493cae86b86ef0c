"""The notes about a table are about that very table, not about its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deltaworks.connectors.databases.batch_table import DatabaseBatches
from deltaworks.connectors.databases.dialect import BATCHES, Connection, Place
from deltaworks.connectors.databases.mysql import MYSQL
from tests.services.databases import Database
from tests.services.mariadb_server import MariaDbServer


@contextmanager
def talking(
    database: Database, root: Path, table: str
) -> Iterator[tuple[Connection, DatabaseBatches]]:
    """A conversation that may write, and the notes about a table in it."""
    sink = database.made("sink", table=table)
    with sink.server.open(sink.address(database.project_ctx(root)), read_only=False) as connection:
        place = sink.server.resolved(connection, Place("", table))
        assert place is not None
        yield connection, DatabaseBatches(sink.server, place)


def land(database: Database, root: Path, table: str, n: int) -> None:
    """Note a batch as a landing does."""
    with talking(database, root, table) as (connection, books):
        books.make(connection)
        books.server.mark(connection, books.table)
        books.note(connection, "writer", n)
        connection.commit()


def last(database: Database, root: Path, table: str) -> int | None:
    with talking(database, root, table) as (connection, books):
        return books.last(connection, "writer")


def test_a_table_made_anew_has_none_of_the_notes_of_the_old_one(
    database: Database, tmp_path: Path
) -> None:
    make = "CREATE TABLE landed (id int)"
    database.sql("DROP TABLE IF EXISTS landed", make)
    land(database, tmp_path, "landed", 7)
    assert last(database, tmp_path, "landed") == 7
    database.sql("ALTER TABLE landed ADD COLUMN v int")
    land(database, tmp_path, "landed", 8)
    assert last(database, tmp_path, "landed") == 8
    database.sql("DROP TABLE landed", make)
    assert last(database, tmp_path, "landed") is None
    land(database, tmp_path, "landed", 9)
    assert last(database, tmp_path, "landed") == 9


def comment_of(mariadb: MariaDbServer, table: str) -> Any:
    sql = f"SELECT table_comment FROM information_schema.tables WHERE table_name = '{table}'"
    return mariadb.sql(sql)[0][0]


def test_the_sign_of_a_table_stands_behind_its_comment(
    mariadb: MariaDbServer, tmp_path: Path
) -> None:
    database = Database("mysql", mariadb)
    database.sql(
        "DROP TABLE IF EXISTS signed",
        "CREATE TABLE signed (id int) COMMENT = 'it''s ours'",
    )
    land(database, tmp_path, "signed", 1)
    first = comment_of(mariadb, "signed")
    assert first.startswith("it's ours [deltaworks ")
    land(database, tmp_path, "signed", 2)
    assert comment_of(mariadb, "signed") == first


def test_what_cannot_be_signed_is_known_by_its_name(mariadb: MariaDbServer, tmp_path: Path) -> None:
    database = Database("mysql", mariadb)
    database.sql(
        "DROP VIEW IF EXISTS seen",
        "DROP TABLE IF EXISTS behind",
        "CREATE TABLE behind (id int)",
        "CREATE VIEW seen AS SELECT id FROM behind",
    )
    land(database, tmp_path, "seen", 3)
    assert last(database, tmp_path, "seen") == 3
    with talking(database, tmp_path, "seen") as (connection, books):
        assert MYSQL.identity(connection, books.table) == books.table.label


@pytest.mark.parametrize("signed", [False, True], ids=["before", "after a crash"])
def test_notes_of_older_versions_go_on(
    mariadb: MariaDbServer, tmp_path: Path, *, signed: bool
) -> None:
    """They know a table by its name; the first batch that lands makes them know it by its sign."""
    database = Database("mysql", mariadb)
    database.sql("DROP TABLE IF EXISTS known", "CREATE TABLE known (id int)")
    land(database, tmp_path, "known", 4)
    with talking(database, tmp_path, "known") as (connection, books):
        label = books.table.label
    database.sql(f"UPDATE {BATCHES} SET identity = '{label}' WHERE target = '{label}'")
    if not signed:
        database.sql("ALTER TABLE known COMMENT = ''")
    assert last(database, tmp_path, "known") == 4
    with talking(database, tmp_path, "known") as (connection, books):
        books.server.mark(connection, books.table)
        books.note(connection, "another writer", 1)
        connection.commit()
    assert last(database, tmp_path, "known") == 4
    database.sql("DROP TABLE known", "CREATE TABLE known (id int)")
    assert last(database, tmp_path, "known") is None
