"""A wrong column or type in any step is told before a row is read; rows that leave are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deltaworks.errors import SpecError
from tests.conformance.stage import counted_jobs
from tests.pipelines.applying import ORDERS, Bench
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OTHER = {"other": "SELECT 1 AS id, 'x' AS nmae"}
SLIPS: dict[str, tuple[dict[str, Any], str]] = {
    "select": ({"type": "select", "columns": ["adress"]}, "address"),
    "select nested": ({"type": "select", "columns": ["address.ctiy"]}, "address.city"),
    "select expression": ({"type": "select", "columns": ["upper(nmae) as n"]}, "name"),
    "select exclude": ({"type": "select", "exclude": ["address.ctiy"]}, "address.city"),
    "filter": ({"type": "filter", "condition": "amuont > 1"}, "amount"),
    "filter nested": ({"type": "filter", "condition": "address.ctiy = 'x'"}, "city"),
    "filter struct": ({"type": "filter", "condition": "adress.city = 'x'"}, "address"),
    "derive": ({"type": "derive", "columns": {"x": "amuont * 2"}}, "amount"),
    "sql": ({"type": "sql", "query": "SELECT amuont FROM input"}, "amount"),
    "cast": ({"type": "cast", "columns": {"amuont": "double"}}, "amount"),
    "cast nested": ({"type": "cast", "columns": {"address.geo.lta": "int"}}, "address.geo.lat"),
    "rename": ({"type": "rename", "columns": {"größe u": "x"}}, "größe ü"),
    "fill": ({"type": "fill", "columns": {"unit.prise": 1}}, "unit.price"),
    "deduplicate": ({"type": "deduplicate", "columns": ["idd"]}, "id"),
    "deduplicate by": (
        {"type": "deduplicate", "columns": ["id"], "keep": "newest", "by": "att"},
        "at",
    ),
    "union": ({"type": "union", "with": ["other"]}, "rename"),
    "join": ({"type": "join", "with": "other", "on": ["idd"]}, "id"),
    "join other": ({"type": "join", "with": "other", "on": ["name"]}, "nmae"),
    "aggregate": (
        {"type": "aggregate", "aggregations": [{"function": "max", "column": "amuont"}]},
        "amount",
    ),
    "aggregate group": (
        {"type": "aggregate", "group_by": ["nmae"], "aggregations": [{"function": "count"}]},
        "name",
    ),
    "aggregate type": (
        {"type": "aggregate", "aggregations": [{"function": "sum", "column": "name"}]},
        "cast",
    ),
    "aggregate order": (
        {"type": "aggregate", "aggregations": [{"function": "max", "column": "tags"}]},
        "another column",
    ),
    "window part": (
        {"type": "window", "partition_by": ["nmae"], "functions": [{"function": "count"}]},
        "name",
    ),
    "window order": (
        {"type": "window", "order_by": ["idd desc"], "functions": [{"function": "rank"}]},
        "id",
    ),
    "window column": (
        {"type": "window", "functions": [{"function": "min", "column": "address.ctiy"}]},
        "address.city",
    ),
    "window type": (
        {"type": "window", "functions": [{"function": "avg", "column": "name"}]},
        "cast",
    ),
    "pivot": (
        {"type": "pivot", "column": "nmae", "aggregations": [{"function": "count"}]},
        "name",
    ),
    "flatten": ({"type": "flatten", "columns": ["adress"]}, "address"),
    "explode": ({"type": "explode", "column": "linse"}, "lines"),
    "explode nested": ({"type": "explode", "column": "address.ctiy"}, "address.city"),
    "explode expression": (
        {"type": "explode", "column": "split(nmae, ' ')", "alias": "w"},
        "name",
    ),
}


def test_a_slip_is_told_before_any_row_is_read(orders: Bench) -> None:
    from deltaworks.engines.spark.errors.translate import translate

    told = {}
    for name, (options, _) in SLIPS.items():
        others = OTHER if "with" in options else {}
        with (
            counted_jobs(orders.spark) as jobs,
            pytest.raises(Exception, match=r".") as caught,
        ):
            orders.frame(ORDERS, others, **options)
        error = caught.value
        found = error if isinstance(error, SpecError) else translate(error)
        told[name] = (type(found), jobs.count, found.hint)
    wrong = {
        name: told[name]
        for name, (_, right) in SLIPS.items()
        if told[name][:2] != (SpecError, 0) or right not in told[name][2]
    }
    assert wrong == {}


def test_a_slip_in_a_late_step_is_told_before_refused_rows_are_counted(
    jvm: SparkSession, bench: Workbench
) -> None:
    bench.write("in.csv", "id,n\n1,5\nx,6\n")
    bench.write("more.csv", "id,m\n1,5\n")
    late = {
        6: "  - {type: filter, condition: 'amuont > 1'}\n",
        8: "  - {type: join, with: more, on: [id]}\n  - {type: select, columns: [id, nn]}\n",
    }
    for line, steps in late.items():
        more = "  more: {type: csv, path: more.csv, schema: 'id int, m int'}\n" * (line == 8)
        bench.pipeline(
            "p",
            "extract:\n"
            "  main: {type: csv, path: in.csv, schema: 'id int, n int', on_error: quarantine}\n"
            f"{more}transform:\n"
            "  - {type: cast, input: main, columns: {n: double}, on_error: quarantine}\n"
            f"{steps}checks: [{{type: not_null, columns: id}}]\nload: {{type: delta, table: t}}\n",
        )
        with counted_jobs(jvm) as jobs:
            answered = bench.fail("p")
        assert f"pipelines/p.yaml:{line}: column" in answered.stderr
        assert jobs.count == 0
    assert bench.version("t") is None
    file = bench.root / "pipelines" / "p.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("nn", "n"), encoding="utf-8")
    with counted_jobs(jvm) as jobs:
        bench.run("p")
    assert jobs.count > 0


def test_rows_that_explode_and_pivot_leave_out_are_counted(bench: Workbench) -> None:
    bench.write("in.csv", "id,tags,kind\n1,a b,x\n2,,y\n3,c,z\n")
    bench.pipeline(
        "p",
        "extract: {type: csv, path: in.csv}\n"
        "transform:\n"
        "  - {type: explode, column: \"split(tags, ' ')\", alias: tag}\n"
        "  - type: pivot\n"
        "    group_by: tag\n"
        "    column: kind\n"
        "    values: [x]\n"
        "    aggregations: [{function: count}]\n"
        "load: {type: delta, table: t}\n",
    )
    batch = bench.run("p")["batches"][0]
    assert (batch["rows_read"], batch["rows_dropped"]) == (3, 2)  # row 2, and the tag of row 3
    assert bench.rows("t") == [
        {"tag": "a", "x": 1},
        {"tag": "b", "x": 1},
        {"tag": "c", "x": None},
    ]
    assert [s["rows"] for s in batch["steps"] if s["type"] in ("explode", "pivot")] == [3, 3]
