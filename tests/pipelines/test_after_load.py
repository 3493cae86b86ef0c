"""What a pipeline asks to be done to its table once a batch is in (P6)."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable

from tests.workbench import Workbench

PIPELINE = """
extract: {{type: csv, path: "in/*.csv", schema: "id int, v int", incremental: true}}
load: {{type: delta, table: t, mode: append, after_load: {{{asked}}}{more}}}
"""


def load(bench: Workbench, name: str, asked: str, more: str = "") -> Any:
    """Load one file of a few rows."""
    bench.pipeline("p", PIPELINE.format(asked=asked, more=more))
    rows = "".join(f"{i},{i % 3}\n" for i in range(9))
    bench.write(f"in/{name}.csv", f"id,v\n{rows}")
    return bench.run("p")["batches"][0]["outputs"][0]


def test_small_files_are_joined_and_the_commit_says_for_whom(bench: Workbench) -> None:
    first = load(bench, "a", "optimize: true")
    assert first["maintenance"] == [
        {
            "operation": "optimize",
            "version": None,
            "files_added": 0,
            "files_removed": 0,
            "note": "",
        }
    ]
    second = load(bench, "b", "optimize: true")
    assert second["version"] == 1
    (done,) = second["maintenance"]
    assert (done["version"], done["files_added"], done["files_removed"]) == (2, 1, 2)
    assert len(DeltaTable(str(bench.table("t"))).file_uris()) == 1
    newest = bench.cli("table", "history", "t", "--json").json["commits"][0]
    assert (newest["operation"], newest["pipeline"]) == ("OPTIMIZE", "p")
    assert len(bench.rows("t")) == 18


def test_the_next_batch_lands_as_if_nothing_had_happened(bench: Workbench) -> None:
    for name in ("a", "b", "c"):
        load(bench, name, "z_order: [v]")
    assert len(bench.rows("t")) == 27
    assert bench.run("p")["status"] == "skipped"


def test_vacuum_removes_only_what_is_old_enough(bench: Workbench) -> None:
    load(bench, "a", "optimize: true")
    done = load(bench, "b", "optimize: true, vacuum: true")["maintenance"]
    assert [step["operation"] for step in done] == ["optimize", "vacuum"]
    assert done[1]["files_removed"] == 0
    assert "vacuum: 0 files removed" in bench.cli("run", "p", "--again", "--full-refresh").stdout


def test_a_table_that_keeps_too_little_is_not_vacuumed_and_the_load_stands(
    bench: Workbench,
) -> None:
    short = ', properties: {delta.deletedFileRetentionDuration: "interval 1 hours"}'
    (done,) = load(bench, "a", "vacuum: true", short)["maintenance"]
    assert "below 7 days" in done["note"]
    assert len(bench.rows("t")) == 9


def test_what_fails_after_the_load_is_told_and_the_rows_are_in(bench: Workbench) -> None:
    found = load(bench, "a", "z_order: [v]", ", stats_columns: [id]")
    assert found["committed"]
    assert "v" in found["maintenance"][0]["note"]
    assert len(bench.rows("t")) == 9


def test_a_column_that_is_not_there_is_named_before_anything_is_written(bench: Workbench) -> None:
    bench.pipeline("p", PIPELINE.format(asked="z_order: [vv]", more=""))
    bench.write("in/a.csv", "id,v\n1,1\n")
    answered = bench.fail("p")
    assert '"vv"' in answered.stderr
    assert "z_order" in answered.stderr
    assert bench.version("t") is None


@pytest.mark.parametrize(
    ("asked", "more", "words"),
    [
        ("", "", "says nothing"),
        ("z_order: [v]", ", cluster_by: [v]", 'needs no "z_order"'),
        ("z_order: [v]", ", partition_by: [v]", "it makes folders"),
        ("optimise: true", "", '"optimise"'),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused_before_anything_runs(
    desk: Workbench, asked: str, more: str, words: str
) -> None:
    path = desk.pipeline("p", PIPELINE.format(asked=asked, more=more))
    answered = desk.cli("validate", str(path), "--json")
    assert answered.code == 2
    assert words in answered.json["problems"][0]["message"]
