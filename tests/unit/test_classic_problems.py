"""What is wrong with a classic file is told with its own lines and spellings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.classic_files import CSV, classic, problems, sink, source
from tests.workbench import Workbench

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
        "available: csv, json",
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
        "available: Append, Overwrite, error",
    ),
    "mode of Kafka": (
        classic(load=sink("Kafka", topic="o"), writeMode="Overwrite"),
        16,
        "writeMode",
        '"writeMode" cannot be "Overwrite" for a sink that only adds',
        "available: Append, Upsert",
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
        "available: PostgreSQL",
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
        '"schemaName": expected columns and their types',
        "id bigint",
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


def test_convert_reports_every_problem_and_prints_nothing(desk: Workbench) -> None:
    desk.write("a.json", json.dumps(classic(source("S3"), sink("Delta", pth="x"))))
    answer = desk.cli("convert", "a.json")
    assert (answer.code, answer.stdout, answer.stderr.count("error:")) == (2, "", 2)
    desk.write("words.yaml", "words\n")
    assert "holds no pipeline" in desk.cli("convert", "words.yaml").stderr
