"""Classic files run as they are, and land what their native form would."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.workbench import Workbench

pytestmark = pytest.mark.spark

DAY_1 = "country,day,amount,note\nNL,1,10,a\nNL,1,5,b\nDE,1,2,c\n"
DAY_2 = "country,day,amount,note\nNL,1,20,a\nFR,2,1,b\n"
REVENUE: dict[str, Any] = {
    "pipelineId": "orders-by-day",
    "extract": {
        "sourceType": "Local",
        "connectionParams": {
            "format": "csv",
            "path": "data/orders_${var:day}.csv",
            "header": "true",
        },
        "schemaName": "orders",
    },
    "transform": [
        {
            "type": "aggregation",
            "parameters": {
                "groupBy": '["country", "day"]',
                "aggregations": json.dumps(
                    [
                        {"column": "amount", "function": "sum", "alias": "revenue"},
                        {"column": "*", "function": "count", "alias": "orders"},
                    ]
                ),
            },
        }
    ],
    "load": {
        "sinkType": "DeltaLake",
        "connectionParams": {
            "path": "old place",
            "mergeKeys": '["country", "day"]',
            "mergeSchema": "true",
            "partitionBy": "country",
        },
        "table": "revenue",
    },
    "writeMode": "Upsert",
}
COPY: dict[str, Any] = {
    "pipelineId": "copy-of-the-first",
    "extract": {
        "sourceType": "DeltaLake",
        "connectionParams": {"format": "delta", "versionAsOf": "0", "path": "warehouse/revenue"},
        "schemaName": "country string, day int, revenue bigint, orders bigint",
    },
    "load": {
        "sinkType": "DeltaLake",
        "connectionParams": {"path": "warehouse/copy", "enableChangeDataFeed": "true"},
    },
    "writeMode": "Overwrite",
}


def prepared(bench: Workbench) -> Workbench:
    bench.write("schemas/orders.sql", "country string, day int, amount int, note string\n")
    bench.write("data/orders_1.csv", DAY_1)
    bench.write("data/orders_2.csv", DAY_2)
    bench.write("pipelines/revenue.json", json.dumps(REVENUE, indent="\t"))
    bench.write("pipelines/copy.json", json.dumps(COPY))
    return bench


def revenue(bench: Workbench, table: str) -> dict[tuple[str, int], tuple[int, int]]:
    rows = bench.rows(table)
    return {(r["country"], r["day"]): (r["revenue"], r["orders"]) for r in rows}


def test_classic_files_run_by_name_and_all_together(bench: Workbench) -> None:
    prepared(bench)
    plan = bench.cli("plan", "orders-by-day", "--json", "--var", "day=1")
    assert (plan.code, plan.json["outputs"][0]["rows_to_insert"]) == (0, 2)
    assert bench.version("revenue") is None

    first = bench.run("orders-by-day", "--var", "day=1")
    assert (first["pipeline"], first["batches"][0]["rows_read"]) == ("orders-by-day", 3)
    day_1 = {("NL", 1): (15, 2), ("DE", 1): (2, 1)}
    assert revenue(bench, "revenue") == day_1

    both = bench.cli("run", "--all", "--json", "--quiet", "--var", "day=2")
    assert both.code == 0, both.stdout
    assert [r["pipeline"] for r in both.json["runs"]] == ["orders-by-day", "copy-of-the-first"]
    assert revenue(bench, "revenue") == {**day_1, ("NL", 1): (20, 1), ("FR", 2): (1, 1)}
    assert revenue(bench, "copy") == day_1
    checks = both.json["runs"][1]["batches"][0]["checks"]
    assert [(c["type"], c["passed"]) for c in checks] == [("schema", True)]
    shown = bench.cli("table", "show", "copy", "--json").json
    assert shown["properties"]["delta.enableChangeDataFeed"] == "true"
    listed = bench.cli("runs", "list", "--pipeline", "orders-by-day", "--json").json
    assert len(listed["runs"]) == 2


def test_a_table_of_another_schema_stops_the_run_and_changes_nothing(bench: Workbench) -> None:
    prepared(bench).run("orders-by-day", "--var", "day=1")
    extract = {**COPY["extract"], "schemaName": "country string, day string, total bigint"}
    bench.write("pipelines/copy.json", json.dumps({**COPY, "extract": extract}, indent=1))
    answer = bench.fail("copy-of-the-first")
    assert answer.code == 3
    assert 'copy.json:10: check "columns are country string' in answer.stderr
    for said in ('"total" is missing', '"day" is int, not string', "is not declared"):
        assert said in answer.stderr
    assert bench.version("copy") is None


def test_the_native_file_goes_on_where_the_classic_one_ended(bench: Workbench) -> None:
    prepared(bench).run("orders-by-day", "--var", "day=1")
    assert bench.cli("convert", "pipelines/revenue.json", "--write").code == 0
    (bench.root / "pipelines" / "revenue.json").unlink()
    again = bench.run("orders-by-day", "--var", "day=1")["batches"][0]
    assert (again["n"], again["outputs"][0]["committed"]) == (2, False)
    assert again["outputs"][0]["rows_unchanged"] == 2


def test_errors_of_a_run_speak_as_the_classic_file_does(bench: Workbench) -> None:
    prepared(bench)

    def refused(text: str, other: str, *arguments: str) -> str:
        changed = json.dumps(REVENUE, indent="\t").replace(text, other)
        bench.write("pipelines/revenue.json", changed)
        answer = bench.cli(*(arguments or ("run",)), "orders-by-day", "--quiet", "--var", "day=1")
        assert answer.code != 0
        assert "revenue.json:" in answer.stderr
        return answer.stderr

    keys = json.dumps(json.dumps(["country", "day"]))
    wrong = json.dumps(json.dumps(["country", "dya"]))
    for command in ("run", "plan"):
        said = refused(f'"mergeKeys": {keys}', f'"mergeKeys": {wrong}', command)
        assert 'mergeKeys names column "dya"' in said
    said = refused('"partitionBy": "country"', '"partitionBy": "contry"')
    assert 'partitionBy names column "contry"' in said
    bench.write("pipelines/revenue.json", json.dumps(REVENUE))
    bench.run("orders-by-day", "--var", "day=1")
    strict = json.dumps(REVENUE, indent="\t").replace('Schema": "true"', 'Schema": "false"')
    bench.write("pipelines/revenue.json", strict.replace('\\"revenue\\"', '\\"total\\"'))
    answer = bench.fail("orders-by-day", "--var", "day=1")
    assert 'say `"mergeSchema": "true"` to add columns' in answer.stderr
