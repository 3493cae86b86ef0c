"""Ledgers that are lost, pipelines that are renamed, rows that move: right, or the choices."""

from __future__ import annotations

import shutil

from tests.workbench import Workbench

APPEND = """
extract: {type: csv, path: "in/*.csv", schema: "id int, v string", incremental: true}
load: {type: delta, table: t}
"""
UPSERT = """
extract: {type: csv, path: "in/*.csv", schema: "id int, country string", incremental: true}
load: {type: delta, table: t, mode: upsert, merge_keys: [id], partition_by: [country]}
"""


def ids(bench: Workbench) -> list[int]:
    return sorted(row["id"] for row in bench.rows("t"))


def test_a_lost_ledger_stops_an_append_with_the_choices(bench: Workbench) -> None:
    bench.pipeline("p", APPEND)
    bench.write("in/a.csv", "id,v\n1,a\n")
    bench.run("p")
    shutil.rmtree(bench.root / "warehouse" / "_deltaworks")
    bench.write("in/b.csv", "id,v\n2,b\n")
    answered = bench.fail("p")
    assert answered.code == 5
    assert "holds batches of this pipeline, and the ledger knows of none" in answered.stderr
    assert "--full-refresh" in answered.stderr
    assert ids(bench) == [1]
    bench.run("p", "--full-refresh")
    assert ids(bench) == [1, 2]
    bench.write("in/c.csv", "id,v\n3,c\n")
    bench.run("p")
    assert ids(bench) == [1, 2, 3]


def test_a_lost_ledger_does_not_matter_where_everything_is_replaced(bench: Workbench) -> None:
    text = APPEND.replace(", incremental: true", "").replace(
        "table: t", "table: t, mode: overwrite"
    )
    bench.pipeline("p", text)
    bench.write("in/a.csv", "id,v\n1,a\n")
    bench.run("p")
    shutil.rmtree(bench.root / "warehouse" / "_deltaworks")
    bench.run("p")
    assert ids(bench) == [1]


def test_a_lost_ledger_stops_files_from_being_added_twice(bench: Workbench) -> None:
    bench.pipeline("p", APPEND.replace("delta, table: t", "parquet, path: out, mode: append"))
    bench.write("in/a.csv", "id,v\n1,a\n")
    bench.run("p")
    shutil.rmtree(bench.root / "warehouse" / "_deltaworks")
    answered = bench.fail("p")
    assert answered.code == 5
    assert '"out" holds batches of this pipeline' in answered.stderr


def test_a_table_that_others_made_is_no_sign_of_a_lost_ledger(bench: Workbench) -> None:
    bench.pipeline("other", APPEND)
    bench.pipeline("p", APPEND)
    bench.write("in/a.csv", "id,v\n1,a\n")
    bench.run("other")
    bench.run("p")
    assert ids(bench) == [1, 1]


def test_a_pipeline_that_is_renamed_and_made_anew_skips_nothing(bench: Workbench) -> None:
    bench.pipeline("p", APPEND)
    bench.write("in/a.csv", "id,v\n1,a\n")
    bench.run("p", "--batch-id", "monday")
    bench.pipeline("q", APPEND)
    assert bench.run("q", "--batch-id", "monday")["status"] == "succeeded"
    bench.pipeline("p", APPEND.replace("in/*.csv", "more/*.csv"))
    bench.write("more/b.csv", "id,v\n2,b\n")
    assert bench.run("p")["status"] == "succeeded"
    assert ids(bench) == [1, 1, 2]


def test_a_row_that_moves_to_another_partition_is_there_once(bench: Workbench) -> None:
    bench.pipeline("p", UPSERT)
    bench.write("in/a.csv", "id,country\n1,NL\n2,NL\n")
    bench.run("p")
    bench.write("in/b.csv", "id,country\n1,DE\n")
    output = bench.run("p")["batches"][0]["outputs"][0]
    assert (output["rows_inserted"], output["rows_updated"]) == (0, 1)
    assert {row["id"]: row["country"] for row in bench.rows("t")} == {1: "DE", 2: "NL"}
    assert bench.run("p")["status"] == "skipped"
