"""Pipelines from databases, as their users run them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.services.databases import Database
from tests.workbench import Workbench

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shop")]


def test_increments_go_on_where_the_last_batch_ended(database: Database, bench: Workbench) -> None:
    database.numbers("orders", 3)
    database.pipeline(bench, "table: orders, incremental: true, watermark: id")
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
    database.numbers("orders", 3)
    what = "table: orders, incremental: true, watermark: id, overlap: 2"
    database.pipeline(bench, what)
    assert "use mode upsert" in bench.fail("p").stderr
    upsert = "load: {type: delta, table: out, mode: upsert, merge_keys: [id]}\n"
    database.pipeline(bench, what, upsert)
    bench.run("p")
    database.sql(
        "UPDATE orders SET name = 'seen' WHERE id = 2", "INSERT INTO orders VALUES (4, '')"
    )
    bench.run("p")
    assert [row["name"] for row in bench.rows("out") if row["id"] == 2] == ["seen"]
    assert len(bench.rows("out")) == 4


def test_an_empty_result_is_no_error(database: Database, bench: Workbench) -> None:
    database.numbers("orders", 1)
    database.pipeline(bench, "query: 'SELECT id, name FROM orders WHERE id < 0'")
    assert bench.run("p")["batches"][0]["rows_read"] == 0
    assert bench.version("out") is None


def test_a_column_that_appears_is_told_or_merged(database: Database, bench: Workbench) -> None:
    if database.kind != "postgres":
        pytest.skip("past the source nothing depends on the server")
    database.numbers("orders", 1)
    what = "table: orders, incremental: true, watermark: id"
    database.pipeline(bench, what)
    bench.run("p")
    database.sql(
        "ALTER TABLE orders ADD color varchar(9)", "INSERT INTO orders VALUES (2, '', 'red')"
    )
    assert "color" in bench.fail("p").stderr
    database.pipeline(bench, what, "load: {type: delta, table: out, merge_schema: true}\n")
    bench.run("p")
    assert sorted((row["id"], row["color"]) for row in bench.rows("out")) == [(1, None), (2, "red")]


def test_rows_without_bounds_land_once_for_each_batch_id(
    database: Database, bench: Workbench
) -> None:
    if database.kind != "postgres":
        pytest.skip("past the source nothing depends on the server")
    database.numbers("orders", 2)
    database.pipeline(bench, "table: orders")
    assert "--batch-id" in bench.run("p")["notes"][0]
    assert bench.run("p", "--batch-id", "monday")["notes"] == []
    assert bench.run("p", "--batch-id", "monday")["status"] == "skipped"
    assert len(bench.rows("out")) == 4


def test_a_secret_is_nowhere(
    database: Database, bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.numbers("orders", 2)
    database.pipeline(bench, "table: orders")
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
