"""What every plug-in is, whatever its kind: frozen, described, strict, and named when it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from deltaworks.config.interpolate import Names
from deltaworks.errors import SpecError
from deltaworks.pipeline.parse import read_pipeline
from tests.conformance.examples import SCHEMA, SOME, misspelt, write_functions, write_input
from tests.conformance.stage import each_at_home, each_plugin, example, made, plugin_class
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = {"type": "csv", "path": "orders.csv", "schema": SCHEMA}
SINK = {"type": "delta", "table": "out"}
SECTIONS = {"source": "extract", "transform": "transform", "check": "checks", "sink": "load"}


@each_plugin
def test_a_plugin_is_frozen(kind: str, name: str) -> None:
    plugin = made(kind, name)
    for field in type(plugin).model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(plugin, field, getattr(plugin, field))


@each_plugin
def test_a_plugin_survives_the_way_through_json(kind: str, name: str) -> None:
    plugin = made(kind, name)
    document = json.loads(json.dumps(plugin.document()))
    assert document.pop("type") == name
    assert type(plugin).model_validate(document) == plugin


@each_plugin
def test_the_example_has_no_problems(kind: str, name: str) -> None:
    assert made(kind, name).problems() == ()


def models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A model and every model among its fields."""
    yield model
    for field in model.model_fields.values():
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from models(inner)


@each_plugin
def test_every_option_has_a_description_of_one_line(kind: str, name: str) -> None:
    wrong = [
        f"{model.__name__}.{field}"
        for model in models(plugin_class(kind, name))
        for field, info in model.model_fields.items()
        if not info.description or "\n" in info.description or not info.description.endswith(".")
    ]
    assert wrong == []


@each_plugin
def test_a_json_schema_lists_every_option_and_allows_no_other(kind: str, name: str) -> None:
    plugin = plugin_class(kind, name)
    schema = plugin.model_json_schema(by_alias=True)
    options = {field.alias or key for key, field in plugin.model_fields.items()}
    assert set(schema["properties"]) == options
    assert schema["additionalProperties"] is False


def pipeline_file(root: Path, kind: str, entry: dict[str, Any], others: tuple[str, ...]) -> Path:
    """A pipeline with a step in it; each section on a line of its own, as SECTIONS lists them."""
    steps: dict[str, Any] = {"extract": {"main": SOURCE}, "transform": [], "checks": []}
    steps["extract"].update(dict.fromkeys(others, SOURCE))
    steps["load"] = SINK
    if kind == "source":
        steps["extract"] = entry
    elif kind == "sink":
        steps["load"] = entry
    else:
        steps[SECTIONS[kind]] = [entry | ({"input": "main"} if kind == "transform" else {})]
    lines = ["pipeline: p", *[f"{key}: {json.dumps(value)}" for key, value in steps.items()]]
    path = root / "pipelines" / "p.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@each_plugin
def test_an_unknown_option_is_refused_with_the_right_one(
    kind: str, name: str, tmp_path: Path
) -> None:
    plugin = made(kind, name)
    known = next(key for key in plugin.document() if key != "type")
    entry = {**plugin.document(), f"{known}x": 1}
    others = tuple(o for o in getattr(plugin, "other_inputs", tuple)() if o != "input")
    path = pipeline_file(tmp_path, kind, entry, others)
    with pytest.raises(SpecError) as caught:
        read_pipeline(path, Names(variables={}, environ={}))
    problem = caught.value.problems[0]
    assert problem.code == "unknown_key"
    assert f'"{known}x"' in problem.message
    assert f'"{known}"' in problem.hint


@each_at_home
def test_an_error_names_the_step(kind: str, name: str, jvm: SparkSession, bench: Workbench) -> None:
    for source in ("csv", "delta"):
        write_input(jvm, source, example("source", source), bench.root, SOME)
    broken = {key: misspelt(value) for key, value in example(kind, name).items()}
    plugin_class(kind, name).model_validate(broken)  # wrong only beside the data
    right = made(kind, name)
    others = tuple(o for o in getattr(right, "other_inputs", tuple)() if o != "input")
    write_functions(right.example, bench.root)
    pipeline_file(bench.root, kind, {"type": name, **broken}, others)
    answered = bench.cli("run", "p", "--json", "--quiet")
    error = answered.json["error"]
    line = 2 + list(SECTIONS).index(kind)
    assert answered.code in (1, 2, 3)
    assert (Path(error["file"]).name, error["line"]) == ("p.yaml", line)
    assert bench.version("out") is None
