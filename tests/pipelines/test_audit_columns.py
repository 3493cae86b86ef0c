"""`audit_columns: true`: rows say which run and batch wrote them, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest

from deltaworks.engines.deltars.tables import DeltaRsEngine
from tests.workbench import Workbench

pytestmark = pytest.mark.spark

HEAD = """
extract: {type: csv, path: in.csv, schema: "id bigint, v string, note string"}
checks: [{type: expression, rule: "v <> 'bad'", on_fail: quarantine}]
load: {type: delta, table: t, SINK}
"""
ON = "audit_columns: true\n"


def written(bench: Workbench, table: str = "t") -> dict[int, tuple[Any, ...]]:
    return {
        row["id"]: (row["v"], row.get("_run_id"), row.get("_batch")) for row in bench.rows(table)
    }


def test_an_upsert_stamps_what_it_writes_and_compares_only_the_rest(bench: Workbench) -> None:
    merge = HEAD.replace("SINK", "mode: upsert, merge_keys: [id], update_columns: [v]")
    bench.pipeline("p", merge)
    bench.write("in.csv", "id,v,note\n1,a,x\n2,b,x\n3,bad,x\n")
    bench.run("p")
    bench.pipeline("p", merge + ON)
    planned = bench.open().plan("p").outputs[0]
    assert [change.column for change in planned.schema_changes] == ["_run_id", "_batch"]
    assert (planned.rows_to_update, planned.rows_unchanged) == (0, 2)
    assert planned.sql.startswith("MERGE WITH SCHEMA EVOLUTION INTO")  # as the run below does it
    assert "SET `v` = source.`v`, `_run_id` = source.`_run_id`, `_batch` = " in planned.sql
    assert "INSERT (`id`, `v`, `note`, `_run_id`, `_batch`)" in planned.sql
    bench.run("p")  # the two columns come without being asked for; no row is taken for changed
    assert written(bench) == {1: ("a", None, None), 2: ("b", None, None)}
    version = bench.version("t")
    same = bench.run("p")["batches"][0]["outputs"][0]
    assert (same["committed"], bench.version("t")) == (False, version)
    bench.write("in.csv", "id,v,note\n1,a,y\n2,c,y\n4,d,y\n")
    changed = bench.run("p")
    stamp = (changed["run_id"], changed["batches"][0]["n"])
    assert written(bench) == {1: ("a", None, None), 2: ("c", *stamp), 4: ("d", *stamp)}
    info = DeltaRsEngine().info(str(bench.table("t")))
    assert info is not None
    assert "deltaworks.audit" not in info.schema.document
    assert [c["type"] for c in info.schema.to_json()[-2:]] == ["string", "bigint"]
    choice = ("--batch", "1", "--set", "v='good'")
    replayed = bench.cli("quarantine", "replay", "p", *choice, "--json", "--quiet").json
    assert written(bench)[3] == ("good", replayed["run_id"], replayed["batches"][0]["n"])


def test_appends_overwrites_and_readers_of_such_tables(bench: Workbench) -> None:
    bench.pipeline("p", HEAD.replace("SINK", "mode: append, partition_by: [_batch]") + ON)
    bench.write("in.csv", "id,v,note\n1,a,x\n")
    first = bench.run("p")
    bench.write("in.csv", "id,v,note\n2,b,x\n")
    second = bench.run("p")
    assert written(bench) == {1: ("a", first["run_id"], 1), 2: ("b", second["run_id"], 2)}
    copy = "extract: {type: delta, table: t}\nload: {type: delta, table: copy, mode: MODE}\n"
    bench.pipeline("copy", copy.replace("MODE", "overwrite") + ON)
    copied = bench.run("copy")["run_id"]
    assert written(bench, "copy") == {1: ("a", copied, 1), 2: ("b", copied, 1)}
    bench.pipeline("copy", copy.replace("MODE", "upsert, merge_keys: [id]"))  # as data, compared
    bench.run("copy")
    assert written(bench, "copy") == written(bench)


def test_history_gets_no_version_because_of_them(bench: Workbench) -> None:
    bench.pipeline("p", HEAD.replace("SINK", "mode: scd2, merge_keys: [id]"))
    bench.write("in.csv", "id,v,note\n1,a,x\n2,b,x\n")
    bench.run("p")
    bench.pipeline("p", HEAD.replace("SINK", "mode: scd2, merge_keys: [id]") + ON)
    bench.run("p")
    assert len(bench.rows("t")) == 2
    version = bench.version("t")
    bench.run("p")
    assert bench.version("t") == version
    bench.write("in.csv", "id,v,note\n1,a,x\n2,c,x\n")
    run = bench.run("p")
    found = {(row["id"], row["v"], row["is_current"], row["_run_id"]) for row in bench.rows("t")}
    assert found == {
        (1, "a", True, None),
        (2, "b", False, None),
        (2, "c", True, run["run_id"]),
    }


def test_the_key_is_true_or_false(desk: Workbench) -> None:
    desk.pipeline("p", HEAD.replace(", SINK", "") + "audit_columns: perhaps\n")
    answer = desk.cli("validate", "p")
    assert answer.code == 2
    assert '"audit_columns" must be true or false' in answer.stderr
