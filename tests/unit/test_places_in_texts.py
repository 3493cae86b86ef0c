"""A fault inside a text of a file is reported at its own line and column."""

from __future__ import annotations

import json

import pytest

from tests.workbench import Workbench

HEAD = "extract: {type: csv, path: a.csv}\ntransform:\n"
ONE = "extract: {type: csv, path: a}\n"
TAIL = "load: {type: delta, table: t}\n"


def places(desk: Workbench, steps: str) -> list[tuple[int, int]]:
    """Line and column of each problem; steps begin on line 4 of the file."""
    desk.pipeline("orders", HEAD + steps + TAIL)
    found = json.loads(desk.cli("validate", "--json").stdout)["problems"]
    return [(one["line"], one["column"]) for one in found]


@pytest.mark.parametrize(
    ("step", "place"),
    [
        ("  - {type: filter, condition: amount > = 0}\n", (4, 40)),
        ("  - {type: filter, condition: 'amount > = 0'}\n", (4, 41)),
        ("  - {type: filter, condition: 'name = ''x'' = = 0'}\n", (4, 47)),
        ('  - {type: filter, condition: "name = \\"x\\" = = 0"}\n', (4, 47)),
        ("  - type: filter\n    condition: |\n      amount > 0\n      and and b\n", (7, 11)),
        ("  - type: filter\n    condition: >-\n      amount > 0\n      and and b\n", (7, 11)),
        ("  - type: filter\n    condition: amount > 0\n      and and b\n", (6, 11)),
        ("  - type: derive\n    columns:\n      a: amount\n      b: amount *\n", (7, 17)),
        (
            "  - type: sql\n    query: |\n      SELECT a\n      FROM input\n      WHERE (a >\n",
            (8, 13),
        ),
    ],
)
def test_a_fault_of_sql_has_a_line_and_a_column(
    desk: Workbench, step: str, place: tuple[int, int]
) -> None:
    assert places(desk, step) == [place]


def test_a_text_with_a_variable_has_the_line_of_its_key(desk: Workbench) -> None:
    steps = '  - {type: filter, condition: "amount > ${env:HOME} = ="}\n'
    assert places(desk, steps) == [(4, 0)]


def test_the_place_is_printed_as_editors_understand_it(desk: Workbench) -> None:
    places(desk, "  - {type: filter, condition: amount > = 0}\n")
    told = desk.cli("validate").stderr
    assert "pipelines/orders.yaml:4:40: " in told


def test_a_json_file_has_the_line(desk: Workbench) -> None:
    document = {
        "pipeline": "orders",
        "extract": {"type": "csv", "path": "a.csv"},
        "transform": [{"type": "filter", "condition": "amount > ="}],
        "load": {"type": "delta", "table": "t"},
    }
    desk.write("pipelines/orders.json", json.dumps(document, indent=2))
    found = json.loads(desk.cli("validate", "--json").stdout)["problems"]
    assert [(one["line"], one["column"]) for one in found] == [(10, 0)]


def test_names_of_steps_are_checked_beside_other_mistakes(desk: Workbench) -> None:
    desk.pipeline(
        "orders",
        "extract:\n  a: {type: csv, path: a.csv}\n  b: {type: cvs, path: b.csv}\n"
        "transform:\n"
        "  - {type: filter, condition: x > =, input: a}\n"
        "  - {type: join, with: bb, on: [id]}\n"
        "  - {name: last, type: union, with: [filter, filtr], input: b}\n"
        "checks:\n  - {type: unique, columns: id, input: lsat}\n"
        "load:\n  - {type: delta, table: t, input: join}\n"
        "  - {type: delta, table: u, input: lst, mode: upsrt}\n",
    )
    found = json.loads(desk.cli("validate", "--json").stdout)["problems"]
    assert [(one["line"], one["code"]) for one in found] == [
        (4, "unknown_type"),
        (6, "wrong_value"),
        (7, "unknown_step"),
        (8, "unknown_step"),
        (10, "unknown_step"),
        (13, "wrong_value"),
    ]
    assert found[2]["message"] == 'there is no step or source "bb"'
    assert found[2]["hint"].startswith("did you mean")


@pytest.mark.parametrize(
    "text",
    [
        "extract: [a]\nload: {type: delta, table: t, input: a}\n",
        ONE + "transform: {type: select}\nload: {type: delta, table: t, input: select}\n",
        ONE + "transform: [select]\nload: {type: delta, table: t, input: select}\n",
        ONE + "load: {type: delta, table: t, input: '${var:nothing}'}\n",
    ],
)
def test_a_name_is_not_judged_where_the_names_are_not_known(desk: Workbench, text: str) -> None:
    desk.pipeline("orders", text)
    found = json.loads(desk.cli("validate", "--json").stdout)["problems"]
    assert [one for one in found if one["code"] == "unknown_step"] == []
    assert len(found) == 1
