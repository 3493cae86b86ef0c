"""Classic files: what they mean, what is wrong with them, and their native form."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltaworks.config.interpolate import Names
from deltaworks.errors import Problem, SpecError
from deltaworks.pipeline.merge_order import MergeOrder, order_of
from deltaworks.pipeline.native_text import native_text
from deltaworks.pipeline.parse import read_document, read_pipeline
from tests.workbench import Workbench, run_cli

SHAPES = sorted((Path(__file__).parents[1] / "pipelines" / "classic").glob("*.json"))
NAMES = Names({"day": "2026-01-01"}, {})
DELTA = {"sinkType": "DeltaLake", "connectionParams": {"path": "out"}}
CSV = {"sourceType": "File", "connectionParams": {"format": "csv", "path": "in.csv"}}


def classic(
    extract: Any = None, load: Any = None, transform: Any = None, **more: Any
) -> dict[str, Any]:
    steps = {} if transform is None else {"transform": transform}
    return {"pipelineId": "p", "extract": extract or CSV, **steps, "load": load or DELTA, **more}


def source(system: str, beside: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    return {"sourceType": system, "connectionParams": params, **(beside or {})}


def sink(system: str, beside: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    return {"sinkType": system, "connectionParams": params, **(beside or {})}


def save(folder: Path, document: Any, name: str = "p.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return file


def native(folder: Path, document: Any) -> dict[str, Any]:
    """The native form of a document in which nothing is wrong."""
    read = read_document(save(folder, document))
    assert read.problems == ()
    value: dict[str, Any] = read.document.value
    return value


def problems(folder: Path, document: Any) -> tuple[Problem, ...]:
    with pytest.raises(SpecError) as caught:
        read_pipeline(save(folder, document), NAMES)
    return caught.value.problems


@pytest.mark.parametrize("file", SHAPES, ids=lambda path: path.stem)
def test_a_classic_file_becomes_the_native_text_kept_beside_it(file: Path) -> None:
    answer = run_cli("convert", str(file))
    assert (answer.code, answer.stderr) == (0, "")
    kept = file.with_suffix(".yaml")
    if os.environ.get("DELTAWORKS_UPDATE_GOLDEN") == "1":
        kept.write_text(answer.stdout, encoding="utf-8")
    assert answer.stdout == kept.read_text(encoding="utf-8")


def test_the_five_shapes_and_the_full_example_are_kept() -> None:
    assert len(SHAPES) >= 6


@pytest.mark.parametrize(
    ("name", "type_name"),
    [
        ("PostgreSQL", "postgres"),
        ("postgresql", "postgres"),
        ("Postgres", "postgres"),
        ("MySQL", "mysql"),
        ("MariaDB", "mysql"),
        ("JDBC", "jdbc"),
        ("Kafka", "kafka"),
        ("KAFKA", "kafka"),
        ("DeltaLake", "delta"),
        ("Delta Lake", "delta"),
        ("delta", "delta"),
        ("CSV", "csv"),
        ("Parquet", "parquet"),
    ],
)
def test_systems_are_known_by_any_capitals(tmp_path: Path, name: str, type_name: str) -> None:
    value = native(tmp_path, classic(source(name), sink(name)))
    assert (value["extract"]["type"], value["load"]["type"]) == (type_name, type_name)


@pytest.mark.parametrize("name", ["S3", "File", "Local", "local"])
@pytest.mark.parametrize("file_format", ["csv", "JSON", "parquet", "avro", "delta"])
def test_the_format_of_files_is_the_type(tmp_path: Path, name: str, file_format: str) -> None:
    value = native(tmp_path, classic(source(name, path="a", format=file_format)))
    assert value["extract"] == {"type": file_format.lower(), "path": "a"}


def test_every_delta_parameter_has_its_native_field(tmp_path: Path) -> None:
    given = sink(
        "DeltaLake",
        {"credentialId": "lake"},
        format="delta",
        path="out",
        mergeKeys='["a", "b"]',
        updateCondition="source.a > target.a",
        deleteCondition="source.gone",
        updateColumns="c",
        insertColumns='["c"]',
        mergeSchema="TRUE",
        overwriteSchema="false",
        optimizeWrite="true",
        autoCompact="true",
        targetFileSize="128mb",
        partitionBy="day",
        replaceWhere="day = 1",
        enableChangeDataFeed="true",
        dataSkippingNumIndexedCols="5",
        zOrderColumns="a",
    )
    assert native(tmp_path, classic(load=given, writeMode="upsert"))["load"] == {
        "type": "delta",
        "path": "out",
        "credential": "lake",
        "mode": "upsert",
        "merge_keys": ["a", "b"],
        "update_condition": "source.a > target.a",
        "delete_condition": "source.gone",
        "duplicates": {"keep": "newest", "by": "a"},
        "update_columns": ["c"],
        "insert_columns": ["c"],
        "replace_where": "day = 1",
        "merge_schema": True,
        "overwrite_schema": False,
        "partition_by": ["day"],
        "change_feed": True,
        "target_file_size": "128mb",
        "optimize_write": True,
        "auto_compact": True,
        "properties": {"delta.dataSkippingNumIndexedCols": "5"},
        "after_load": {"z_order": ["a"]},
    }


def test_reading_delta_as_it_was_its_changes_or_what_is_new(tmp_path: Path) -> None:
    was = native(tmp_path, classic(source("DeltaLake", path="t", versionAsOf="3")))
    assert was["extract"] == {"type": "delta", "path": "t", "version_as_of": 3}
    feed = source(
        "DeltaLake",
        {"table": "t"},
        readChangeFeed="true",
        startingTimestamp="2026-01-01",
        endingTimestamp="2026-01-02",
    )
    assert native(tmp_path, classic(feed))["extract"] == {
        "type": "delta_changes",
        "table": "t",
        "starting_timestamp": "2026-01-01",
        "ending_timestamp": "2026-01-02",
    }
    plain = native(tmp_path, classic(source("DeltaLake", path="t", readChangeFeed="false")))
    assert plain["extract"] == {"type": "delta", "path": "t"}


@pytest.mark.parametrize("switch", ["ignoreDeletes", "ignoreChanges", "skip_change_commits"])
def test_a_switch_for_rewritten_history_asks_for_what_is_new(tmp_path: Path, switch: str) -> None:
    file = save(tmp_path, classic(source("DeltaLake", None, path="t", **{switch: "true"})))
    pipeline = read_pipeline(file, NAMES)
    assert pipeline.extract["source"].reads_increments()
    off = native(tmp_path, classic(source("DeltaLake", None, path="t", **{switch: "false"})))
    assert "incremental" not in off["extract"]


def test_what_stands_beside_the_parameters_wins(tmp_path: Path) -> None:
    files = source("S3", {"path": "new"}, format="csv", path="old")
    table = sink("DeltaLake", {"table": "new"}, path="old")
    value = native(tmp_path, classic(files, table))
    assert (value["extract"]["path"], value["load"]["table"]) == ("new", "new")
    assert "path" not in value["load"]
    query = source("MySQL", {"query": "SELECT 1"}, table="old", query="SELECT 0", host="h")
    assert native(tmp_path, classic(query))["extract"] == {
        "type": "mysql",
        "host": "h",
        "query": "SELECT 1",
    }


def test_texts_lists_flags_and_numbers_may_also_be_written_plainly(tmp_path: Path) -> None:
    quoted = classic(
        source("File", format="csv", path="5", header="false"),
        sink("DeltaLake", path="o", partitionBy='["a"]', mergeSchema="true", targetFileSize="9mb"),
    )
    plain = classic(
        source("File", format="csv", path=5, header=False),
        sink("DeltaLake", path="o", partitionBy=["a"], mergeSchema=True, targetFileSize="9mb"),
    )
    assert native(tmp_path, quoted) == native(tmp_path, plain)
    assert native(tmp_path, quoted)["extract"] == {"type": "csv", "path": "5", "header": False}


def test_what_a_format_has_no_use_for_is_an_option_of_sparks(tmp_path: Path) -> None:
    files = source("S3", format="parquet", path="a", header="true", compression="gzip")
    out = sink("S3", format="parquet", path="b", delimiter=";", compression="gzip")
    value = native(tmp_path, classic(files, out))
    assert value["extract"]["options"] == {"header": True, "compression": "gzip"}
    assert value["load"]["options"] == {"delimiter": ";"}
    assert value["load"]["compression"] == "gzip"
    read_pipeline(save(tmp_path, classic(files, out)), NAMES)


def test_a_transform_may_be_any_native_one(tmp_path: Path) -> None:
    steps = [
        {"type": "cast", "parameters": {"columns": '{"a": "int"}', "onError": "quarantine"}},
        {"type": "sql", "parameters": {"query": "SELECT [1] FROM input", "name": "ones"}},
        {"type": "select", "parameters": {"columns": "concat(a, b) as c"}},
        {"type": "Aggregation", "parameters": {"aggregations": '{"function": "COUNT"}'}},
        {"type": "from_tomorrow", "parameters": {"someColumns": '["a"]', "word": "x"}},
    ]
    assert native(tmp_path, classic(transform=steps))["transform"] == [
        {"type": "cast", "columns": {"a": "int"}, "on_error": "quarantine"},
        {"type": "sql", "name": "ones", "query": "SELECT [1] FROM input"},
        {"type": "select", "columns": ["concat(a, b) as c"]},
        {"type": "aggregate", "aggregations": [{"function": "count"}]},
        {"type": "from_tomorrow", "some_columns": ["a"], "word": "x"},
    ]


@pytest.mark.parametrize(
    ("condition", "order"),
    [
        ("source.ts > target.ts", MergeOrder("newest", "ts")),
        ("target.ts <= source.ts", MergeOrder("newest", "ts")),
        ("SOURCE.n < target.N", MergeOrder("oldest", "n")),
        (
            "(source.ok = true) AND (source.`my ts` >= target.`my ts`)",
            MergeOrder("newest", "my ts"),
        ),
        ("source.a > target.a OR source.b > target.b", None),
        ("source.a > target.b", None),
        ("source.a > 5", None),
        ("source.a > source.a", None),
        ("not (source.a > target.a)", None),
        ("source.a >", None),
    ],
)
def test_the_order_of_a_condition_says_which_row_wins(
    condition: str, order: MergeOrder | None
) -> None:
    assert order_of(condition) == order


def test_a_schema_is_read_where_it_can_be_and_checked_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    text = "-- the orders\nid bigint, /* euros */\n  amount double;\n"
    (tmp_path / "schemas" / "orders.sql").write_text(text)
    columns = "id bigint, amount double"
    files = source("File", {"schemaName": "orders"}, format="csv", path="a", schema="other int")
    assert native(tmp_path, classic(files))["extract"]["schema"] == columns
    table = source("DeltaLake", {"schemaName": columns}, path="t")
    out = sink("DeltaLake", {"schemaName": "orders"}, path="out")
    steps = [{"type": "filter", "parameters": {"condition": "id > 1"}}]
    assert native(tmp_path, classic(table, out, steps))["checks"] == [
        {"type": "schema", "input": "source", "columns": columns},
        {"type": "schema", "columns": columns},
    ]
    assert native(tmp_path, classic(table))["checks"] == [{"type": "schema", "columns": columns}]


def test_a_project_knows_its_schemas_wherever_the_file_lies(desk: Workbench) -> None:
    desk.write("schemas/orders.sql", "id bigint")
    files = source("File", {"schemaName": "orders"}, format="csv", path="a")
    desk.write("pipelines/p.json", json.dumps(classic(files)))
    assert desk.cli("validate", "p").code == 0
    assert desk.cli("convert", "p", "--json").json["extract"]["schema"] == "id bigint"


WRONG: dict[str, tuple[dict[str, Any], int, str, str, str]] = {
    # document, line, path, message, hint; the text is indented by one, a key to a line
    "misspelt parameter": (
        classic(load=sink("DeltaLake", path="o", mergeKey='["id"]'), writeMode="Upsert"),
        14,
        "load.connectionParams.mergeKey",
        'unknown key "mergeKey"',
        'did you mean "mergeKeys"?',
    ),
    "native spelling, misspelt": (
        classic(load=sink("DeltaLake", path="o", merge_schem="true")),
        14,
        "load.connectionParams.merge_schem",
        'unknown key "merge_schem"',
        'did you mean "mergeSchema"?',
    ),
    "flag": (
        classic(load=sink("DeltaLake", path="o", mergeSchema="maybe")),
        14,
        "load.connectionParams.mergeSchema",
        '"mergeSchema" must be true or false, not "maybe"',
        '"mergeSchema" is add columns',
    ),
    "number": (
        classic(source("DeltaLake", path="o", versionAsOf="last")),
        7,
        "extract.connectionParams.versionAsOf",
        '"versionAsOf" must be a whole number, not "last"',
        "read this version",
    ),
    "broken JSON": (
        classic(load=sink("DeltaLake", path="o", mergeKeys='["id"'), writeMode="Upsert"),
        14,
        "load.connectionParams.mergeKeys",
        '"mergeKeys": its text is not valid JSON at character 6',
        'write ["a", "b"]',
    ),
    "words with commas": (
        classic(load=sink("DeltaLake", path="o", mergeKeys="a, b"), writeMode="Upsert"),
        14,
        "load.connectionParams.mergeKeys",
        '"a, b" is not a name',
        'several names are a JSON list: ["a", "b"]',
    ),
    "inside JSON": (
        classic(
            transform=[
                {
                    "type": "aggregation",
                    "parameters": {"groupBy": "a", "aggregations": '[{"function": "summ"}]'},
                }
            ]
        ),
        15,
        "transform[0].parameters.aggregations[0].function",
        '"function" cannot be "summ"',
        'did you mean "sum"?',
    ),
    "key inside JSON": (
        classic(
            transform=[
                {
                    "type": "aggregation",
                    "parameters": {"aggregations": '[{"function": "sum", "colum": "a"}]'},
                }
            ]
        ),
        14,
        "transform[0].parameters.aggregations[0].colum",
        'unknown key "colum"',
        'did you mean "column"?',
    ),
    "missing parameter": (
        classic(transform=[{"type": "aggregation", "parameters": {"groupBy": "a"}}]),
        11,
        "transform[0]",
        '"aggregations" is missing',
        "figures of each group",
    ),
    "missing format": (
        classic(source("S3", path="a")),
        5,
        "extract.connectionParams",
        '"format" is missing',
        "there is: csv, json",
    ),
    "unknown format": (
        classic(source("S3", path="a", format="cvs")),
        7,
        "extract.connectionParams.format",
        '"format" cannot be "cvs"',
        'did you mean "csv"?',
    ),
    "wrong format": (
        classic(source("DeltaLake", path="a", format="csv")),
        7,
        "extract.connectionParams.format",
        '"format" is always "delta" where "sourceType" is "DeltaLake"',
        "leave it out",
    ),
    "wrong format of files": (
        classic(source("CSV", path="a", format="json")),
        7,
        "extract.connectionParams.format",
        '"format" is always "csv" where "sourceType" is "CSV"',
        "leave it out",
    ),
    "mode": (
        classic(writeMode="Upsrt"),
        16,
        "writeMode",
        '"writeMode" cannot be "Upsrt"',
        'did you mean "Upsert"?',
    ),
    "mode of files": (
        classic(load=sink("File", format="parquet", path="o"), writeMode="Upsert"),
        17,
        "writeMode",
        '"writeMode" cannot be "Upsert"',
        "there is: Append, Overwrite, error",
    ),
    "mode of Kafka": (
        classic(load=sink("Kafka", topic="o"), writeMode="Overwrite"),
        16,
        "writeMode",
        '"writeMode" cannot be "Overwrite" for a sink that only adds',
        "there is: Append, Upsert",
    ),
    "no keys": (
        classic(writeMode="Upsert"),
        10,
        "load",
        'delta: writeMode "Upsert" needs "mergeKeys"',
        "",
    ),
    "keys for nothing": (
        classic(load=sink("DeltaLake", path="o", mergeKeys="a"), writeMode="Append"),
        14,
        "load.connectionParams.mergeKeys",
        'delta: "mergeKeys" belongs to writeMode "Upsert", not "Append"',
        "",
    ),
    "system": (
        classic(source("Postgress")),
        4,
        "extract.sourceType",
        'there is no source of type "Postgress"',
        'did you mean "PostgreSQL"?',
    ),
    "system of a later release": (
        classic(source("PostgreSQL", host="h", query="SELECT 1")),
        4,
        "extract.sourceType",
        'there is no source of type "postgres" in this release',
        "csv",
    ),
    "secret": (
        classic(source("PostgreSQL", host="h", password="x")),  # noqa: S106 - nobody's
        7,
        "extract.connectionParams.password",
        '"password" holds a secret',
        '"credentialId"',
    ),
    "feed without the switch": (
        classic(source("DeltaLake", path="a", startingVersion="1")),
        7,
        "extract.connectionParams.startingVersion",
        '"startingVersion" needs "readChangeFeed": "true"',
        "",
    ),
    "feed of a version": (
        classic(source("DeltaLake", path="a", readChangeFeed="true", versionAsOf="1")),
        8,
        "extract.connectionParams.versionAsOf",
        '"versionAsOf" and "readChangeFeed" exclude each other',
        "",
    ),
    "feed, perhaps": (
        classic(source("DeltaLake", path="a", readChangeFeed="perhaps")),
        7,
        "extract.connectionParams.readChangeFeed",
        '"readChangeFeed" must be true or false, not "perhaps"',
        "",
    ),
    "key at the top": (
        {**classic(), "writeMod": "Append"},
        16,
        "writeMod",
        'unknown key "writeMod"',
        'did you mean "writeMode"?',
    ),
    "key of an end": (
        classic({**CSV, "sourcType": "S3"}),
        9,
        "extract.sourcType",
        'unknown key "sourcType"',
        'did you mean "sourceType"?',
    ),
    "no system": (
        classic({"connectionParams": {}}),
        3,
        "extract",
        '"sourceType" is missing',
        "there is: PostgreSQL",
    ),
    "no load": (
        {"pipelineId": "p", "extract": CSV},
        1,
        "load",
        '"load" must be a map',
        '"sinkType"',
    ),
    "parameters that are no map": (
        classic({**CSV, "connectionParams": "path=a"}),
        5,
        "extract.connectionParams",
        '"connectionParams" must be a map',
        '{"path"',
    ),
    "transform that is no list": (
        classic(transform={"type": "filter"}),
        10,
        "transform",
        '"transform" must be a list',
        "brackets",
    ),
    "transform without a type": (
        classic(transform=[{"parameters": {}}]),
        11,
        "transform[0]",
        'a transform is a map with a "type"',
        '"aggregation"',
    ),
    "step parameters that are no map": (
        classic(transform=[{"type": "filter", "parameters": "a > 1"}]),
        13,
        "transform[0].parameters",
        '"parameters" must be a map',
        "",
    ),
    "unknown transform": (
        classic(transform=[{"type": "agregate"}]),
        12,
        "transform[0].type",
        'there is no transform of type "agregate"',
        'did you mean "aggregate"?',
    ),
    "one thing twice": (
        classic(load=sink("DeltaLake", path="o", mergeSchema="true", merge_schema="true")),
        15,
        "load.connectionParams.merge_schema",
        '"mergeSchema" says this already',
        "leave one of them out",
    ),
    "missing schema file": (
        classic({**CSV, "schemaName": "orders"}),
        9,
        "extract.schemaName",
        '"schemaName": there is no file "schemas/orders.sql"',
        "write it",
    ),
    "schema with a table": (
        classic({**CSV, "schemaName": "CREATE TABLE a (b int)"}),
        9,
        "extract.schemaName",
        '"schemaName": columns and their types are wanted',
        "id bigint",
    ),
    "credential of a later release": (
        classic({**CSV, "credentialId": "lake"}),
        9,
        "extract.credentialId",
        '"credentialId" cannot be used here in this release',
        "leave it out",
    ),
    "name": (
        {**classic(), "pipelineId": "../x"},
        2,
        "pipelineId",
        '"../x" is not a pipeline name',
        "letters",
    ),
    "condition": (
        classic(
            load=sink("DeltaLake", path="o", mergeKeys="a", updateCondition="ts > 1"),
            writeMode="Upsert",
        ),
        15,
        "load.connectionParams.updateCondition",
        'delta: "updateCondition": write "source.ts" or "target.ts"',
        "",
    ),
    "variable": (
        classic(source("File", format="csv", path="${var:dya}")),
        7,
        "extract.connectionParams.path",
        'variable "dya" is not set',
        'did you mean "day"?',
    ),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_a_problem_names_the_classic_line_and_spelling(
    tmp_path: Path, case: tuple[dict[str, Any], int, str, str, str]
) -> None:
    document, line, path, message, hint = case
    found = problems(tmp_path, document)
    if len(found) > 1:  # the system itself may be one of a later release
        found = tuple(p for p in found if not p.message.endswith("in this release"))
    assert len(found) == 1, found
    assert (found[0].line, found[0].path) == (line, path)
    assert message in found[0].message
    assert hint in found[0].hint


def test_all_problems_come_at_once_in_the_files_order(tmp_path: Path) -> None:
    document = classic(
        source("S3", format="csv", path="${var:x}", heder="true"),
        sink("DeltaLake", path="o", mergeKeys="[", mergeSchema="7"),
        [{"type": "cast", "parameters": {"column": "{}"}}, {"type": "fliter"}],
        writeMode="Replace",
    )
    found = problems(tmp_path, document)
    assert [p.path.rpartition(".")[2] for p in found] == [
        "path",
        "heder",
        "column",
        "type",
        "mergeKeys",
        "mergeSchema",
        "writeMode",
    ]
    assert sorted(p.line for p in found) == [p.line for p in found]


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
    assert 'pipeline "orders-by-day" stands in' in desk.cli("validate").stderr
    (desk.root / "pipelines" / "orders.json").unlink()
    assert desk.cli("validate", "orders-by-day").code == 0


def test_convert_reports_every_problem_and_prints_nothing(desk: Workbench) -> None:
    desk.write("a.json", json.dumps(classic(source("S3"), sink("Delta", pth="x"))))
    answer = desk.cli("convert", "a.json")
    assert (answer.code, answer.stdout, answer.stderr.count("error:")) == (2, "", 2)
    desk.write("words.yaml", "words\n")
    assert "holds no pipeline" in desk.cli("convert", "words.yaml").stderr


# ------------------------------------------------------------------ classic and native are equal

names = st.text(min_size=1, max_size=8).filter(
    lambda text: text.strip() == text and "$" not in text
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
    direct, through = read_pipeline(file, NAMES), read_pipeline(converted, NAMES)
    assert through == direct
    assert direct.description == described
