"""What `validate` prints, kept as screens; no JVM is needed."""

from __future__ import annotations

import pytest

from tests.e2e.screens import assert_screen, assert_short_and_clear
from tests.workbench import Workbench, run_cli

CSV = "extract: {type: csv, path: a.csv}\n"
LOAD = "load: {type: delta, table: t}\n"
MANY = """extract:
  type: csv
  path: a.csv
  schema: id bigint, amount doubel, ID int
transform:
  - type: cast
    columns:
      amount: decimal(40,2)
  - type: filter
    condition: |
      amount > 0
      and and country = 'NL'
  - type: derive
    columns:
      total: amount *
  - {type: sql, query: SELECT id FROM input WHERE}
  - {type: rename, columns: {a: total, b: Total}}
load: {type: delta, table: t, mode: upsert, merge_keys: [id, id]}
"""


def checked(desk: Workbench, name: str, *, problems: int, command: str = "validate") -> None:
    answer = run_cli(*command.split())
    assert_screen(name, f"deltaworks {command}", answer, desk.root)
    assert answer.code == 2
    assert_short_and_clear(answer, problems=problems)


@pytest.fixture(autouse=True)
def _inside(desk: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk.root)


def test_all_mistakes_of_all_files_are_shown_at_once(desk: Workbench) -> None:
    desk.pipeline("many", MANY)
    desk.pipeline("other", CSV + "checks: [{type: expression, rule: amount >}]\n" + LOAD)
    checked(desk, "validate_mistakes_of_all_files", problems=8)


def test_mistakes_of_python_functions_are_shown(desk: Workbench) -> None:
    desk.write("steps/clean.py", "def clean(a, b, c):\n    return a\n")
    desk.write("steps/broken.py", "def clean(df):\n    return (df\n")
    functions = ("steps/clean.py:claen", "steps/clean.py:clean", "steps/broken.py:clean")
    steps = "".join(f"  - {{type: python, function: '{one}'}}\n" for one in functions)
    desk.pipeline("p", f"{CSV}transform:\n{steps}{LOAD}")
    checked(desk, "validate_python_functions", problems=3)


def test_mistakes_of_profiles_are_shown(desk: Workbench) -> None:
    profiles = "profiles:\n  prod:\n    warehose: /lake\n  test:\n    warehouse: ${env:NO_LAKE}\n"
    desk.write("deltaworks.yaml", f"project: shop\nwarehouse: ./warehouse\n{profiles}")
    desk.pipeline("p", CSV + LOAD)
    checked(desk, "validate_profiles", problems=1)


def test_notes_are_shown_and_are_no_errors(desk: Workbench) -> None:
    desk.pipeline("one", "extract: {type: delta, table: b}\nload: {type: delta, table: a}\n")
    desk.pipeline("two", "extract: {type: delta, table: a}\nload: {type: delta, table: b}\n")
    desk.pipeline("three", "extract: {type: delta, table: orders}\nload: {type: delta, table: c}\n")
    answer = run_cli("validate")
    assert_screen("validate_notes", "deltaworks validate", answer, desk.root)
    assert answer.code == 0
