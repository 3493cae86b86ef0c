"""Classic files: what they mean, and their native form."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from deltaworks.pipeline.classic.merge_order import MergeOrder, order_of
from deltaworks.pipeline.parse import read_pipeline
from tests.unit.classic_files import NAMES, classic, native, save, sink, source
from tests.workbench import Workbench, run_cli

SHAPES = sorted((Path(__file__).parents[1] / "pipelines" / "classic").glob("*.json"))


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
