"""Classic files and what they are converted to are the same pipelines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from deltaworks.errors import SpecError
from deltaworks.model.table_ref import table_path_problem
from deltaworks.pipeline.classic.to_yaml import native_text
from deltaworks.pipeline.parse import read_document, read_pipeline
from tests.unit.classic_files import NAMES, classic, save
from tests.workbench import Workbench

names = st.text(min_size=1, max_size=8).filter(
    lambda text: text.strip() == text and "$" not in text and not table_path_problem(text)
)
words = st.sampled_from(["id", "day", "country", "amount"])
flags = st.sampled_from(["true", "false", "True", "FALSE", True, False])
paths = st.one_of(names, st.just("data/${var:day}/x"), st.just("1_000"), st.just("no"))


@st.composite
def lists(draw: st.DrawFn) -> Any:
    found = draw(st.lists(st.one_of(words, names), min_size=1, max_size=3, unique=True))
    if len(found) == 1 and found[0] in ("id", "day", "country", "amount"):
        return draw(st.sampled_from([found[0], json.dumps(found), found]))
    return draw(st.sampled_from([json.dumps(found), found]))


def params(**choices: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=choices)


@st.composite
def sources(draw: st.DrawFn) -> dict[str, Any]:
    inside: dict[str, Any]
    if draw(st.booleans()):
        inside = {
            "format": "csv",
            **draw(params(header=flags, delimiter=st.sampled_from([";", "\t", "|", '"', ": "]))),
            **draw(params(schema=st.just("a int"), compression=st.just("gzip"))),
        }
        system = draw(st.sampled_from(["S3", "file", "Local"]))
    else:
        inside = draw(params(timestampAsOf=st.just("2026-01-01"), format=st.just("delta")))
        system = "DeltaLake"
    place = {"path": draw(paths)}
    if draw(st.booleans()):
        return {"sourceType": system, "connectionParams": {"path": "old", **inside}, **place}
    return {"sourceType": system, "connectionParams": {**inside, **place}}


@st.composite
def steps(draw: st.DrawFn) -> list[dict[str, Any]]:
    figure = st.fixed_dictionaries(
        {"column": names, "function": st.sampled_from(["sum", "MAX", "count_distinct"])},
        optional={"alias": names},
    )
    one = st.one_of(
        st.builds(
            lambda keys, figures, text: {
                "type": "aggregation",
                "parameters": {
                    "groupBy": keys,
                    "aggregations": json.dumps(figures) if text else figures,
                },
            },
            lists(),
            st.lists(figure, min_size=1, max_size=3),
            st.booleans(),
        ),
        st.just({"type": "filter", "parameters": {"condition": "a > '${var:day}'"}}),
        st.just({"type": "sql", "parameters": {"query": "SELECT *\nFROM input\n"}}),
        st.just({"type": "sql", "parameters": {"query": " SELECT *\n\n  FROM input -- x: y # z"}}),
    )
    return draw(st.lists(one, max_size=3))


@st.composite
def loads(draw: st.DrawFn) -> dict[str, Any]:
    mode = draw(st.sampled_from(["Append", "Overwrite", "upsert", None]))
    inside = draw(params(mergeSchema=flags, partitionBy=lists(), enableChangeDataFeed=flags))
    inside |= draw(params(dataSkippingNumIndexedCols=st.sampled_from(["7", 7])))
    inside |= draw(params(targetFileSize=st.sampled_from(["128mb", "134217728", 134217728])))
    if mode == "upsert":
        inside["mergeKeys"] = draw(lists())
        condition = st.sampled_from(["source.a > target.a", "source.a <> target.a"])
        inside |= draw(params(updateCondition=condition, updateColumns=lists()))
    if mode == "Overwrite":
        inside |= draw(params(replaceWhere=st.just("day = '2026-01-01'")))
    place = draw(st.sampled_from([{"table": "t"}, {"path": "a: b"}]))
    schema = draw(params(schemaName=st.just("id bigint, `a: b` string")))
    load = {"sinkType": "DeltaLake", "connectionParams": inside, **place, **schema}
    return {"load": load, **({} if mode is None else {"writeMode": mode})}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(extract=sources(), transform=steps(), end=loads(), described=names)
def test_the_converted_file_is_the_same_pipeline(
    tmp_path: Path,
    extract: dict[str, Any],
    transform: list[dict[str, Any]],
    end: dict[str, Any],
    described: str,
) -> None:
    document = {"pipelineId": "a-b", "description": described, "extract": extract, **end}
    document["transform"] = transform
    file = save(tmp_path, document)
    read = read_document(file)
    assert read.problems == ()
    converted = tmp_path / "p.yaml"
    converted.write_text(native_text(read.document.value), encoding="utf-8")
    try:
        direct = read_pipeline(file, NAMES)
    except SpecError as error:
        assume("named twice" not in str(error) and "differ only in case" not in str(error))
        raise
    assert read_pipeline(converted, NAMES) == direct
    assert direct.description == described


def test_a_project_of_classic_files_validates_plans_and_converts(desk: Workbench) -> None:
    desk.write("pipelines/orders.json", json.dumps({**classic(), "pipelineId": "orders-by-day"}))
    desk.write("pipelines/b.yml", "pipelineId: b\nextract: {sourceType: Delta, path: out}\n")
    answer = desk.cli("validate")
    assert (answer.code, answer.stderr.count("error:")) == (2, 1)
    assert 'b.yml:1: "load" must be a map' in answer.stderr
    assert desk.cli("validate", "orders-by-day").stdout == "1 pipeline ok\n"
    assert desk.cli("plan", "orders-by-day", "--offline", "--json").json["pipeline"]
    assert "type: csv" in desk.cli("convert", "orders-by-day").stdout
    (desk.root / "pipelines" / "b.yml").unlink()
    written = desk.cli("convert", "orders-by-day", "--write")
    assert (written.code, "orders.yaml" in written.stdout) == (0, True)
    again = desk.cli("convert", "pipelines/orders.json", "--write")
    assert (again.code, "exists already" in again.stderr) == (2, True)
    assert 'pipeline "orders-by-day" is already defined in' in desk.cli("validate").stderr
    (desk.root / "pipelines" / "orders.json").unlink()
    assert desk.cli("validate", "orders-by-day").code == 0


@pytest.mark.parametrize("name", ["?0", "? a", "?", "a?", "- a", "#a", "a: b", "{a", "*a", "&a"])
def test_a_name_of_signs_is_read_back_as_it_was(name: str) -> None:
    text = native_text({"steps": [{"column": name, "more": 1}]})
    (step,) = YAML(typ="safe", pure=True).load(text)["steps"]
    assert step["column"] == name
