"""Values that an expression cannot work with: told in one line, with what to write instead."""

from __future__ import annotations

import pytest

from tests.workbench import Workbench

LOAD = "load: {type: delta, table: out}\n"
CSV = "extract: {type: csv, path: in.csv, schema: 'id int, zero int, big bigint, word string'}\n"
ROWS = "id,zero,big,word\n7,0,9223372036854775807,2026-31-12\n"


@pytest.mark.parametrize(
    ("expression", "says", "instead"),
    [
        ("id / zero", "divides a row's value by zero", "nullif(x, 0)"),
        ("id % zero", "divides a row's value by zero", "try_mod"),
        ("string(make_dt_interval(1) / zero)", "divides a row's value by zero", "try_divide"),
        ("big + id", "its type cannot hold\n", "try_add"),
        ("cast(id as tinyint) * 100Y", "its type cannot hold: 7", "wider"),
        ("cast(big as int)", "the value 9223372036854775807L is not int", "on_error"),
        ("cast(id * 100 as decimal(3,1))", "does not fit decimal(3,1)", "wider"),
        ("array(1, 2)[id]", "element 7 of an array of 2", "get(array, n)"),
        ("element_at(array(1, 2), id)", "element 7 of an array of 2", "try_element_at"),
        ("to_date(word, 'yyyy-MM-dd')", "not a date or time", "try_to_date"),
        ("to_timestamp(word)", "2026-31-12", "on_error"),
    ],
)
def test_a_value_is_told_with_what_to_write_instead(
    bench: Workbench, expression: str, says: str, instead: str
) -> None:
    bench.write("in.csv", ROWS)
    bench.pipeline(
        "p", f'{CSV}transform:\n  - {{type: derive, columns: {{n: "{expression}"}}}}\n{LOAD}'
    )
    answered = bench.fail("p")
    assert says in answered.stderr
    assert instead in answered.stderr
    assert "SQLSTATE" not in answered.stderr
    assert "ansi" not in answered.stderr
    assert bench.version("out") is None


def test_a_rule_that_divides_by_zero_is_told_with_its_line(bench: Workbench) -> None:
    bench.write("in.csv", ROWS)
    bench.pipeline("p", f"{CSV}checks:\n  - {{type: expression, rule: 'id / zero > 1'}}\n{LOAD}")
    answered = bench.fail("p")
    assert "pipelines/p.yaml:4" in answered.stderr
    assert "divides a row's value by zero" in answered.stderr


def test_a_type_that_a_table_cannot_hold_is_told_without_the_names_of_classes(
    bench: Workbench,
) -> None:
    bench.write("in.csv", ROWS)
    span = "transform: [{type: derive, columns: {n: make_dt_interval(id)}}]\n"
    bench.pipeline("p", f"{CSV}{span}{LOAD}")
    answered = bench.fail("p")
    assert 'Delta cannot hold column "n" of type interval day to second' in answered.stderr
