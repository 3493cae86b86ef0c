"""Windows, pivots and aggregates to the last value, and what they need to be told."""

from __future__ import annotations

from typing import Any

import pytest

from deltaworks.errors import SpecError
from tests.pipelines.applying import Bench, step

SALES = """
SELECT *, named_struct('shop', shop) AS s FROM VALUES
  ('a', 1, 10), ('a', 2, 20), ('a', 2, 30), ('a', 4, null), ('b', 1, 5)
AS t(shop, `día`, n)
"""


def test_window_computes_beside_each_row(orders: Bench) -> None:
    functions = [
        {"function": "row_number", "alias": "place"},
        {"function": "rank"},
        {"function": "dense_rank"},
        {"function": "lag", "column": "n", "offset": 2, "alias": "two_back"},
        {"function": "lead", "column": "n"},
        {"function": "sum", "column": "n", "alias": "running"},
        {"function": "avg", "column": "n", "frame": {"rows": [-1, 0]}},
        {"function": "max", "column": "n", "frame": {"range": [-1, "unbounded"]}},
        {"function": "count"},
        {"function": "first", "column": "n"},
        {"function": "last", "column": "n", "frame": {"rows": ["unbounded", "unbounded"]}},
    ]
    options = {"partition_by": "s.shop", "order_by": ["día"], "functions": functions}
    frame = orders.frame(SALES, type="window", **options)
    assert frame.columns[4:] == [
        "place",
        "rank",
        "dense_rank",
        "two_back",
        "lead_n",
        "running",
        "avg_n",
        "max_n",
        "count",
        "first_n",
        "last_n",
    ]
    rows = [tuple(row)[4:] for row in frame.orderBy("shop", "place").collect()]
    tied = rows[1][6]  # which of two equal days comes first is fixed by their content
    assert tied in (15.0, 20.0)
    low_first = tied == 15.0
    assert rows[0] == (1, 1, 1, None, 20 if low_first else 30, 10, 10.0, 30, 1, 10, None)
    assert [row[:3] for row in rows] == [(1, 1, 1), (2, 2, 2), (3, 2, 2), (4, 4, 3), (1, 1, 1)]
    assert [row[5] for row in rows] == [10, 60, 60, 60, 5]  # equal days share a running total
    assert [row[8] for row in rows] == [1, 3, 3, 4, 1]
    assert rows[3][3] == (20 if low_first else 30)
    assert rows[4] == (1, 1, 1, None, None, 5, 5.0, 5, 1, 5, 5)
    assert [tuple(r)[4:] for r in frame.repartition(3).orderBy("shop", "place").collect()] == rows
    turned = orders.frame(
        SALES, type="window", order_by="día DESC", functions=[{"function": "rank", "alias": "r"}]
    )
    assert sorted(row["r"] for row in turned.collect()) == [1, 2, 2, 4, 4]


def test_window_says_what_its_functions_need(orders: Bench) -> None:
    def problems(order_by: str = "", **function: Any) -> tuple[str, ...]:
        order = {"order_by": order_by} if order_by else {}
        found: tuple[str, ...] = step("window", functions=[function], **order).problems()
        return found

    assert problems("id", function="rank", column="n") == ('"rank" takes no "column"',)
    assert problems("id", function="sum") == ('"sum" needs a "column"',)
    assert problems(function="row_number") == ('"row_number" needs "order_by"',)
    assert problems("id", function="lag", column="n", frame={"rows": [0, 1]}) == (
        '"lag" takes no "frame"',
    )
    assert problems("id", function="sum", column="n", frame={}) == (
        'a "frame" says either "rows" or "range"',
    )
    in_range = {"function": "sum", "column": "n", "frame": {"range": [-1, 0]}}
    with pytest.raises(SpecError, match='exactly one column of numbers in "order_by"'):
        orders.frame(SALES, type="window", order_by="shop", functions=[in_range])
    with pytest.raises(SpecError, match='gives two columns named "n"'):
        orders.frame(
            SALES, type="window", order_by="n", functions=[{"function": "rank", "alias": "n"}]
        )


def test_pivot_puts_values_side_by_side(orders: Bench) -> None:
    total = {"function": "sum", "column": "n", "alias": "total"}
    source = "SELECT named_struct('d', `día`) AS s, shop, n FROM (" + SALES + ")"
    frame = orders.frame(
        source, type="pivot", group_by=["s.d"], column="shop", aggregations=[total]
    )
    assert frame.columns == ["d", "a", "b"]
    assert sorted(tuple(row) for row in frame.collect()) == [
        (1, 10, 5),
        (2, 50, None),
        (4, None, None),
    ]
    figures = [total, {"function": "count"}]
    frame = orders.frame(
        SALES, type="pivot", group_by="shop", column="día", values=[2, 9], aggregations=figures
    )
    assert frame.columns == ["shop", "2_total", "2_count", "9_total", "9_count"]
    assert sorted((row[0], row[1]) for row in frame.collect()) == [("a", 50), ("b", None)]
    days = "SELECT date'2026-01-01' AS day, 1 AS n"
    frame = orders.frame(
        days, type="pivot", column="day", values=["2026-01-01"], aggregations=[total]
    )
    assert [row.asDict() for row in frame.collect()] == [{"2026-01-01": 1}]
    with pytest.raises(SpecError, match='"soon" does not fit column "day", which is date'):
        orders.frame(days, type="pivot", column="day", values=["soon"], aggregations=[total])
    wrong = {"function": "sum", "column": "shop"}
    with pytest.raises(SpecError, match='"sum" needs numbers, and column "shop" is string'):
        orders.frame(SALES, type="pivot", column="día", values=[1], aggregations=[wrong])


def test_pivot_refuses_to_make_a_column_of_everything(orders: Bench) -> None:
    many = "SELECT id AS k, id AS n FROM range(1001)"
    with pytest.raises(SpecError, match="more than 1,000 values") as caught:
        orders.frame(many, type="pivot", column="k", aggregations=[{"function": "count"}])
    assert '"values"' in caught.value.hint
    wanted = step("pivot", column="k", aggregations=[{"function": "sum"}])
    assert wanted.problems() == ('aggregation "sum" needs a "column"',)
    assert not wanted.columns_known()
    assert wanted.left_out(orders.spark.sql(many)) is None


def test_figures_know_what_they_can_add_and_order(orders: Bench) -> None:
    source = (
        "SELECT interval '1' day AS d, named_struct('m', map('a', 1)) AS s, array(map(1, 2)) AS a, "
        "array(3) AS n, named_struct('variant', 1) AS v"
    )

    def tried(function: str, column: str) -> list[tuple[Any, ...]]:
        figures = [{"function": function, "column": column}]
        return orders.rows(source, type="aggregate", aggregations=figures)

    assert [str(row[0]) for row in tried("sum", "d")] == ["1 day, 0:00:00"]
    assert tried("max", "n") == [([3],)]
    assert [tuple(row[0]) for row in tried("min", "v")] == [(1,)]
    for function, column in (("stddev", "d"), ("max", "s"), ("min", "a"), ("sum", "n")):
        with pytest.raises(SpecError, match=f'"{function}" needs'):
            tried(function, column)
