"""`sql`: SELECT statements over tables by name, answered by delta-rs; no JVM."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from deltaworks.tables.query import parse_query
from tests.unit.edited_logs import edit_log, with_mapping
from tests.workbench import Workbench

BOTH = """
SELECT orders.id, silver.orders.kind -- FROM nowhere
FROM orders JOIN silver.orders ON orders.id = silver.orders.id ORDER BY 1
"""


@pytest.fixture
def shop(desk: Workbench) -> Workbench:
    """A project with three tables, two of the same last name."""
    amounts = {"id": [1, 2, 3], "amount": [1.0, math.nan, 5.0], "Who": ["a", "b", "c"]}
    small = pa.array([1.0, math.nan, None], pa.float32())
    orders = pa.table(amounts).append_column("small", small)
    write_deltalake(str(desk.table("orders")), orders)
    write_deltalake(str(desk.table("silver/orders")), pa.table({"id": [2, 3], "kind": ["x", "y"]}))
    write_deltalake(str(desk.table("Big-One")), pa.table({"id": [9]}))
    return desk


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT id FROM orders WHERE amount > 100", [[2]]),  # NaN; statistics leave it out
        ("SELECT id FROM orders WHERE small > 100", [[2]]),
        ("SELECT id FROM orders ORDER BY amount DESC", [[2], [3], [1]]),
        ("select orders.id from orders where id < 3 order by 1;", [[1], [2]]),
        ("SELECT count(*) AS n FROM silver.orders", [[2]]),
        ("SELECT kind FROM silver.orders AS s WHERE s.id = 2", [["x"]]),
        ("SELECT silver.orders.kind FROM silver.orders WHERE orders.id = 3", [["y"]]),
        (BOTH, [[2, "x"], [3, "y"]]),
        ("WITH orders AS (SELECT * FROM orders WHERE id > 2) SELECT id FROM orders", [[3]]),
        ("SELECT id FROM orders WHERE id IN (SELECT id FROM silver.orders) ORDER BY 1", [[2], [3]]),
        (
            'SELECT id FROM silver.orders UNION ALL SELECT id FROM "Big-One" ORDER BY 1',
            [[2], [3], [9]],
        ),
        ("(SELECT 1 AS one)", [[1]]),
        ("VALUES (1)", [[1]]),
        ("SELECT x.value FROM range(2) AS x", [[0], [1]]),
    ],
)
def test_queries(shop: Workbench, query: str, found: list[list[object]]) -> None:
    answer = shop.cli("sql", query, "--json")
    assert answer.code == 0, answer.stdout
    assert answer.json["engine"] == "delta-rs"
    assert [list(row.values()) for row in answer.json["rows"]] == found


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("INSERT INTO orders VALUES (1)", ['not "INSERT"', "`deltaworks run`"]),
        ("MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN DELETE", ["`deltaworks run`"]),
        ("CREATE TABLE a AS SELECT 1", ["`deltaworks run`"]),
        ("DESCRIBE orders", ["`deltaworks table show`"]),
        ("SHOW TABLES", ["`deltaworks table list`"]),
        ("RESTORE TABLE orders TO VERSION AS OF 1", ["`deltaworks table restore`"]),
        ("VACUUM orders", ["`after_load`"]),
        ("EXPLAIN SELECT 1", ['not "EXPLAIN"', "SELECT * FROM orders"]),
        ("", ["only SELECT statements"]),
        ("SELECT 1; SELECT 2", ["one SELECT statement is needed"]),
        ("SELECT * INTO a FROM orders", ["only SELECT statements"]),
        ("WITH a AS (DELETE FROM orders RETURNING *) SELECT * FROM a", ["only SELECT statements"]),
        ("SELECT id FROM orders WHERE (", ["cannot be parsed at character 29"]),
        ("SELECT 'a", ["quote or comment that is not closed"]),
        ("SELECT * FROM ordrs", ['"ordrs" is not a Delta table', 'did you mean "orders"?']),
        ("SELECT * FROM silve.orders", ['did you mean "silver.orders"?']),
        ("SELECT * FROM Orders", ['did you mean "orders"?']),
        ("SELECT amont FROM orders", ['names column "amont"', 'did you mean "amount"?']),
        ("SELECT o.amont FROM orders o", ['names column "o.amont"', 'did you mean "amount"?']),
        ("SELECT who FROM orders", ['did you mean "Who"?', "need double quotes"]),
        ("SELECT foo(id) FROM orders", ["cannot be answered: Invalid function"]),
        ("SELECT id / 0 FROM orders", ["cannot be answered: Divide by zero"]),
        ("SELECT CAST('x' AS INT)", ["cannot be answered: Cannot cast string"]),
        ("SELECT id FROM orders GROUP BY amount", ["cannot be answered: Column in SELECT"]),
        ("SELECT id + 'a' FROM orders", ["cannot be answered: Cannot coerce"]),
    ],
)
def test_mistakes(shop: Workbench, query: str, told: list[str]) -> None:
    answer = shop.cli("sql", query)
    assert answer.code in (1, 2)
    assert answer.stdout == ""
    for text in told:
        assert text in answer.stderr


def test_columns_of_one_name(shop: Workbench) -> None:
    query = "SELECT * FROM orders a JOIN orders b ON a.id = b.id"
    assert shop.cli("sql", query).stdout.startswith("id ")
    refused = shop.cli("sql", query, "--json")
    assert (refused.code, refused.json["error"]["hint"]) == (2, "rename one of them with AS")


def test_only_as_many_rows_as_were_asked_for(shop: Workbench) -> None:
    answer = shop.cli("sql", "SELECT value FROM range(100000)", "-n", "3", "--csv", "--verbose")
    assert answer.stdout == "value\n0\n1\n2\n"
    assert answer.stderr == "read by delta-rs\nthe first 3 rows; --limit 0 gives all of them\n"
    assert shop.open().sql("SELECT * FROM orders", limit=2).num_rows == 2
    assert shop.open().sql("SELECT value FROM range(100000)").num_rows == 100_000


def test_a_table_that_only_spark_reads_right_is_refused(shop: Workbench) -> None:
    edit_log(shop.table("orders"), with_mapping)
    answer = shop.cli("sql", "SELECT * FROM orders")
    assert answer.code == 4
    assert 'error: "orders" has column mapping, which only Spark reads right' in answer.stderr
    assert "use --engine spark" in answer.stderr


def test_a_damaged_table_is_told(shop: Workbench) -> None:
    for file in shop.table("orders").glob("*.parquet"):
        file.unlink()
    assert "is missing or cannot be read" in shop.cli("sql", "SELECT * FROM orders").stderr
    (shop.table("orders") / "_delta_log" / f"{0:020d}.json").write_text("{")
    assert "is damaged" in shop.cli("sql", "SELECT * FROM orders").stderr


def test_names_for_spark() -> None:
    query = parse_query(
        "SELECT silver.orders.id FROM silver.orders VERSION AS OF 3, `a-b` x, orders",
        dialect="spark",
    )
    assert query.names == ("silver.orders", "a-b", "orders")
    assert query.over(lambda table: f"<{table.name}>", quote="`") == (
        "SELECT `silver.orders`.id FROM <silver.orders> VERSION AS OF 3, "
        "<a-b> x, <orders> AS `orders`"
    )
