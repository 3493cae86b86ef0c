"""`deltaworks graph`: who reads and writes what, without a JVM."""

from __future__ import annotations

import json

from deltaworks.pipeline.project_graph import DataNode, PipelineNode, ProjectGraph, mermaid
from tests.workbench import Workbench

BRONZE = """
extract: {type: csv, path: "inbox/*.csv", schema: "id bigint"}
load: {type: delta, table: bronze.orders}
"""
SILVER = """
extract: {type: delta, table: bronze.orders}
checks:
  - {type: references, columns: [id], table: ref.customers}
load:
  - {type: delta, table: silver.orders}
  - {type: csv, path: out/orders, mode: overwrite}
"""
GOLD = """
extract: {type: delta, table: silver.orders}
load: {type: delta, table: gold.orders}
"""


def shop(desk: Workbench) -> None:
    for name, text in (("silver", SILVER), ("bronze", BRONZE), ("gold", GOLD)):
        desk.pipeline(name, text)


def test_each_pipeline_is_shown_after_those_it_reads_from(desk: Workbench) -> None:
    shop(desk)
    shown = desk.cli("graph")
    assert shown.stdout.splitlines() == [
        "bronze",
        "  reads   inbox/*.csv (files)",
        "  writes  bronze.orders  <- read by silver",
        "silver",
        "  reads   bronze.orders  <- written by bronze",
        "  reads   ref.customers",
        "  writes  silver.orders  <- read by gold",
        "  writes  out/orders (files)",
        "gold",
        "  reads   silver.orders  <- written by silver",
        "  writes  gold.orders",
    ]
    assert (
        shown.stderr == 'table "ref.customers" is read by silver, and no pipeline here writes it\n'
    )


def test_json_names_writers_readers_and_tables_that_nobody_writes(desk: Workbench) -> None:
    shop(desk)
    found = json.loads(desk.cli("graph", "--json").stdout)
    assert found["unwritten_tables"] == ["ref.customers"]
    bronze = found["pipelines"][0]
    assert bronze["writes"] == [{"name": "bronze.orders", "kind": "table", "read_by": ["silver"]}]


def test_the_flowchart_has_an_edge_for_each_read_and_write(desk: Workbench) -> None:
    shop(desk)
    chart = desk.cli("graph", "--mermaid", "bronze").stdout
    assert chart.splitlines() == [
        "flowchart LR",
        '    d1[("bronze.orders")]',
        '    d2[/"inbox/*.csv"/]',
        '    p1["bronze"]',
        "    d2 --> p1",
        "    p1 --> d1",
    ]


def test_a_circle_is_named_in_the_direction_of_the_rows(desk: Workbench) -> None:
    read = "extract: {type: delta, table: %s}\nload: {type: delta, table: %s}\n"
    desk.pipeline("one", read % ("b", "a"))
    desk.pipeline("two", read % ("a", "b"))
    warning = desk.cli("graph").stderr
    assert "circle: " in warning
    assert "one -> two" in warning


def test_a_project_with_problems_is_not_drawn(desk: Workbench) -> None:
    desk.pipeline("bad", "extract: {type: csvv}\nload: {type: delta, table: a}\n")
    shown = desk.cli("graph")
    assert shown.code == 2
    assert 'did you mean "csv"?' in shown.stderr


def test_names_cannot_break_out_of_the_flowchart() -> None:
    node = DataNode(name='a"]<b>', kind="table")
    graph = ProjectGraph(
        pipelines=(PipelineNode(name="p", file="p.yaml", reads=(node,), writes=()),)
    )
    assert '[("a&quot;]&lt;b>")]' in mermaid(graph)
