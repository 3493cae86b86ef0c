"""Functions of `python` steps are checked by reading their files; nothing of them is run."""

from __future__ import annotations

import pytest

from tests.workbench import Workbench

PIPELINE = """extract: {type: csv, path: a.csv}
transform:
  - {type: python, function: "%s"}
load: {type: delta, table: t}
"""
PLACE = "pipelines/p.yaml"


def problems(desk: Workbench, function: str, code: str = "") -> list[tuple[str, int, str, str]]:
    desk.pipeline("p", PIPELINE % function)
    if code:
        desk.write("steps/clean.py", code)
    found = desk.cli("validate", "--json").json["problems"]
    return [
        (one["file"].removeprefix(f"{desk.root}/"), one["line"], one["message"], one["hint"])
        for one in found
    ]


def test_a_file_that_is_not_there_is_named(desk: Workbench) -> None:
    desk.write("steps/clean.py", "def clean(df): return df\n")
    (found,) = problems(desk, "steps/claen.py:clean")
    assert found[:3] == (PLACE, 4, 'there is no file "steps/claen.py" in the project')
    assert found[3] == 'did you mean "steps/clean.py"?'


def test_a_module_that_is_not_there_is_named(desk: Workbench) -> None:
    (found,) = problems(desk, "no_such_module:clean")
    assert found[:3] == (PLACE, 4, 'there is no module "no_such_module"')


def test_a_function_that_is_not_there_is_named(desk: Workbench) -> None:
    (found,) = problems(desk, "steps.clean:claen", "def clean(df): return df\n")
    assert found == (
        PLACE,
        4,
        'steps/clean.py has no function "claen"',
        'did you mean "clean"?',
    )


def test_wrong_syntax_has_its_file_and_line(desk: Workbench) -> None:
    (found,) = problems(desk, "steps/clean.py:clean", "def clean(df):\n    return (df\n")
    assert found[:2] == ("steps/clean.py", 2)
    assert found[2] == "this is not valid Python: '(' was never closed"


def test_bytes_that_are_no_python_are_refused(desk: Workbench) -> None:
    (found,) = problems(desk, "steps/clean.py:clean", "def clean(df): return '\0'\n")
    assert found[0] == "steps/clean.py"
    assert found[2].startswith("this is not valid Python: ")


@pytest.mark.parametrize(
    ("head", "count"),
    [("a, b, c", 3), ("", 0), ("*, df", 0), ("*rows", 0), ("a, b, /, c", 3)],
)
def test_a_wrong_number_of_arguments_has_the_line_of_the_function(
    desk: Workbench, head: str, count: int
) -> None:
    code = f"import os\n\n\ndef clean({head}):\n    return 1\n"
    (found,) = problems(desk, "steps/clean.py:clean", code)
    assert found == (
        "steps/clean.py",
        4,
        f"function clean takes {count} arguments",
        "write it as clean(df) or (df, ctx)",
    )


def test_a_function_over_rows_takes_one_argument(desk: Workbench) -> None:
    function = 'steps/clean.py:clean", row: true, schema: "id int'
    (found,) = problems(desk, function, "def clean(row, ctx):\n    return row\n")
    assert found[2:] == ("function clean takes 2 arguments", "write it as clean(row)")


@pytest.mark.parametrize(
    "code",
    [
        "def clean(df): return df\n",
        "def clean(df, ctx): return df\n",
        "def clean(df, ctx=None, *more, **others): return df\n",
        "def clean(df, a=1, b=2): return df\n",
        "from other import clean\n",
        "from other import tidy as clean\n",
        "from other import *\n",
        "clean = lambda df: df\n",
        "clean: object = print\n",
        "a, (clean, b) = 1, (2, 3)\n",
        "try:\n    import x\nexcept ImportError:\n    def clean(df): return df\n",
        "if 1:\n    def clean(df): return df\nelse:\n    def clean(a, b, c): return a\n",
        "@wrapped\ndef clean(a, b, c): return a\n",
        "class clean:\n    def __init__(self, df): pass\n",
        "globals()['clean'] = print\n",
        "def __getattr__(name): return print\n",
        "raise SystemExit('this file is not run')\ndef clean(df): return df\n",
    ],
)
def test_what_may_be_right_is_accepted_and_never_run(desk: Workbench, code: str) -> None:
    assert problems(desk, "steps/clean.py:clean", code) == []


def test_a_function_of_an_installed_module_is_not_read(desk: Workbench) -> None:
    assert problems(desk, "json:loads") == []


def test_every_mistake_of_every_file_is_reported_at_once(desk: Workbench) -> None:
    desk.pipeline("q", PIPELINE.replace("csv, path", "cvs, path") % "steps/none.py:f")
    found = problems(desk, "steps/clean.py:clean", "def clean(: pass\n")
    assert [one[:2] for one in found] == [("pipelines/q.yaml", 2), ("steps/clean.py", 1)]
