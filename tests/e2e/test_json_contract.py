"""What programs read: one JSON document on stdout, its fields and types, null for the unknown."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.workbench import Workbench

pytestmark = pytest.mark.spark

COUNT = (int, type(None))
TEXT = (str,)
TEXT_OR_NULL = (str, type(None))
NUMBER = (int, float)
Shape = dict[str, tuple[type, ...]]
RUN: Shape = {
    "contract": (int,),
    "run_id": TEXT_OR_NULL,
    "pipeline": TEXT,
    "status": TEXT,
    "started_at": TEXT,
    "duration_s": NUMBER,
    "batches": (list,),
    "error": (dict, type(None)),
}
BATCH: Shape = {
    "n": (int,),
    "id": TEXT_OR_NULL,
    "state": TEXT,
    "rows_read": COUNT,
    "rows_quarantined": COUNT,
    "rows_dropped": COUNT,
    "uncounted": (dict,),
    "steps": (list,),
    "checks": (list,),
    "outputs": (list,),
}
STEP: Shape = {
    "name": TEXT,
    "type": TEXT,
    "rows_in": COUNT,
    "rows": COUNT,
    "rows_quarantined": (int,),
    "rows_dropped": COUNT,
    "uncounted": TEXT_OR_NULL,
    "duration_s": NUMBER,
}
CHECK: Shape = {
    "name": TEXT,
    "type": TEXT,
    "step": TEXT,
    "description": TEXT,
    "on_fail": TEXT,
    "max_failed": TEXT_OR_NULL,
    "passed": (bool,),
    "rows_checked": COUNT,
    "rows_failed": COUNT,
    "detail": TEXT,
    "samples": (list,),
}
OUTPUT: Shape = {
    "sink": TEXT,
    "committed": (bool,),
    "version": COUNT,
    "rows_inserted": COUNT,
    "rows_updated": COUNT,
    "rows_deleted": COUNT,
    "rows_unchanged": COUNT,
    "rows_parked": COUNT,
}
ROWS: Shape = {
    "engine": TEXT,
    "versions": (dict,),
    "columns": (list,),
    "rows": (list,),
    "more": (bool,),
}
LISTED: Shape = {
    "name": TEXT,
    "location": TEXT,
    "version": COUNT,
    "rows": COUNT,
    "files": COUNT,
    "bytes": COUNT,
    "last_write": TEXT_OR_NULL,
    "problem": TEXT_OR_NULL,
}
ERROR: Shape = {"code": TEXT, "message": TEXT, "hint": TEXT}
PROBLEM: Shape = {
    "file": TEXT,
    "line": (int,),
    "path": TEXT,
    "code": TEXT,
    "message": TEXT,
    "hint": TEXT,
    "column": (int,),
}
PLAN: Shape = {"stages": (list,), "rows_to_quarantine": COUNT, "outputs": (list,)}
OUTPUT_PLAN: Shape = {
    "table": TEXT,
    "exists": (bool, type(None)),
    "schema_changes": (list,),
    "sql": TEXT_OR_NULL,
    "rows_to_insert": COUNT,
    "rows_to_update": COUNT,
    "rows_to_delete": COUNT,
    "rows_unchanged": COUNT,
}
TABLE: Shape = {
    "location": TEXT,
    "version": (int,),
    "rows": COUNT,
    "files": COUNT,
    "bytes": COUNT,
    "schema": (list,),
    "partition_columns": (list,),
    "properties": (dict,),
    "reader_version": (int,),
    "writer_version": (int,),
    "features": (list,),
    "isolation": TEXT,
}
COMMIT: Shape = {
    "version": (int,),
    "timestamp": TEXT,
    "operation": TEXT,
    "run_id": TEXT_OR_NULL,
    "pipeline": TEXT_OR_NULL,
    "batch": COUNT,
    "metrics": (dict,),
}

ORDERS = """
extract: {type: csv, path: "data/orders.csv"}
transform:
  - {name: typed, type: cast, columns: {id: bigint, amount: double}, on_error: quarantine}
  - {name: paid, type: filter, condition: amount > 0}
checks:
  - {type: not_null, columns: [id], on_fail: quarantine}
