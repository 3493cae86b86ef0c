"""A column that is named twice, or in two spellings that differ only in case, is refused."""

from __future__ import annotations

import pytest

from tests.workbench import Workbench

HEAD = "extract: {type: csv, path: a.csv}\n"
LOAD = "load: {type: delta, table: t}\n"


def problems(desk: Workbench, text: str) -> list[tuple[int, str]]:
    desk.pipeline("orders", text)
    found = desk.cli("validate", "--json").json["problems"]
    return [(one["line"], one["message"]) for one in found]


TWICE = 'column "id" is named twice'
CASE = 'columns "id" and "ID" differ only in case'


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("select, columns: [id, name, id]", TWICE),
        ("select, columns: [id, name as ID]", CASE),
        ("select, exclude: [id, ID]", CASE),
        ("derive, columns: {id: a, ID: b}", CASE),
        ("cast, columns: {id: int, ID: int}", CASE),
        ("fill, columns: {id: 0, ID: 1}", CASE),
        ("rename, columns: {a: id, b: id}", TWICE),
        ("rename, columns: {a: id, b: ID}", CASE),
        ("rename, columns: {x.a: id, x.b: id}", TWICE),
        ("rename, columns: {id: a, ID: b}", CASE),
        ("deduplicate, columns: [id, id]", TWICE),
        ("join, with: a, on: [id, ID]", CASE),
        ("flatten, columns: [id, ID]", CASE),
        ("aggregate, group_by: [id, ID], aggregations: [{function: count}]", CASE),
        ("aggregate, group_by: [id], aggregations: [{function: count, alias: id}]", TWICE),
        ("pivot, column: a, group_by: [id, id], aggregations: [{function: count}]", TWICE),
        ("window, partition_by: [id, id], functions: [{function: count}]", TWICE),
        (
            "window, functions: [{function: count, alias: id}, {function: count, alias: ID}]",
            CASE,
        ),
    ],
)
def test_a_step_names_each_column_once(desk: Workbench, step: str, message: str) -> None:
    found = problems(desk, f"{HEAD}transform:\n  - {{type: {step}}}\n{LOAD}")
    assert [(line, message in said) for line, said in found] == [(4, True)]


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ("delta, table: t, mode: upsert, merge_keys: [id, id]", TWICE),
        ("delta, table: t, partition_by: [id, ID]", CASE),
        ("delta, table: t, cluster_by: [id, ID]", CASE),
        ("csv, path: t, mode: overwrite, partition_by: [id, ID]", CASE),
        ("console, columns: [id, ID]", CASE),
    ],
)
def test_a_sink_names_each_column_once(desk: Workbench, load: str, message: str) -> None:
    found = problems(desk, f"{HEAD}load: {{type: {load}}}\n")
    assert [(line, message in said) for line, said in found] == [(3, True)]


@pytest.mark.parametrize("check", ["not_null, columns: [id, ID]", "unique, columns: [id, ID]"])
def test_a_check_names_each_column_once(desk: Workbench, check: str) -> None:
    found = problems(desk, f"{HEAD}checks:\n  - {{type: {check}}}\n{LOAD}")
    assert [(line, CASE in said) for line, said in found] == [(4, True)]


def test_the_line_is_that_of_the_second_name(desk: Workbench) -> None:
    steps = "transform:\n  - type: select\n    columns:\n      - id\n      - name\n      - ID\n"
    more = "  - type: derive\n    columns:\n      a: '1'\n      A: '2'\n"
    assert [line for line, _ in problems(desk, HEAD + steps + more + LOAD)] == [8, 12]


def test_what_only_looks_alike_is_accepted(desk: Workbench) -> None:
    steps = (
        "transform:\n"
        "  - {type: select, columns: [x.id, y.id as id2, \"name = 'A' as a\", Order ID, Ship ID]}\n"
        "  - {type: rename, columns: {x.a: id, y.a: id, a: b, b: a}}\n"
        "  - {type: union, with: [source, source]}\n"
    )
    assert problems(desk, HEAD + steps + LOAD) == []


def test_steps_whose_names_differ_only_in_case_are_refused(desk: Workbench) -> None:
    steps = (
        "transform:\n  - {name: clean, type: filter, condition: a > 0}\n"
        "  - {name: Clean, type: filter, condition: a > 0}\n"
    )
    found = problems(desk, HEAD + steps + LOAD)
    assert found == [(5, 'the names "clean" and "Clean" differ only in case')]
