"""From a file to a pipeline, or to every problem in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deltaworks.config.interpolate import Names
from deltaworks.errors import Problem, SpecError
from deltaworks.pipeline.parse import read_pipeline
from deltaworks.pipeline.spec import Pipeline

NAMES = Names({"day": "1"}, {})
FULL = """\
pipeline: orders_daily
description: Orders of a day.
extract:
  orders: {type: csv, path: "data/orders_${var:day}.csv"}
  customers: {type: delta, table: customers}
transform:
  - {name: typed, type: cast, input: orders, columns: {order_id: bigint}}
  - {type: join, with: customers, on: customer_id, how: left}
checks:
  - {type: expression, rule: "amount >= 0", on_fail: quarantine}
load:
  - {type: delta, table: orders, mode: upsert, merge_keys: [order_id]}
  - {type: parquet, path: exports/orders, mode: overwrite}
"""


def read(tmp_path: Path, text: str, name: str = "p.yaml") -> Pipeline:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return read_pipeline(file, NAMES)


def problems(tmp_path: Path, text: str) -> tuple[Problem, ...]:
    with pytest.raises(SpecError) as caught:
        read(tmp_path, text)
    return caught.value.problems


def test_a_whole_file_becomes_typed_values(tmp_path: Path) -> None:
    pipeline = read(tmp_path, FULL)
    assert (pipeline.name, pipeline.description) == ("orders_daily", "Orders of a day.")
    assert [source.plugin_type() for source in pipeline.extract.values()] == ["csv", "delta"]
    assert [step.plugin_type() for step in pipeline.transform] == ["cast", "join"]
    assert [check.rule_text() for check in pipeline.checks] == ["amount >= 0"]
    assert [sink.plugin_type() for sink in pipeline.load] == ["delta", "parquet"]


def test_the_same_pipeline_in_json_is_the_same_pipeline(tmp_path: Path) -> None:
    pipeline = read(tmp_path, FULL)
    text = json.dumps({**pipeline.document(), "description": "Orders of a day."}, indent=1)
    again = read(tmp_path, text, "p.json")
    assert again == pipeline
    assert again.fingerprint() == pipeline.fingerprint()


def test_the_fingerprint_changes_with_what_is_done_and_only_then(tmp_path: Path) -> None:
    before = read(tmp_path, FULL).fingerprint()
    spelled_out = FULL.replace("how: left", "how: left, name: join").replace("name: join", "")
    assert read(tmp_path, "# a comment\n" + spelled_out).fingerprint() == before
    assert read(tmp_path, FULL.replace("Orders of a day.", "x")).fingerprint() == before
    assert read(tmp_path, FULL.replace("how: left", "how: inner")).fingerprint() != before


def test_one_source_needs_no_name_and_one_sink_no_list(tmp_path: Path) -> None:
    text = "pipeline: p\nextract: {type: csv, path: a}\nload: {type: delta, table: t}\n"
    pipeline = read(tmp_path, text)
    assert list(pipeline.extract) == ["source"]
    assert len(pipeline.load) == 1


def test_a_source_may_be_called_type(tmp_path: Path) -> None:
    text = "pipeline: p\nextract: {type: {type: csv, path: a}}\nload: {type: delta, table: t}\n"
    assert list(read(tmp_path, text).extract) == ["type"]


@pytest.mark.parametrize(
    ("text", "line", "code", "message", "hint"),
    [
        ("pipline: p\n", 1, "unknown_key", '"pipline"', 'did you mean "pipeline"?'),
        ("pipeline: a b\n", 1, "wrong_value", '"a b" is not a pipeline name', "letters"),
        ("pipeline: ../x\n", 1, "wrong_value", "is not a pipeline name", "letters"),
        ("pipeline: 5\n", 1, "wrong_value", '"5" is not a pipeline name', "letters"),
        ("a: 1\n", 1, "missing_key", '"pipeline" is missing', "pipeline: a_name"),
        ("pipeline: p\n", 1, "missing_key", '"extract" must name a source', "extract: {type"),
        ("pipeline: p\nextract: x.csv\n", 2, "missing_key", '"extract" must name', "extract: {"),
        ("pipeline: p\nextract: {a: x.csv}\n", 2, "wrong_value", "a source is a map", "{type"),
        (
            "pipeline: p\nextract: {a: {path: x}}\n",
            2,
            "missing_key",
            'no "type"',
            "available: avro",
        ),
        ("pipeline: p\nload: []\n", 2, "missing_key", '"load" must name a sink', "load: {type"),
        ("pipeline: p\nload: [delta]\n", 2, "wrong_value", "a sink is a map", "{type"),
        ("pipeline: p\ntransform: {type: x}\n", 2, "wrong_value", '"transform" must be a', "- "),
        ("pipeline: p\nchecks:\n - {type: nt_null}\n", 3, "unknown_type", '"nt_null"', "not_null"),
        ("pipeline: p\nextract: {type: 5}\n", 2, "wrong_value", "a source is a map", "{type"),
    ],
)
def test_a_wrong_shape_is_placed_and_mended(
    tmp_path: Path, text: str, line: int, code: str, message: str, hint: str
) -> None:
    found = problems(tmp_path, text)
    wanted = [p for p in found if message in p.message]
    assert len(wanted) == 1
    assert (wanted[0].line, wanted[0].code) == (line, code)
    assert hint in wanted[0].hint


@pytest.mark.parametrize("text", ["", "- a\n", "words\n"])
def test_a_file_that_is_no_map_is_refused(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text)[0].message == "a pipeline file holds names and values"


def test_all_problems_come_at_once_and_in_the_files_order(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        "pipeline: p\n"
        "extract: {type: csv, pth: a}\n"
        "transform:\n"
        '  - {type: filter, condition: "a > ${var:least}"}\n'
        "  - {type: joi}\n"
        "load: {type: delta, table: t, mode: upsrt}\n",
    )
    assert [problem.line for problem in found] == [2, 2, 4, 5, 6]
    assert len({problem.code for problem in found}) == 5
