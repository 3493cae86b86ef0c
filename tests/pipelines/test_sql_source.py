"""A query over tables as a source: pinned to their versions, refused when it reads no table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.workbench import Workbench

LOAD = "load: {type: delta, table: out, mode: overwrite}\n"


def query(text: str, **inputs: str) -> str:
    source: dict[str, Any] = {"type": "sql", "query": text}
    if inputs:
        source["inputs"] = inputs
    return f"extract: {json.dumps(source)}\n{LOAD}"


@pytest.fixture
def shop(bench: Workbench) -> Workbench:
    for name in ("orders", "sales.orders"):
        bench.pipeline(name.replace(".", "_"), _loader(name))
    bench.write("in/orders.csv", "id,amount\n1,10\n2,20\n")
    bench.write("in/sales.orders.csv", "id,amount\n2,5\n")
    bench.run("orders")
    bench.run("sales_orders")
    return bench


def _loader(table: str) -> str:
    return (
        f'extract: {{type: csv, path: in/{table}.csv, schema: "id int, amount int"}}\n'
        f"load: {{type: delta, table: {table}}}\n"
    )


def test_a_query_reads_tables_by_their_own_or_another_name(shop: Workbench) -> None:
    text = "WITH both AS (SELECT * FROM orders UNION ALL SELECT * FROM s) SELECT * FROM both"
    shop.pipeline("out", query(text, s="sales.orders"))
    shop.run("out")
    found = sorted((row["id"], row["amount"]) for row in shop.rows("out"))
    assert found == [(1, 10), (2, 5), (2, 20)]


def test_a_run_reads_the_versions_it_planned_and_says_which(shop: Workbench) -> None:
    shop.pipeline("out", query("SELECT sum(amount) AS total FROM orders"))
    run_id = shop.run("out")["run_id"]
    assert [row["total"] for row in shop.rows("out")] == [30]
    assert "orders at version 0" in shop.cli("runs", "show", run_id).stdout
    shop.write("in/orders.csv", "id,amount\n3,70\n")
    shop.run("orders")
    shop.run("out")
    assert [row["total"] for row in shop.rows("out")] == [100]


def test_run_all_writes_a_table_before_a_query_reads_it(bench: Workbench) -> None:
    bench.pipeline("a_first_by_name", query("SELECT id FROM orders"))
    bench.pipeline("orders", _loader("orders"))
    bench.write("in/orders.csv", "id,amount\n1,10\n")
    answered = bench.cli("run", "--all", "--json", "--quiet")
    assert [run["status"] for run in answered.json["runs"]] == ["succeeded", "succeeded"]


@pytest.mark.parametrize(
    ("text", "inputs", "message"),
    [
        ("SELECT 1", {}, "the query reads no table"),
        ("SELECT * FROM a.b", {}, "name it under `inputs`"),
        ("DROP TABLE orders", {}, "expected one SELECT query"),
        ("SELECT * FROM orders", {"o": "orders"}, 'names "o", which the query does not read'),
        ("SELECT * FROM o", {"o": "../x"}, "x"),
    ],
)
def test_a_query_that_cannot_be_is_refused_before_anything_runs(
    desk: Workbench, text: str, inputs: dict[str, str], message: str
) -> None:
    path = desk.pipeline("out", query(text, **inputs))
    answered = desk.cli("validate", str(path), "--json")
    assert answered.code == 2
    assert message in answered.json["problems"][0]["message"]


def test_a_missing_table_is_named(bench: Workbench) -> None:
    bench.pipeline("out", query("SELECT * FROM odrers"))
    assert '"odrers" is not a Delta table' in bench.fail("out").stderr
