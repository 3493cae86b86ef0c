"""Variables: one that nothing uses is refused, and what a file declares is checked in one place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.workbench import Answer, Workbench

PLAIN = 'extract: {type: csv, path: "in/${var:day}.csv", schema: "id int"}\n'
LOAD = "load: {type: delta, table: t}\n"
DECLARED = """variables:
  day: {type: date}
  copies: {type: int, default: 2}
  loud: {type: bool, default: false}
  rate: {type: number, default: 0.5}
  since: {type: timestamp, default: 2026-01-01T00:00:00Z}
"""


def offline(desk: Workbench, *words: str) -> Answer:
    return desk.cli("plan", "p", "--offline", "--json", *words)


def said(answer: Answer) -> tuple[str, str]:
    """The message with its place, and the hint."""
    assert answer.code == 2, answer.stdout
    first, *rest = answer.stderr.splitlines()
    return first.removeprefix("error: "), "".join(rest)


@pytest.mark.parametrize("command", [("plan", "p", "--offline"), ("run", "p"), ("validate",)])
def test_a_variable_that_nothing_uses_is_refused_with_the_right_name(
    desk: Workbench, command: tuple[str, ...]
) -> None:
    desk.pipeline("p", PLAIN + LOAD)
    answer = desk.cli(*command, "--var", "day=1", "--var", "dya=2")
    message, hint = said(answer)
    assert message == 'nothing uses variable "dya"'
    assert hint.strip() == 'fix: did you mean "day"?'
    assert desk.version("t") is None


def test_a_pipeline_without_variables_takes_none(desk: Workbench) -> None:
    desk.pipeline("p", PLAIN.replace("${var:day}", "1") + LOAD)
    assert "leave it out" in said(desk.cli("stream", "run", "p", "--var", "day=1"))[1]


def test_a_variable_of_another_pipeline_does_nothing_here_and_is_of_use_to_all(
    desk: Workbench,
) -> None:
    desk.pipeline("p", PLAIN.replace("day", "month") + LOAD)
    desk.pipeline("q", PLAIN + LOAD.replace("t}", "q}"))
    both = ("--var", "month=1", "--var", "day=2")
    assert said(desk.cli("run", "p", *both))[0] == 'nothing uses variable "day"'
    assert desk.cli("validate", *both).code == 0


def test_a_variable_of_the_project_file_may_always_be_given(desk: Workbench) -> None:
    desk.write(
        "deltaworks.yaml",
        'project: shop\nwarehouse: "./${var:stage}"\nvars: {stage: dev, owner: me}\n',
    )
    desk.pipeline("p", PLAIN.replace("${var:day}", "1") + LOAD)
    assert offline(desk, "--var", "stage=live", "--var", "owner=you").code == 0


def test_from_python_a_variable_of_one_run_must_be_of_use_and_one_of_the_project_may_not(
    desk: Workbench,
) -> None:
    from deltaworks.errors import ConfigError

    desk.pipeline("p", PLAIN + LOAD)
    project = desk.open(variables={"day": "1", "other": "2"})
    assert project.plan("p", offline=True).offline
    with pytest.raises(ConfigError, match='nothing uses variable "dya"'):
        project.plan("p", offline=True, variables={"dya": "1"})


def test_declared_variables_have_defaults_and_take_values_that_fit(desk: Workbench) -> None:
    steps = (
        "transform: [{type: filter, condition: "
        "\"id < ${var:copies} and '${var:day}' > '${var:since}' and ${var:loud}\"}]\n"
    )
    desk.pipeline("p", DECLARED + PLAIN + steps + LOAD)
    given = ("--var", "day=2026-02-28", "--var", "loud=true")
    assert offline(desk, *given).code == 0
    (plan,) = desk.open(variables={"day": "2026-02-28", "loud": "true"}).catalog().plans
    condition = plan.pipeline.transform[0].document()["condition"]
    assert condition == "id < 2 and '2026-02-28' > '2026-01-01T00:00:00Z' and true"
    assert plan.pipeline.extract["source"].document()["path"] == "in/2026-02-28.csv"


@pytest.mark.parametrize(
    ("given", "line", "message", "hint"),
    [
        ((), 3, 'variable "day" is required and not set', "give it: --var day=..."),
        (("dya=2026-01-01",), 3, 'variable "day" is required and not set', 'not "dya"'),
        (("day=yesterday",), 3, 'variable "day": "yesterday" is not a date', "2026-01-31"),
        (("day=2026-02-30",), 3, 'variable "day": "2026-02-30" is not a date', "2026-01-31"),
        (
            ("day=2026-01-01", "copies=2.5"),
            4,
            'variable "copies": "2.5" is not a whole number',
            "42",
        ),
        (
            ("day=2026-01-01", "loud=yes"),
            5,
            'variable "loud": "yes" is not true or false',
            "true or false",
        ),
        (("day=2026-01-01", "rate=nan"), 6, 'variable "rate": "nan" is not a number', "0.25"),
        (
            ("day=2026-01-01", "since=noon"),
            7,
            'variable "since": "noon" is not a timestamp',
            "2026-01-31T12:00:00Z",
        ),
    ],
)
def test_a_missing_or_wrong_value_is_one_message_at_the_declaration(
    desk: Workbench, given: tuple[str, ...], line: int, message: str, hint: str
) -> None:
    twice = PLAIN.replace("schema", "source_file: true, schema").replace('csv"', 'csv"')
    desk.pipeline("p", DECLARED + twice + LOAD)
    words = [word for one in given for word in ("--var", one)]
    answer = desk.cli("plan", "p", "--offline", *words)
    first, rest = said(answer)
    assert first.endswith(f"pipelines/p.yaml:{line}: {message}")
    assert hint in rest
    assert answer.stderr.count("error:") == 1


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("variables: [day]\n", 2, '"variables" must be a map of names'),
        ("variables:\n  day: dates\n", 3, '"type" cannot be "dates"'),
        ("variables:\n  day: {kind: date}\n", 3, 'unknown key "kind"'),
        (
            "variables:\n  day: {type: date, default: soon}\n",
            3,
            'variable "day": "soon" is not a date',
        ),
        (
            "variables:\n  day: {default: x, required: true}\n",
            3,
            'variable "day": a value is required, or there is a default, and not both',
        ),
        (
            "variables:\n  day: {default: x}\n  a b: string\n",
            4,
            '"a b" is not a name of a variable',
        ),
        (
            "variables:\n  daily: {default: x}\n",
            2,
            'variable "day" is used and not declared in "variables"',
        ),
    ],
)
def test_a_wrong_declaration_is_told_at_its_line(
    desk: Workbench, text: str, line: int, message: str
) -> None:
    desk.pipeline("p", text + PLAIN + LOAD)
    first, _ = said(desk.cli("validate", "p"))
    assert first.endswith(f"pipelines/p.yaml:{line}: {message}")


def test_a_type_alone_declares_a_variable_that_is_required(desk: Workbench) -> None:
    desk.pipeline("p", "variables:\n  day: date\n" + PLAIN + LOAD)
    assert 'variable "day" is required and not set' in said(desk.cli("validate"))[0]
    assert desk.cli("validate", "--var", "day=2026-01-01").code == 0


def test_variables_of_a_test_are_of_use_to_it_and_those_of_the_command_to_one_of_them(
    desk: Workbench,
) -> None:
    from deltaworks.errors import ConfigError
    from deltaworks.pipeline.test_cases import chosen_cases, planned_cases

    for name, variable in (("p", "day"), ("q", "month")):
        desk.pipeline(name, PLAIN.replace("day", variable) + LOAD.replace("t}", f"{name}}}"))
        case = f"{{name: {name}, given: {{rows: []}}, expect: {{rows: []}}}}"
        desk.write(f"tests/{name}.yaml", f"pipeline: {name}\ntests: [{case}]\n")
    cases = chosen_cases(desk.root, ())
    names = desk.open().config.names
    both = replace(names, variables={"day": "1", "month": "2"}, given=frozenset({"day", "month"}))
    config = desk.open().config
    assert [placed.pipeline for placed, _ in planned_cases(cases, config, both)] == ["p", "q"]
    slip = replace(both, given=frozenset({"dya"}))
    with pytest.raises(ConfigError, match='nothing uses variable "dya"'):
        planned_cases(cases, config, slip)