load: {type: delta, table: orders, mode: upsert, merge_keys: [id]}
"""
FILES = """
extract: {type: delta, table: orders}
load: {type: parquet, path: exports/orders, mode: overwrite}
"""
DATA = "id,amount\n1,10\n2,oops\n3,0\n,5\n"


def assert_shape(document: Any, shape: Shape) -> None:
    """Every field is there with a right type; booleans are not numbers."""
    assert isinstance(document, dict)
    assert [name for name in shape if name not in document] == []
    wrong = {
        name: document[name]
        for name, kinds in shape.items()
        if not isinstance(document[name], kinds)
        or (isinstance(document[name], bool) and bool not in kinds)
    }
    assert wrong == {}


def assert_run(document: Any) -> None:
    assert_shape(document, RUN)
    assert document["contract"] == 1
    assert document["status"] in ("succeeded", "failed", "skipped")
    for batch in document["batches"]:
        assert_shape(batch, BATCH)
        for step in batch["steps"]:
            assert_shape(step, STEP)
        for check in batch["checks"]:
            assert_shape(check, CHECK)
        for output in batch["outputs"]:
            assert_shape(output, OUTPUT)
            assert len({"table", "path"} & set(output)) == 1
    if document["error"] is not None:
        assert_shape(document["error"], ERROR)


@pytest.fixture
def shop(bench: Workbench) -> Workbench:
    bench.write("data/orders.csv", DATA)
    bench.pipeline("orders", ORDERS)
    return bench


def test_run_prints_one_document_with_every_field(shop: Workbench) -> None:
    answer = shop.cli("run", "orders", "--json")
    assert answer.code == 0
    document = json.loads(answer.stdout)
    assert_run(document)
    batch = document["batches"][0]
    assert (batch["n"], batch["id"], batch["state"]) == (1, None, "done")
    assert (batch["rows_read"], batch["rows_quarantined"], batch["rows_dropped"]) == (4, 2, 1)
    assert [(step["name"], step["type"]) for step in batch["steps"]] == [
        ("source", "csv"),
        ("typed", "cast"),
        ("paid", "filter"),
        ("not_null(id)", "not_null"),
    ]
    for step in batch["steps"]:
        lost = step["rows_in"] - step["rows"] - step["rows_quarantined"] - step["rows_dropped"]
        assert lost == 0, step
    assert document["error"] is None


def test_a_failed_run_prints_the_same_document_with_an_error(shop: Workbench) -> None:
    shop.write("data/orders.csv", DATA + "1,7\n")
    answer = shop.cli("run", "orders", "--json")
    document = answer.json
    assert_run(document)
    assert (answer.code, document["status"], document["error"]["code"]) == (1, "failed", "keys")
    assert document["run_id"]
    assert (document["batches"][0]["state"], document["batches"][0]["rows_read"]) == (
        "planned",
        None,
    )


@pytest.mark.parametrize(
    "arguments",
    [("nowhere",), ("orders", "--var", "day"), ("orders", "--profile", "prod"), ("wrong",)],
)
def test_a_run_that_never_began_has_no_id_and_says_why(
    shop: Workbench, arguments: tuple[str, ...]
) -> None:
    shop.pipeline("wrong", "extract: {type: cvs}\nload: {type: delta}\n")
    answer = shop.cli("run", *arguments, "--json")
    document = answer.json
    assert_run(document)
    assert (answer.code, document["run_id"], document["status"]) == (2, None, "failed")
    assert document["batches"] == []
    assert document["error"]["message"]


def test_a_skipped_run_says_so_and_exits_0(shop: Workbench) -> None:
    shop.run("orders", "--batch-id", "monday")
    answer = shop.cli("run", "orders", "--batch-id", "monday", "--json")
    assert_run(answer.json)
    assert (answer.code, answer.json["status"]) == (0, "skipped")
    assert answer.json["batches"][0]["id"] == "monday"


def test_run_all_prints_every_run_in_one_document_writers_first(shop: Workbench) -> None:
    shop.pipeline("exports", FILES)
    document = shop.cli("run", "--all", "--json").json
    assert [run["pipeline"] for run in document["runs"]] == ["orders", "exports"]
    for run in document["runs"]:
        assert_run(run)
        assert run["status"] == "succeeded"
    assert document["runs"][1]["batches"][0]["outputs"][0]["path"] == "exports/orders"


def test_run_all_with_a_wrong_file_runs_nothing_and_keeps_the_form(shop: Workbench) -> None:
    shop.pipeline("wrong", "extract: {type: cvs}\nload: {type: delta}\n")
    answer = shop.cli("run", "--all", "--json")
    assert (answer.code, answer.json["runs"]) == (2, [])
    assert_shape(answer.json["error"], ERROR)
    assert not (shop.root / "warehouse").exists()


def test_a_count_nobody_made_is_null_and_not_zero(shop: Workbench) -> None:
    shop.run("orders")
    shop.pipeline("exports", FILES)
    output = shop.run("exports")["batches"][0]["outputs"][0]
    assert output["version"] is None
    assert output["rows_unchanged"] is None
    assert output["rows_inserted"] == 1


def test_validate_lists_problems_with_their_places(desk: Workbench) -> None:
    desk.pipeline("orders", 'extract: {type: csv, pth: "x"}\nload: {type: delta, table: t}\n')
    answer = desk.cli("validate", "--json")
    document = answer.json
    assert (answer.code, document["ok"]) == (2, False)
    for problem in document["problems"]:
        assert_shape(problem, PROBLEM)
    assert [(p["code"], p["line"], p["path"]) for p in document["problems"]] == [
        ("missing_key", 2, "extract"),
        ("unknown_key", 2, "extract.pth"),
    ]
    assert desk.cli("validate", "nowhere", "--json").json["ok"] is False


def test_validate_of_good_files_is_ok_with_no_problems(shop: Workbench) -> None:
    answer = shop.cli("validate", "--json")
    assert (answer.code, answer.json) == (0, {"ok": True, "problems": [], "notes": []})


def test_plan_tells_stages_rows_and_statement(shop: Workbench) -> None:
    new = shop.cli("plan", "orders", "--json").json
    assert_shape(new, PLAN)
    assert_shape(new["outputs"][0], OUTPUT_PLAN)
    assert (new["outputs"][0]["exists"], new["outputs"][0]["rows_to_insert"]) == (False, 1)
    assert new["rows_to_quarantine"] == 2
    shop.run("orders")
    shop.write("data/orders.csv", "id,amount\n1,11\n5,6\n")
    known = shop.cli("plan", "orders", "--json").json["outputs"][0]
    assert_shape(known, OUTPUT_PLAN)
    assert known["sql"].startswith("MERGE INTO")
    rows = ("rows_to_insert", "rows_to_update", "rows_to_delete", "rows_unchanged")
    assert [known[name] for name in rows] == [1, 1, 0, 0]
    assert (known["strategy"], known["advice"]) == ("merge by delta-rs", None)
    assert known["files"] == {"scanned": 1, "skipped": 0, "rewritten": 1}


def test_plan_offline_knows_no_rows_and_says_null(shop: Workbench) -> None:
    document = shop.cli("plan", "orders", "--offline", "--json").json
    assert_shape(document, PLAN)
    assert_shape(document["outputs"][0], OUTPUT_PLAN)
    assert document["rows_to_quarantine"] is None
    assert document["outputs"][0]["exists"] is None
    assert document["outputs"][0]["rows_to_insert"] is None
    assert [stage["kind"] for stage in document["stages"]] == [
        "extract",
        "transform",
        "transform",
        "check",
        "load",
    ]


def tree(root: Path) -> dict[str, str]:
    """Every file and folder of a tree, with its content's hash and its time."""
    found = {}
    for path in sorted(root.rglob("*")):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = f"{content} {path.stat().st_mtime_ns}"
    return found


