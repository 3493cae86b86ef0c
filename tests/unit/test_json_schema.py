"""The schema editors use: takes what the parser takes, refuses what a user mistypes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from deltaworks.config.documents import parse_document
from deltaworks.contracts.registry import PACKAGES, find_plugin, plugin_types
from deltaworks.pipeline.json_schema import DRAFT, _model, pipeline_schema, project_schema
from tests.unit.json_schema_rules import ABOUT, RULES, violations, words
from tests.workbench import Workbench, run_cli

ROOT = Path(__file__).parents[2]
PIPELINES = pipeline_schema()
PROJECT = project_schema()
PLUGINS = [(kind, name) for kind in PACKAGES for name in plugin_types(kind)]
PARTS = {"source": "extract", "transform": "transform", "check": "checks", "sink": "load"}
BASE: dict[str, Any] = {
    "pipeline": "p",
    "extract": {"type": "csv", "path": "a"},
    "load": {"type": "delta", "table": "t"},
}


def documented() -> list[tuple[str, Any]]:
    """Every YAML file that the pages and the example projects show."""
    pages = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    texts = [
        (f"{page.name}#{i}", text)
        for page in pages
        for i, text in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL))
    ]
    kept = [*(ROOT / "examples").rglob("*.yaml")]
    texts += [(path.relative_to(ROOT).as_posix(), path.read_text()) for path in kept]
    found = [(name, parse_document(text, Path(name)).value) for name, text in texts]
    return [(name, value) for name, value in found if "tests" not in value]


def test_every_pipeline_and_project_of_the_pages_satisfies_its_schema() -> None:
    found = documented()
    schemas = {name: PIPELINES if "pipeline" in value else PROJECT for name, value in found}
    assert sum(schema is PIPELINES for schema in schemas.values()) >= 10
    assert sum(schema is PROJECT for schema in schemas.values()) >= 2
    assert {n: bad for n, value in found if (bad := violations(schemas[n], value))} == {}


@pytest.mark.parametrize(("kind", "name"), PLUGINS, ids=lambda word: word)
def test_every_plugins_example_satisfies_it_and_a_misspelt_one_does_not(
    kind: str, name: str
) -> None:
    plugin = find_plugin(kind, name)
    assert plugin is not None
    entry = {"type": name, **json.loads(json.dumps(plugin.example))}
    assert violations(PIPELINES, with_part(kind, entry)) == []
    assert violations(PIPELINES, with_part(kind, {**entry, "zzz": 1})) != []
    assert violations(PIPELINES, with_part(kind, {"type": f"{name}x"})) != []
    fields = PIPELINES["definitions"][f"{kind}.{name}"]["properties"]
    known = {field.alias or own for own, field in plugin.model_fields.items()}
    assert set(fields) == {"type", *known}
    assert all("description" in rule for field, rule in fields.items() if field != "type")


def with_part(kind: str, entry: dict[str, Any]) -> dict[str, Any]:
    part = PARTS[kind]
    return {**BASE, part: [entry] if part in ("transform", "checks") else entry}


@pytest.mark.parametrize("schema", [PIPELINES, PROJECT], ids=["pipeline", "project"])
def test_only_words_of_the_draft_are_used_and_every_reference_leads_somewhere(
    schema: dict[str, Any],
) -> None:
    assert schema["$schema"] == DRAFT
    assert words(schema) <= RULES | ABOUT
    named = set(re.findall(r'"#/definitions/([^"]+)"', json.dumps(schema)))
    assert named <= set(schema["definitions"])


GOOD: dict[str, Any] = {
    "several sources": {"extract": {"a": BASE["extract"], "b": BASE["extract"]}},
    "several sinks": {"load": [BASE["load"], BASE["load"]]},
    "one name for a list": {"load": {**BASE["load"], "partition_by": "day"}},
    "variables anywhere": {
        "pipeline": "p_${var:a}",
        "extract": {"type": "csv", "path": "${var:a}", "header": "${var:b}"},
        "load": {"type": "delta", "table": "t", "mode": "${var:mode}"},
    },
    "options in plain words": {
        "extract": {**BASE["extract"], "options": {"a": True, "b": 5, "c": "d"}}
    },
    "a size in bytes": {"load": {**BASE["load"], "target_file_size": 134217728}},
}
BAD: dict[str, Any] = {
    "unknown key": {"pipline": "p"},
    "name": {"pipeline": "a b"},
    "no source": {"extract": {}},
    "source without a type": {"extract": {"a": {"path": "x"}}},
    "no sink": {"load": []},
    "choice": {"load": {**BASE["load"], "mode": "upsrt"}},
    "flag": {"extract": {**BASE["extract"], "header": "perhaps"}},
    "missing": {"extract": {"type": "csv"}},
    "steps that are no list": {"transform": {"type": "filter", "condition": "a"}},
    "nested": {"load": {**BASE["load"], "duplicates": {"keep": "latest", "by": "a"}}},
    "nested key": {"load": {**BASE["load"], "duplicates": {"keep": "newest", "bye": "a"}}},
}


def test_a_list_of_fixed_length_is_said_as_the_draft_says_it() -> None:
    class Pair(BaseModel):
        bounds: tuple[int, str]

    schema, _ = _model(Pair, "")
    assert violations(schema, {"bounds": [1, "a"]}) == []
    for wrong in ([1], [1, "a", 2], ["a", "a"], [1, 2]):
        assert violations(schema, {"bounds": wrong}) != []


@pytest.mark.parametrize("change", GOOD.values(), ids=GOOD)
def test_what_the_parser_takes_is_taken(change: dict[str, Any]) -> None:
    assert violations(PIPELINES, {**BASE, **change}) == []


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
def test_what_a_user_mistypes_is_refused(change: dict[str, Any]) -> None:
    assert violations(PIPELINES, {**BASE, **change}) != []


def test_the_project_schema_refuses_what_the_project_file_does() -> None:
    good = {"project": "a", "warehouse": "w", "vars": {"a": 1}, "engine": {"conf": {"x": True}}}
    assert violations(PROJECT, good) == []
    for change in ({"warehose": "x"}, {"engine": {"mster": "x"}}, {"retries": {"attempts": 0}}):
        assert violations(PROJECT, {**good, **change}) != []


def test_the_command_prints_it_or_writes_it_over_an_older_one(tmp_path: Path) -> None:
    assert run_cli("schema").json == PIPELINES
    assert run_cli("schema", "--project-file").json == PROJECT
    file = tmp_path / "made" / "schema.json"
    for _ in range(2):
        assert run_cli("schema", "--out", str(file)).code == 0
    assert json.loads(file.read_text()) == PIPELINES
    (tmp_path / "plain").touch()
    refused = run_cli("schema", "--out", str(tmp_path / "plain" / "schema.json"))
    assert (refused.code, "cannot be written" in refused.stderr) == (4, True)


def test_init_writes_the_schema_where_its_pipeline_says(desk: Workbench) -> None:
    folder = desk.root / "new"
    assert run_cli("init", str(folder)).code == 0
    pipeline = folder / "pipelines" / "orders.yaml"
    first = pipeline.read_text().splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    schema = pipeline.parent / first.partition("=")[2]
    assert json.loads(schema.read_text()) == PIPELINES
    assert violations(PIPELINES, parse_document(pipeline.read_text(), pipeline).value) == []


@pytest.mark.parametrize(
    "credentials", [{"backend": "file"}, [{"backend": "env"}, {"backend": "keyring"}]]
)
def test_editors_know_how_credentials_and_stores_are_written(credentials: object) -> None:
    stores = {"s3://lake": {"credential": "lake", "log": {"store": "dynamodb"}}}
    good = {"project": "p", "warehouse": "w", "credentials": credentials, "storage": stores}
    assert violations(PROJECT, good) == []
    assert violations(PROJECT, {**good, "credentials": {"backend": "fil"}}) != []
    assert violations(PROJECT, {**good, "storage": {"s3://lake": {"endpont": "x"}}}) != []
