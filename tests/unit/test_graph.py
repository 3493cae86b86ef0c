"""Who reads whom: order, defaults, names, circles and leftovers."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaworks.config.interpolate import Names
from deltaworks.errors import Problem, SpecError
from deltaworks.pipeline.graph import build_plan
from deltaworks.pipeline.parse import read_pipeline
from deltaworks.pipeline.stages import Plan

ONE = "extract: {type: csv, path: a}\n"
TWO = "extract:\n  a: {type: csv, path: a}\n  b: {type: csv, path: b}\n"
LOAD = "load: {type: delta, table: t}\n"


def plan(tmp_path: Path, text: str) -> Plan:
    file = tmp_path / "p.yaml"
    file.write_text("pipeline: p\n" + text, encoding="utf-8")
    return build_plan(read_pipeline(file, Names({}, {})))


def problems(tmp_path: Path, text: str) -> tuple[Problem, ...]:
    with pytest.raises(SpecError) as caught:
        plan(tmp_path, text)
    return caught.value.problems


def flow(built: Plan) -> list[tuple[str, tuple[str, ...]]]:
    return [(stage.name, stage.inputs) for stage in built.stages]


def test_a_step_takes_the_previous_result_and_the_sink_the_last(tmp_path: Path) -> None:
    text = ONE + "transform:\n- {type: filter, condition: x}\n- {type: select, columns: x}\n" + LOAD
    assert flow(plan(tmp_path, text)) == [
        ("source", ()),
        ("filter", ("source",)),
        ("select", ("filter",)),
        ("t", ("select",)),
    ]


def test_without_steps_the_sink_takes_the_source(tmp_path: Path) -> None:
    assert flow(plan(tmp_path, ONE + LOAD)) == [("source", ()), ("t", ("source",))]


def test_nameless_steps_of_one_type_are_numbered(tmp_path: Path) -> None:
    steps = "transform:\n" + "- {type: filter, condition: x}\n" * 3
    names = [stage.name for stage in plan(tmp_path, ONE + steps + LOAD).stages]
    assert names == ["source", "filter", "filter_2", "filter_3", "t"]


def test_a_nameless_step_never_takes_a_name_that_is_given(tmp_path: Path) -> None:
    steps = (
        "transform:\n- {type: filter, condition: x}\n"
        "- {name: filter, type: select, columns: x, input: filter_2}\n"
    )
    assert [s.name for s in plan(tmp_path, ONE + steps + LOAD).stages] == [
        "source",
        "filter_2",
        "filter",
        "t",
    ]


def test_steps_run_after_what_they_read_whatever_the_files_order(tmp_path: Path) -> None:
    text = (
        TWO
        + "transform:\n"
        + "- {name: late, type: join, input: early, with: b, on: id}\n"
        + "- {name: early, type: filter, input: a, condition: x}\n"
        + "load: {type: delta, table: t, input: late}\n"
    )
    names = [stage.name for stage in plan(tmp_path, text).stages]
    assert names.index("early") < names.index("late")


def test_checks_stand_right_after_the_step_they_check(tmp_path: Path) -> None:
    text = (
        ONE
        + "transform:\n- {name: f, type: filter, condition: x}\n- {type: select, columns: x}\n"
        + "checks:\n- {type: row_count, min: 1}\n- {type: not_null, columns: x, input: f}\n"
        + LOAD
    )
    assert [stage.name for stage in plan(tmp_path, text).stages] == [
        "source",
        "f",
        "not_null(x)",
        "select",
        "1 <= rows",
        "t",
    ]


def test_several_sinks_may_take_different_steps(tmp_path: Path) -> None:
    text = (
        ONE
        + "transform:\n- {name: f, type: filter, condition: x}\n"
        + "load:\n- {type: delta, table: t, input: source}\n- {type: delta, table: u}\n"
    )
    loads = plan(tmp_path, text).loads
    assert [(load.name, load.inputs) for load in loads] == [
        ("t", ("source",)),
        ("u", ("f",)),
    ]


def test_a_query_reads_steps_and_sources_by_name(tmp_path: Path) -> None:
    query = "with c as (select 1) select * from a join b using (id) join c cross join range(3)"
    text = TWO + f"transform:\n- {{name: q, type: sql, input: a, query: {query}}}\n" + LOAD
    assert ("q", ("a", "a", "b")) in flow(plan(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "line", "code", "message", "hint"),
    [
        (
            ONE + "transform:\n- {type: filter, condition: x, input: sorce}\n" + LOAD,
            4,
            "unknown_step",
            'there is no step or source "sorce"',
            'did you mean "source"?',
        ),
        (
            ONE + "load: {type: delta, table: t, input: sourc}\n",
            3,
            "unknown_step",
            '"sourc"',
            'did you mean "source"?',
        ),
        (
            ONE + "checks:\n- {type: row_count, min: 1, input: x}\n" + LOAD,
            4,
            "unknown_step",
            '"x"',
            "available: source",
        ),
        (
            TWO + "transform:\n- {type: filter, condition: x}\n" + LOAD,
            6,
            "missing_key",
            "the first step must name its input",
            "input: a",
        ),
        (TWO + LOAD, 5, "missing_key", 'say "input"', "input: a"),
        (
            TWO + "load: {type: delta, table: t, input: a}\n",
            4,
            "unused_step",
            'nothing uses source "b"',
            "remove it",
        ),
        (
            ONE
            + "transform:\n- {name: f, type: filter, condition: x}\n"
            + "load: {type: delta, table: t, input: source}\n",
            4,
            "unused_step",
            'nothing uses the result of step "f"',
            "remove it",
        ),
        (
            ONE
            + "transform:\n- {name: f, type: filter, condition: x}\n"
            + "- {name: f, type: filter, condition: y}\n"
            + LOAD,
            4,
            "twice",
            'the name "f" is used more than once',
            "another name",
        ),
        (
            ONE + "transform:\n- {name: source, type: filter, condition: x}\n" + LOAD,
            4,
            "twice",
            'the name "source" is used more than once',
            "another name",
        ),
        (
            ONE + "load:\n- {name: x, type: delta, table: t}\n- {name: x, type: delta, table: u}\n",
            4,
            "twice",
            'the name "x" is used more than once',
            "another name",
        ),
    ],
)
def test_a_wrong_name_is_placed_and_mended(
    tmp_path: Path, text: str, line: int, code: str, message: str, hint: str
) -> None:
    found = problems(tmp_path, text)
    assert (found[0].line, found[0].code) == (line, code)
    assert message in found[0].message
    assert hint in found[0].hint


def test_a_circle_is_drawn(tmp_path: Path) -> None:
    text = (
        ONE
        + "transform:\n"
        + "- {name: f, type: filter, condition: x, input: g}\n"
        + "- {name: g, type: filter, condition: x, input: f}\n"
        + LOAD
    )
    found = problems(tmp_path, text)
    assert found[0].code == "cycle"
    assert '"f" -> "g" -> "f"' in found[0].message or '"g" -> "f" -> "g"' in found[0].message


def test_a_step_cannot_read_itself(tmp_path: Path) -> None:
    text = ONE + "transform:\n- {name: f, type: filter, condition: x, input: f}\n" + LOAD
    assert problems(tmp_path, text)[0].code == "cycle"
