"""Incremental runs over files: only what is new, each file once (P7 for files, B3)."""

from __future__ import annotations

import pytest

from tests.faults.test_batches import committed, cut_run, ids
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
