"""`validate` checks every profile of the project file, and not only the one that is used."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workbench import Workbench

HEAD = "project: shop\nwarehouse: ./warehouse\n"
PIPELINE = "extract: {type: csv, path: a.csv}\nload: {type: delta, table: t}\n"


def answer(desk: Workbench, project: str, *words: str) -> dict[str, Any]:
    desk.write("deltaworks.yaml", HEAD + project)
    desk.pipeline("p", PIPELINE)
    found: dict[str, Any] = desk.cli("validate", *words, "--json").json
    return found


def test_a_wrong_profile_is_reported_with_its_name_and_line(desk: Workbench) -> None:
    found = answer(
        desk,
        "profiles:\n"
        "  dev: {}\n"
        "  prod:\n"
        "    engine:\n"
        "      compilr: quick\n"
        "    locks: {wait_seconds: long}\n"
        "  test:\n"
        "    wharehouse: ./other\n",
    )
    assert not found["ok"]
    assert [(one["line"], one["message"]) for one in found["problems"]] == [
        (7, 'profile "prod": unknown key "compilr"'),
        (8, 'profile "prod": "wait_seconds" must be a number, not "long"'),
        (10, 'profile "test": unknown key "wharehouse"'),
    ]
    assert found["problems"][0]["hint"] == 'did you mean "compiler"?'
    assert found["problems"][0]["file"].endswith("deltaworks.yaml")


def test_the_profile_in_use_has_its_own_lines(desk: Workbench) -> None:
    found = answer(desk, "profiles:\n  prod:\n    engine: {compilr: quick}\n", "--profile", "prod")
    assert [(one["line"], one["message"]) for one in found["problems"]] == [
        (5, 'unknown key "compilr"')
    ]


def test_an_environment_variable_of_another_profile_is_a_note(desk: Workbench) -> None:
    project = (
        "profiles:\n  prod:\n    warehouse: ${env:NO_SUCH_LAKE}\n"
        "    locks: {wait_seconds: '${env:NO_SUCH_TIME}'}\n"
    )
    found = answer(desk, project)
    assert (found["ok"], found["problems"]) == (True, [])
    assert [(one["line"], one["message"]) for one in found["notes"]] == [
        (5, 'profile "prod": environment variable "NO_SUCH_LAKE" is not set'),
        (6, 'profile "prod": environment variable "NO_SUCH_TIME" is not set'),
    ]


def test_a_project_file_that_is_wrong_is_reported_once_with_its_profiles(desk: Workbench) -> None:
    found = answer(desk, "enginee: {}\nprofiles:\n  prod: {warehose: x}\n  dev: {}\n")
    assert [(one["line"], one["message"]) for one in found["problems"]] == [
        (3, 'unknown key "enginee"'),
        (5, 'profile "prod": unknown key "warehose"'),
    ]


@pytest.mark.parametrize("profiles", ["", "profiles: {}\n", "profiles: {dev: {warehouse: w}}\n"])
def test_right_profiles_are_silent(desk: Workbench, profiles: str) -> None:
    assert answer(desk, profiles) == {"ok": True, "problems": [], "notes": []}


def test_pipelines_and_profiles_are_reported_together(desk: Workbench) -> None:
    desk.pipeline("bad", "extract: {type: cvs}\nload: {type: delta, table: t}\n")
    found = answer(desk, "profiles: {prod: {warehose: x}}\n")
    assert [one["code"] for one in found["problems"]] == ["unknown_key", "unknown_type"]


def test_pipelines_are_checked_under_every_profile_when_asked(desk: Workbench) -> None:
    desk.pipeline(
        "v",
        "extract: {type: csv, path: a.csv}\n"
        "transform: [{type: filter, condition: 'a > ${var:least}'}]\n"
        "load: {type: delta, table: v}\n",
    )
    project = (
        "vars: {least: '0'}\n"
        "profiles:\n  prod: {vars: {least: '= 0'}}\n  dev: {warehouse: '${env:NO_LAKE}'}\n"
    )
    assert answer(desk, project)["ok"]
    (found,) = answer(desk, project, "--all-profiles")["problems"]
    assert (found["line"], found["file"].endswith("pipelines/v.yaml")) == (3, True)
    assert found["message"].startswith('profile "prod": "condition": "a > = 0"')
