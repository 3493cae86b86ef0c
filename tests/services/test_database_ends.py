"""Runs and servers that end in the middle: nothing is lost, nothing lands twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deltaworks.runtime.ledger.table import Ledger
from tests.services.databases import Database
from tests.workbench import Workbench

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shop")]

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
def killed_when(database: Database, busy: str) -> Iterator[None]:
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
        yield
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
    database.numbers("orders", 20)
    nap(database, 2)
    database.pipeline(bench, "query: 'SELECT id, name FROM orders WHERE nap()'")
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