@pytest.mark.parametrize("option", [(), ("--offline",)])
def test_plan_changes_nothing_on_disk(shop: Workbench, option: tuple[str, ...]) -> None:
    before = tree(shop.root)
    assert shop.cli("plan", "orders", *option).code == 0
    assert tree(shop.root) == before  # not even a warehouse
    shop.run("orders")
    shop.write("data/orders.csv", "id,amount\n1,11\n5,6\n9,oops\n")
    before = tree(shop.root)
    assert shop.cli("plan", "orders", *option).code == 0
    assert tree(shop.root) == before


OFFLINE = """
import sys
from deltaworks.cli.app import answer
code = answer(["plan", "orders", "--offline", "--json", "--project", sys.argv[1]])
heavy = {"pyspark", "py4j", "pyarrow", "deltalake"} & set(sys.modules)
print(code, *sorted(heavy), file=sys.stderr)
"""


def test_plan_offline_loads_no_spark_and_starts_no_java(desk: Workbench) -> None:
    desk.pipeline("orders", ORDERS)
    child = [sys.executable, "-c", OFFLINE, str(desk.root)]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "0"
    assert json.loads(done.stdout)["offline"] is True


def test_table_show_and_history_have_every_field(shop: Workbench) -> None:
    run_id = shop.run("orders")["run_id"]
    shown = shop.cli("table", "show", "orders", "--json").json
    assert_shape(shown, TABLE)
    assert (shown["version"], shown["rows"], shown["files"]) == (0, 1, 1)
    assert shown["isolation"] == "Serializable"
    assert shown["schema"] == [
        {"name": "id", "type": "bigint", "nullable": True},
        {"name": "amount", "type": "double", "nullable": True},
    ]
    commits = shop.cli("table", "history", "orders", "--json").json["commits"]
    for commit in commits:
        assert_shape(commit, COMMIT)
    assert [(c["version"], c["run_id"], c["pipeline"], c["batch"]) for c in commits] == [
        (0, run_id, "orders", 1)
    ]


