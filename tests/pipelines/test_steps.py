"""Transforms and checks beyond what all of them share: what each says, it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from deltaworks.contracts.registry import find_plugin
from deltaworks.errors import SpecError
from tests.pipelines.applying import PEOPLE, Bench, step
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def people(spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)


def test_select_keeps_orders_computes_and_leaves_out(people: Bench) -> None:
    assert people.frame(type="select", columns=["NAME", "id + 1 AS next"]).columns == [
        "NAME",
        "next",
    ]
    assert people.frame(type="select", exclude=["name"]).columns == ["id", "n"]
    odd = "SELECT 1 AS `a.b`, named_struct('x', 1) AS s"
    assert people.frame(odd, type="select", columns=["a.b", "s.x"]).columns == ["a.b", "x"]
    assert people.frame(odd, type="select", exclude=["a.b"]).columns == ["s"]
    with pytest.raises(SpecError, match='leaves nothing of "s"'):
        people.frame(odd, type="select", exclude=["s.x"])
    assert step("select").problems() == ('say either "columns" or "exclude"',)


@pytest.mark.parametrize(
    ("how", "ids"),
    [
        ("inner", [2]),
        ("left", [1, 2, 3]),
        ("right", [2, 9]),
        ("full", [1, 2, 3, 9]),
        ("semi", [2]),
        ("anti", [1, 3]),
    ],
)
def test_join_keeps_the_rows_its_kind_says(people: Bench, how: str, ids: list[int]) -> None:
    other = {"ages": "SELECT * FROM VALUES (2, 40), (9, 50), (null, 1) AS t(id, age)"}
    found = people.rows(PEOPLE, other, type="join", on="id", how=how, **{"with": "ages"})
    assert [row[0] for row in found if row[0] is not None] == ids


def test_join_refuses_two_columns_of_one_name(people: Bench) -> None:
    other = {"ages": "SELECT 2 AS id, 'x' AS NAME"}
    with pytest.raises(SpecError, match='both sides have a column "NAME"') as caught:
        people.frame(PEOPLE, other, type="join", on="id", **{"with": "ages"})
    assert "select step" in caught.value.hint


def test_aggregate_makes_one_row_per_group_with_named_figures(people: Bench) -> None:
    figures = [
        {"function": "count"},
        {"function": "sum", "column": "n", "alias": "total"},
        {"function": "count_distinct", "column": "id"},
    ]
    frame = people.frame(type="aggregate", group_by="name", aggregations=figures)
    assert frame.columns == ["name", "count", "total", "count_distinct_id"]
    assert sorted(tuple(row) for row in frame.collect()) == [("ann", 1, 2.5, 1), ("bob", 2, 1.0, 2)]
    assert people.rows(type="aggregate", aggregations=figures) == [(3, 3.5, 3)]
    nested = "SELECT named_struct('k', 1) AS s, 5 AS n"
    total = [{"function": "max", "column": "s.k"}]
    assert people.rows(nested, type="aggregate", aggregations=total) == [(1,)]
    assert step("aggregate", aggregations=[{"function": "sum"}]).problems() == (
        'aggregation "sum" needs a "column"',
    )


def test_cast_sets_null_or_marks_what_does_not_fit(people: Bench) -> None:
    texts = "SELECT * FROM VALUES ('1'), ('x'), (null) AS t(v)"
    assert people.rows(texts, type="cast", columns={"v": "int"}, on_error="set_null") == [
        (1,),
        (None,),
        (None,),
    ]
    marked = people.frame(
        texts, type="cast", name="typed", columns={"v": "int"}, on_error="quarantine"
    )
    reasons = [row[1] for row in marked.collect() if row[1] is not None]
    assert [(row["rule"], row["reason"], row["row"]) for row in reasons] == [
        ("typed: values fit their types", "v: 'x' is not int", '{"v":"x"}')
    ]


def test_derived_columns_see_earlier_ones(people: Bench) -> None:
    frame = people.frame(
        type="derive", columns={"a": "id * 10", "b": "a + 1", "n": "coalesce(n, 0)"}
    )
    assert frame.columns == ["id", "name", "n", "a", "b"]
    assert [(row["b"], row["n"]) for row in frame.orderBy("id").collect()] == [
        (11, 2.5),
        (21, 0.0),
        (31, 1.0),
    ]


def test_filter_drops_false_and_null(people: Bench) -> None:
    assert [row[0] for row in people.rows(type="filter", condition="n > 0")] == [1, 3]


def test_sql_reads_its_input_and_steps_of_any_name(people: Bench) -> None:
    other = {"my-ages": "SELECT 2 AS id, 40 AS age"}
    query = "WITH old AS (SELECT * FROM `my-ages`) SELECT name, age FROM input JOIN old USING (id)"
    assert step("sql", query=query).other_inputs() == ("my-ages",)
    assert people.rows(PEOPLE, other, type="sql", query=query) == [("bob", 40)]


@pytest.mark.parametrize(
    ("kind", "type_name", "options"),
    [
        ("check", "not_null", {"columns": []}),
        ("check", "unique", {"columns": []}),
        ("transform", "join", {"with": "x", "on": []}),
        ("transform", "aggregate", {"aggregations": []}),
    ],
)
def test_an_empty_list_where_something_is_needed_is_refused(
    kind: str, type_name: str, options: dict[str, Any]
) -> None:
    plugin = find_plugin(kind, type_name)
    assert plugin is not None
    with pytest.raises(ValidationError, match="expected at least one"):
        plugin.model_validate(options)


def test_a_count_needs_a_bound_and_says_which(desk: Workbench) -> None:
    plugin = find_plugin("check", "row_count")
    assert plugin is not None
    assert plugin.model_validate({}).problems() == ('say "min", "max" or both',)
    assert plugin.model_validate({"min": 1, "max": 9}).rule_text() == "1 <= rows <= 9"  # type: ignore[attr-defined]
    desk.pipeline(
        "p",
        "extract: {type: csv, path: in.csv}\n"
        "checks: [{type: row_count}]\nload: {type: delta, table: t}\n",
    )
    assert desk.cli("validate").code == 2


def test_checks_warn_drop_and_set_aside_and_every_row_is_accounted_for(bench: Workbench) -> None:
    bench.write("in.csv", "id,n\n1,5\n2,-5\n,5\n4,\n4,7\n")
    bench.pipeline(
        "p",
        "extract: {type: csv, path: in.csv}\n"
        "checks:\n"
        "  - {type: not_null, columns: id, on_fail: drop}\n"
        '  - {type: expression, rule: "n >= 0", on_fail: quarantine}\n'
        "  - {type: unique, columns: id, on_fail: warn}\n"
        "  - {type: row_count, max: 1, on_fail: warn}\n"
        "load: {type: delta, table: t}\n",
    )
    document = bench.run("p")
    batch = document["batches"][0]
    assert (batch["rows_read"], batch["rows_dropped"], batch["rows_quarantined"]) == (5, 1, 2)
    assert [row["id"] for row in bench.rows("t")] == ["1", "4"]
    found = {check["type"]: (check["passed"], check["rows_failed"]) for check in batch["checks"]}
    assert found["not_null"] == (False, 1)
    assert found["expression"] == (False, 2)  # -5, and NULL, which is not >= 0
    assert found["unique"] == (False, 2)
    assert found["row_count"][0] is False
    assert len(document["notes"]) == 3
    assert document["notes"][-1] == "2 of 5 rows (40%) go into quarantine"
