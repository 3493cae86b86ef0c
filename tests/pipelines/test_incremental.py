"""Incremental runs over files: only what is new, each file once (P7 for files, B3)."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from deltaworks.model.events import Event
from tests.faults.test_batches import about_to_load, committed, cut_run, ids
from tests.workbench import Workbench

APPEND = """
extract: {type: csv, path: "data/*.csv", schema: "id bigint, v string", incremental: true}
load: {type: delta, table: t, mode: append}
"""
UPSERT = APPEND.replace("mode: append", "mode: upsert, merge_keys: id")
TWO_SINKS = """
extract: {type: csv, path: "data/*.csv", schema: "id bigint, v string", incremental: true}
load:
  - {name: first, type: delta, table: t, mode: append}
  - {name: second, type: delta, table: u, mode: append}
"""


def test_only_new_files_are_read(bench: Workbench) -> None:
    bench.write("data/1.csv", "id,v\n1,a\n")
    bench.pipeline("t", APPEND)
    bench.run("t")
    bench.write("data/2.csv", "id,v\n2,b\n")
    assert bench.run("t")["batches"][0]["rows_read"] == 1
    quiet = bench.run("t")
    assert quiet["status"] == "skipped"
    assert "nothing is new" in quiet["notes"][0]
    assert ids(bench, "t") == [1, 2]


def test_a_changed_file_is_read_again_by_an_upsert(bench: Workbench) -> None:
    bench.write("data/1.csv", "id,v\n1,a\n")
    bench.write("data/2.csv", "id,v\n2,b\n")
    bench.pipeline("t", UPSERT)
    bench.run("t")
    bench.write("data/1.csv", "id,v\n1,new\n")
    assert bench.run("t")["batches"][0]["rows_read"] == 1
    assert {row["id"]: row["v"] for row in bench.rows("t")} == {1: "new", 2: "b"}


def test_a_changed_file_stops_an_append_with_the_choices(bench: Workbench) -> None:
    bench.write("data/1.csv", "id,v\n1,a\n")
    bench.pipeline("t", APPEND)
    bench.run("t")
    bench.write("data/1.csv", "id,v\n1,a\n9,z\n")
    answer = bench.fail("t")
    assert answer.code == 5
    assert "has changed since" in answer.stderr
    bench.run("t", "--full-refresh")
    assert ids(bench, "t") == [1, 9]
    assert bench.run("t")["status"] == "skipped"


@pytest.mark.parametrize("pipeline", [APPEND, TWO_SINKS], ids=["one sink", "two sinks"])
def test_a_cut_batch_is_finished_before_newer_files_are_read(
    bench: Workbench, pipeline: str
) -> None:
    bench.write("data/1.csv", "id,v\n1,a\n")
    bench.pipeline("t", pipeline)
    cut_run(bench, "t", committed)
    bench.write("data/2.csv", "id,v\n2,b\n")
    result = bench.run("t")
    assert [batch["n"] for batch in result["batches"]] == [1, 2]
    assert ids(bench, "t") == [1, 2]
    if pipeline is TWO_SINKS:
        assert ids(bench, "u") == [1, 2]


@pytest.mark.usefixtures("jvm")
def test_the_same_files_are_read_once_wherever_and_however_they_are_named(tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "shop")
    bench.write("data/1.csv", "id,v\n1,a\n")
    bench.pipeline("t", APPEND)
    bench.run("t")
    bench.pipeline("t", APPEND.replace("data/*.csv", "./data/?.csv"))
    assert bench.run("t")["status"] == "skipped"
    named = APPEND.replace("{type: csv", "{orders: {type: csv").replace("true}", "true}}")
    bench.pipeline("t", named)
    assert bench.run("t")["status"] == "skipped"
    bench.root.rename(tmp_path / "elsewhere")
    moved = Workbench(tmp_path / "elsewhere")
    assert moved.run("t")["status"] == "skipped"
    moved.write("data/2.csv", "id,v\n2,b\n")
    assert moved.run("t")["batches"][0]["rows_read"] == 1
    assert moved.run("t")["status"] == "skipped"  # what was read under the old name still counts
    assert ids(moved, "t") == [1, 2]


@pytest.mark.usefixtures("jvm")
def test_a_batch_that_landed_in_one_sink_is_finished_in_a_project_that_moved(
    tmp_path: Path,
) -> None:
    bench = Workbench(tmp_path / "shop")
    bench.write("data/1.csv", "id,v\n1,a\n")
    bench.pipeline("t", TWO_SINKS)
    cut_run(bench, "t", committed)
    bench.root.rename(tmp_path / "elsewhere")
    moved = Workbench(tmp_path / "elsewhere")
    moved.run("t")
    assert (ids(moved, "t"), ids(moved, "u")) == ([1], [1])


SLOW = """
extract: {type: csv, path: "data/*.csv", schema: "id bigint, v string", incremental: true}
transform: [{type: python, function: "slow.py:slow", row: true, schema: "id bigint, v string"}]
load: {type: delta, table: t, mode: append}
"""


@pytest.mark.parametrize("way", ["renamed over it", "written into it"])
def test_a_file_that_is_exchanged_while_spark_reads_it_stops_the_run(
    bench: Workbench, way: str
) -> None:
    """Spark opens it long after the plan looked at it, and commits by itself."""
    bench.write("slow.py", "import time\ndef slow(row):\n    time.sleep(2)\n    return row\n")
    path = bench.write("data/1.csv", "id,v\n1,planned\n2,planned\n")
    bench.pipeline("t", SLOW)
    new = bench.write("new.csv", "id,v\n1,another\n2,another\n")

    def exchange() -> None:
        if way == "renamed over it":
            new.rename(path)
        else:
            path.write_text(new.read_text())

    def listen(event: Event) -> None:
        if about_to_load(event):
            threading.Timer(0.5, exchange).start()

    result = bench.open(listeners=[listen]).run("t")
    assert result.error is not None
    assert "changed while it was read" in result.error.message
    assert "data/1.csv" in result.error.message
    assert bench.version("t") is None
    time.sleep(4)  # the cancelled task still sleeps, and removes its file when it ends
    bench.write("slow.py", "def slow(row):\n    return row\n")
    bench.run("t")
    assert [row["v"] for row in bench.rows("t")] == ["another", "another"]


DELTA = """
extract: {{type: delta, table: raw, incremental: true{switch}}}
load: {{type: delta, table: copy, mode: append}}
"""


def raw_table(bench: Workbench, switch: str = "") -> str:
    """A source table of our own making, with two rows, and a pipeline that follows it."""
    import pyarrow as pa
    from deltalake import write_deltalake

    path = str(bench.table("raw"))
    write_deltalake(path, pa.table({"id": [1, 2]}))
    bench.pipeline("copy", DELTA.format(switch=switch))
    bench.run("copy")
    return path


def test_only_rows_added_to_a_delta_table_are_read(bench: Workbench) -> None:
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    path = raw_table(bench)
    write_deltalake(path, pa.table({"id": [3]}), mode="append")
    DeltaTable(path).optimize.compact()
    write_deltalake(path, pa.table({"id": [4]}), mode="append")
    assert bench.run("copy")["batches"][0]["rows_read"] == 2
    assert ids(bench, "copy") == [1, 2, 3, 4]
    assert bench.run("copy")["status"] == "skipped"


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        ("", None),
        (", skip_change_commits: true", [1, 2, 9]),
        (", ignore_changes: true", [1, 1, 2, 9]),
        (", ignore_deletes: true", None),
    ],
)
def test_deleted_rows_stop_an_increment_unless_a_switch_says_what_they_mean(
    bench: Workbench, switch: str, expected: list[int] | None
) -> None:
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    path = raw_table(bench, switch)
    DeltaTable(path).delete("id = 2")
    write_deltalake(path, pa.table({"id": [9]}), mode="append")
    if expected is None:
        answer = bench.fail("copy")
        assert answer.code == 5
        assert "skip_change_commits" in answer.stderr
        assert ids(bench, "copy") == [1, 2]
    else:
        bench.run("copy")
        assert ids(bench, "copy") == expected


def test_a_cleaned_up_history_stops_an_increment_with_the_choices(bench: Workbench) -> None:
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    path = raw_table(bench)
    for i in (3, 4):
        write_deltalake(path, pa.table({"id": [i]}), mode="append")
    DeltaTable(path).create_checkpoint()
    for version in (0, 1):
        (bench.table("raw") / "_delta_log" / f"{version:020d}.json").unlink()
    answer = bench.fail("copy")
    assert answer.code == 5
    assert "history was cleaned up" in answer.stderr
    bench.run("copy", "--full-refresh")
    assert ids(bench, "copy") == [1, 2, 3, 4]


LOAD_TWO = "load:\n- {type: delta, table: first}\n- {type: delta, table: second}\n"
LOAD_ONE = "load: {type: delta, table: first}\n"
FILES = 'extract: {type: csv, path: "in/*.csv", schema: "id int", incremental: true}\n'
CHECK = 'checks:\n  - {type: expression, rule: "id <> 9", on_fail: quarantine}\n'


@pytest.mark.parametrize(("choice", "expected"), [("backfill", [1, 2, 3]), ("from-now", [3])])
def test_a_sink_that_is_added_later_is_asked_for_once(
    bench: Workbench, choice: str, expected: list[int]
) -> None:
    bench.pipeline("p", FILES + CHECK + LOAD_ONE)
    for name in ("1", "2"):
        bench.write(f"in/{name}.csv", f"id\n{name}\n9\n")
        bench.run("p")
    bench.pipeline("p", FILES + CHECK + LOAD_TWO)
    bench.write("in/3.csv", "id\n3\n")
    refused = bench.fail("p")
    assert (refused.code, "--new-sinks backfill" in refused.stderr) == (5, True)
    bench.run("p", "--new-sinks", choice)
    assert [row["id"] for row in bench.rows("second")] == expected
    assert [row["id"] for row in bench.rows("first")] == [1, 2, 3]
    groups = bench.cli("quarantine", "list", "--json").json["groups"]
    assert [group["batch"] for group in groups] == [1, 2]  # a backfill sets nothing aside again
    bench.write("in/4.csv", "id\n4\n")
    bench.run("p")
    assert [row["id"] for row in bench.rows("second")] == [*expected, 4]


def test_a_backfill_needs_what_was_read(bench: Workbench) -> None:
    bench.pipeline("p", FILES + LOAD_ONE)
    bench.write("in/1.csv", "id\n1\n")
    bench.run("p")
    (bench.root / "in/1.csv").unlink()
    bench.write("in/2.csv", "id\n2\n")
    bench.pipeline("p", FILES + LOAD_TWO)
    refused = bench.fail("p", "--new-sinks", "backfill")
    assert (refused.code, "is gone" in refused.stderr) == (5, True)
    bench.run("p", "--new-sinks", "from-now")
    assert [row["id"] for row in bench.rows("second")] == [2]


def test_increments_start_where_the_caller_says(bench: Workbench) -> None:
    import os

    for name, day in (("1", 1), ("2", 5)):
        path = bench.write(f"in/{name}.csv", f"id\n{name}\n")
        os.utime(path, (1767225600 + day * 86400,) * 2)
    bench.pipeline("p", FILES + LOAD_ONE)
    bench.run("p", "--from", "2026-01-03")
    assert [row["id"] for row in bench.rows("first")] == [2]
    assert bench.run("p")["status"] == "skipped"  # what was passed over stays so
    nothing = bench.run("p", "--from", "2026-03-01")
    assert nothing["status"] == "succeeded"
    assert nothing["notes"] == ["nothing to load from 2026-03-01 on; later runs go on from there"]
    assert bench.run("p")["status"] == "skipped"  # and what is older stays passed over
    bench.pipeline(
        "q",
        "extract: {type: delta, table: first, incremental: true}\nload: {type: delta, table: q}\n",
    )
    os.utime(bench.root / "in/1.csv")
    bench.run("p", "--from", "2026-02-01")
    bench.run("q", "--from", "1")
    assert [row["id"] for row in bench.rows("q")] == [1]
    bench.run("q", "--from", "0")
    assert [row["id"] for row in bench.rows("q")] == [1, 1, 2]
    for arguments, words in ((("p", "--from", "soon"), "is not a timestamp"),):
        refused = bench.fail(*arguments)
        assert (refused.code, words in refused.stderr) == (2, True)
    bench.pipeline("r", FILES.replace(", incremental: true", "") + LOAD_ONE)
    assert "reads increments" in bench.fail("r", "--from", "2026-01-01").stderr


BESIDE = """
extract:
  a: {type: csv, path: a, schema: "id int", incremental: true}
  b: {type: csv, path: "b/*.csv", SCHEMA incremental: true}
transform: [{type: union, input: a, with: b}]
load: {type: delta, table: t}
"""


def test_an_empty_inbox_beside_another_gives_no_rows_where_its_columns_are_known(
    bench: Workbench,
) -> None:
    bench.write("a/1.csv", "id\n1\n")
    (bench.root / "b").mkdir()
    bench.pipeline("t", BESIDE.replace("SCHEMA", ""))
    answer = bench.fail("t")
    assert (answer.code, "nothing tells its columns" in answer.stderr) == (1, True)
    bench.pipeline("t", BESIDE.replace("SCHEMA", 'schema: "id int",'))
    assert bench.run("t")["batches"][-1]["rows_read"] == 1
    bench.write("b/1.csv", "id\n2\n")
    assert bench.run("t")["batches"][0]["rows_read"] == 1
    assert ids(bench, "t") == [1, 2]