def test_rows_queries_and_lists_of_tables_have_every_field(desk: Workbench) -> None:
    write_deltalake(str(desk.table("orders")), pa.table({"id": [1, 2], "at": [None, "x"]}))
    for words in (("table", "rows", "orders"), ("sql", "SELECT * FROM orders")):
        document = desk.cli(*words, "--limit", "1", "--json").json
        assert_shape(document, ROWS)
        assert document["versions"] == {"orders": 0}
        assert document["columns"][0] == {"name": "id", "type": "bigint"}
        assert (document["rows"], document["more"]) == ([{"id": 1, "at": None}], True)
    (listed,) = desk.cli("table", "list", "--json").json["tables"]
    assert_shape(listed, LISTED)


def test_runs_list_and_show_give_the_documents_the_runs_printed(shop: Workbench) -> None:
    first = shop.run("orders")
    second = shop.run("orders")
    listed = shop.cli("runs", "list", "--json").json["runs"]
    assert [run["run_id"] for run in listed] == [second["run_id"], first["run_id"]]
    for run in listed:
        assert_run(run)
    assert shop.cli("runs", "show", first["run_id"], "--json").json == first


def test_checks_gives_what_the_runs_said_of_their_checks_and_when(shop: Workbench) -> None:
    first = shop.run("orders")
    second = shop.run("orders")
    document = shop.cli("checks", "orders", "--json").json
    assert set(document) == {"pipeline", "checks"}
    for check in document["checks"]:
        assert_shape(check, {**CHECK, "run_id": TEXT, "at": TEXT, "batch": (int,)})
    said = [run["batches"][-1]["checks"][0] for run in (first, second)]
    named = [(check["run_id"], check["rows_failed"]) for check in document["checks"]]
    assert named == [(first["run_id"], 1), (second["run_id"], 1)]
    assert [said[i].items() <= document["checks"][i].items() for i in (0, 1)] == [True, True]


def test_errors_of_other_commands_are_one_document_too(desk: Workbench) -> None:
    for arguments in (
        ("plan", "nowhere"),
        ("table", "show", "nowhere"),
        ("table", "history", "nowhere"),
        ("table", "rows", "nowhere"),
        ("sql", "SELECT * FROM nowhere"),
        ("runs", "show", "nowhere"),
        ("checks", "nowhere"),
        ("quarantine", "list", "nowhere"),
        ("init", "missing", "--folder"),
        ("plan", "orders", "--offlin"),
    ):
        answer = desk.cli(*arguments, "--json")
        assert answer.code in (1, 2)
        assert_shape(answer.json["error"], ERROR)
