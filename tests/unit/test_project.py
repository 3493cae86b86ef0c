"""The project file: what it may say, profiles, variables, and folders without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaworks.config.project import ProjectConfig, load_project
from deltaworks.errors import ConfigError, DeltaworksError

FULL = """
project: shop
id: abc
warehouse: ./warehouse
pipelines: flows/*.yaml
engine: {master: "local[2]", conf: {spark.sql.shuffle.partitions: 4, spark.ui.enabled: false}}
locks: {wait_seconds: 5}
vars: {day: "2026-01-01", copies: 2, dry: true}
profiles:
  prod:
    warehouse: /lake/shop
    engine: {master: "spark://big:7077", conf: {spark.executor.memory: 8g}}
    vars: {day: "2026-02-02"}
"""


def load(root: Path, text: str = FULL, **options: object) -> ProjectConfig:
    (root / "deltaworks.yaml").write_text(text, encoding="utf-8")
    return load_project(root, environ={"USER": "ada"}, **options)  # type: ignore[arg-type]


def refusal(root: Path, text: str, **options: object) -> DeltaworksError:
    with pytest.raises(DeltaworksError) as caught:
        load(root, text, **options)
    assert caught.value.exit_code == 2
    return caught.value


def test_two_lines_are_a_project(tmp_path: Path) -> None:
    found = load(tmp_path, "project: shop\nwarehouse: ./warehouse\n")
    assert (found.name, found.project_id) == ("shop", "shop")
    assert found.warehouse == str(tmp_path / "warehouse")
    assert found.pipelines == "pipelines/*.{yaml,yml,json}"
    assert found.engine.master == "local[*]"


def test_paths_start_at_the_projects_folder_wherever_one_stands(tmp_path: Path) -> None:
    inner = tmp_path / "pipelines" / "deep"
    inner.mkdir(parents=True)
    load(tmp_path)
    found = load_project(inner, environ={})
    assert (found.root, found.warehouse) == (tmp_path, str(tmp_path / "warehouse"))


def test_settings_and_variables_may_be_written_without_quotes(tmp_path: Path) -> None:
    found = load(tmp_path)
    assert found.engine.conf == {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}
    assert found.names.variables == {"day": "2026-01-01", "copies": "2", "dry": "true"}


def test_a_profile_is_merged_deeply(tmp_path: Path) -> None:
    found = load(tmp_path, profile="prod")
    assert found.warehouse == "/lake/shop"
    assert found.engine.master == "spark://big:7077"
    assert found.engine.conf == {
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.executor.memory": "8g",
    }
    assert found.names.variables == {"day": "2026-02-02", "copies": "2", "dry": "true"}
    assert (found.project_id, found.locks.wait_seconds, found.profile) == ("abc", 5, "prod")


def test_the_command_line_wins_over_profile_and_file(tmp_path: Path) -> None:
    found = load(tmp_path, profile="prod", variables={"day": "2026-03-03", "new": "x"})
    assert found.names.variables["day"] == "2026-03-03"
    assert found.names.variables["new"] == "x"


def test_the_file_itself_may_use_variables_and_environment(tmp_path: Path) -> None:
    text = 'project: shop\nwarehouse: "/lake/${env:USER}/${var:stage}"\nvars: {stage: dev}\n'
    assert load(tmp_path, text).warehouse == "/lake/ada/dev"
    assert load(tmp_path, text, variables={"stage": "live"}).warehouse == "/lake/ada/live"


def test_an_unknown_profile_gets_the_right_one(tmp_path: Path) -> None:
    error = refusal(tmp_path, FULL, profile="prd")
    assert (error.message, error.hint) == (
        'there is no profile "prd"',
        'did you mean "prod"?',
    )
    assert error.line == 9


def test_a_profile_that_is_not_a_map_is_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path, "project: a\nwarehouse: w\nprofiles: {prod: fast}\n", profile="prod")
    assert "profiles.prod" in error.problems[0].path
    assert "must be a map" in error.problems[0].message


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("warehouse: w\n", 1, '"project" is missing', 'add "project": the project'),
        (
            "project: a\nwarehouse: w\nwarehose: x\n",
            3,
            'unknown key "warehose"',
            'did you mean "warehouse"?',
        ),
        (
            "project: a\nwarehouse: w\nengine:\n  mster: x\n",
            4,
            'unknown key "mster"',
            'did you mean "master"?',
        ),
        (
            "project: a\nwarehouse: w\nlocks: {wait_seconds: soon}\n",
            3,
            '"wait_seconds" must be a number, not "soon"',
            "give up, naming who has the lock",
        ),
        ("project: 7\nwarehouse: w\n", 1, '"project" must be text', 'put it in quotes: "7"'),
        ("project: a\nwarehouse: ${var:x}\n", 2, 'variable "x" is not set', "--var x=..."),
    ],
)
def test_a_wrong_project_file_is_placed_and_mended(
    tmp_path: Path, text: str, line: int, message: str, hint: str
) -> None:
    problem = refusal(tmp_path, text).problems[0]
    assert problem.file.endswith("deltaworks.yaml")
    assert problem.line == line
    assert message in problem.message
    assert hint in problem.hint


def test_every_problem_of_the_project_file_is_told_at_once(tmp_path: Path) -> None:
    error = refusal(tmp_path, "projct: a\nwarehouse: ${var:x}\nlocks: 5\n")
    assert len(error.problems) == 4


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words\n"])
def test_a_file_that_holds_no_names_is_refused(tmp_path: Path, text: str) -> None:
    assert "must hold names and values" in refusal(tmp_path, text).message


def test_a_folder_without_a_file_is_a_project_of_its_own_name(tmp_path: Path) -> None:
    root = tmp_path / "bare"
    root.mkdir()
    found = load_project(root, environ={}, variables={"a": "b"})
    assert (found.name, found.warehouse) == ("bare", str(root / "warehouse"))
    assert (found.pipelines, found.names.variables) == ("*.{yaml,yml}", {"a": "b"})


def test_a_profile_needs_a_project_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='profile "prod" needs a project file'):
        load_project(tmp_path, environ={}, profile="prod")


def test_a_profile_that_is_not_chosen_needs_no_variables(tmp_path: Path) -> None:
    (tmp_path / "deltaworks.yaml").write_text(
        "project: a\nwarehouse: w\nprofiles: {prod: {warehouse: '${env:LAKE}'}}\n"
    )
    assert load_project(tmp_path, environ={}).warehouse == str(tmp_path / "w")
    with pytest.raises(DeltaworksError):
        load_project(tmp_path, environ={}, profile="prod")
