"""Types and columns of a pipeline file are checked when it is validated, each at its line."""

from __future__ import annotations

import pytest

from tests.workbench import Workbench

LOAD = "load: {type: delta, table: t}\n"
CSV = "extract: {type: csv, path: a.csv}\n"


def problems(desk: Workbench, text: str) -> list[tuple[int, int, str, str]]:
    desk.pipeline("orders", text)
    found = desk.cli("validate", "--json").json["problems"]
    return [(one["line"], one["column"], one["message"], one["hint"]) for one in found]


@pytest.mark.parametrize(
    "text",
    [
        "extract: {type: csv, path: a.csv, schema: 'id bigintt'}\n" + LOAD,
        "extract: {type: json, path: a.json, schema: 'id bigintt'}\n" + LOAD,
        "extract: {type: csv, path: a, partition_types: {id: bigintt}}\n" + LOAD,
        "extract: {type: kafka, topic: a, servers: 'b:9', schema: 'id bigintt'}\n" + LOAD,
        CSV + "transform: [{type: cast, columns: {id: bigintt}}]\n" + LOAD,
        CSV + "transform: [{type: python, function: 'a.py:f', row: true, schema: id bigintt}]\n"
        "" + LOAD,
        CSV + "checks: [{type: schema, columns: id bigintt}]\n" + LOAD,
    ],
)
def test_a_misspelt_type_is_found_wherever_a_type_stands(desk: Workbench, text: str) -> None:
    found = [one for one in problems(desk, text) if "bigintt" in one[2]]
    assert [(one[0] in (2, 3), one[3]) for one in found] == [(True, 'did you mean "bigint"?')]


def test_every_wrong_type_of_a_file_is_reported_at_its_line(desk: Workbench) -> None:
    text = (
        "extract:\n  type: csv\n  path: a.csv\n"
        "  schema: id bigint, amount doubel\n"
        "transform:\n"
        "  - type: cast\n    columns:\n      id: decimal(40,2)\n      day: dat\n"
    )
    assert problems(desk, text + LOAD) == [
        (5, 29, '"schema": column "amount": there is no type "doubel"', 'did you mean "double"?'),
        (
            9,
            11,
            '"id": "decimal(40,2)" has 40 digits, and a decimal has 1 to 38',
            "write decimal(38,2), or fewer digits",
        ),
        (10, 12, '"day": there is no type "dat"', 'did you mean "date"?'),
    ]
