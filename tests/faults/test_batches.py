"""Nothing lost, nothing twice: what a run does after one that was cut off (P11, B3).

A cut is a listener that raises past everything at a named event: what is on disk then is what a
killed process leaves there, while the shared JVM lives on.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from deltaworks.api import Project
from deltaworks.model.events import BatchPlanned, Committed, Event, RunFinished, StageStarted
from deltaworks.model.results import RunResult
from deltaworks.runtime.ledger.table import Ledger
from tests.workbench import Workbench

APPEND = """
extract: {type: csv, path: "data/in.csv", schema: "id bigint, v string"}
checks: [{type: not_null, columns: [v], on_fail: quarantine}]
load: {type: delta, table: t, mode: append}
"""
UPSERT = """
extract: {type: csv, path: "data/in.csv", schema: "id bigint, v string"}
load: {type: delta, table: t, mode: upsert, merge_keys: id}
"""
TWO_SINKS = """
extract: {type: csv, path: "data/in.csv", schema: "id bigint, v string"}
load:
  - {name: first, type: delta, table: t, mode: append}
  - {name: second, type: delta, table: u, mode: append}
"""
ROWS = "id,v\n1,a\n2,b\n3,\n"


class Cut(BaseException):
    """The end of the process, as far as the run can tell."""


def cut_at(wanted: Callable[[Event], bool]) -> Callable[[Event], None]:
    def listen(event: Event) -> None:
        if wanted(event):
            raise Cut

    return listen


def planned(event: Event) -> bool:
    return isinstance(event, BatchPlanned)


def about_to_load(event: Event) -> bool:
    return isinstance(event, StageStarted) and event.kind == "load"


def committed(event: Event) -> bool:
    return isinstance(event, Committed)


def done(event: Event) -> bool:
    return isinstance(event, RunFinished)


PHASES = {f.__name__: f for f in (planned, about_to_load, committed, done)}


def cut_run(bench: Workbench, name: str, phase: Callable[[Event], bool], **options: Any) -> None:
    with pytest.raises(Cut):
        bench.open(listeners=[cut_at(phase)]).run(name, **options)


def ids(bench: Workbench, table: str) -> list[int]:
    return sorted(row["id"] for row in bench.rows(table))


def states(project: Project, pipeline: str) -> list[str]:
    config = project.config
    ledger = Ledger.open(config.warehouse, project=config.project_id, pipeline=pipeline)
    return [entry.state for entry in ledger.state().batches]


@pytest.mark.parametrize("phase", PHASES)
def test_an_append_cut_anywhere_lands_once(bench: Workbench, phase: str) -> None:
    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", APPEND)
    cut_run(bench, "t", PHASES[phase])
    bench.run("t")
    bench.run("t")
    assert ids(bench, "t") == [1, 2]
    assert len(bench.rows("t__quarantine")) == 1
    assert bench.version("t") == 0
    assert states(bench.open(), "t") == ["done"]


@pytest.mark.parametrize("phase", ["planned", "committed"])
def test_an_upsert_cut_anywhere_ends_in_the_same_state(bench: Workbench, phase: str) -> None:
    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", UPSERT)
    bench.run("t")
    bench.write("data/in.csv", "id,v\n2,new\n4,d\n")
    cut_run(bench, "t", PHASES[phase])
    bench.run("t")
    assert {row["id"]: row["v"] for row in bench.rows("t")} == {1: "a", 2: "new", 3: None, 4: "d"}
    assert bench.version("t") == 1


def test_a_batch_cut_between_two_sinks_is_finished_in_the_other_one(bench: Workbench) -> None:
    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", TWO_SINKS)
    cut_run(bench, "t", committed)
    assert (bench.version("t"), bench.version("u")) == (0, None)
    result = bench.run("t")
    assert "finished now" in result["notes"][0]
    assert ids(bench, "t") == ids(bench, "u") == [1, 2, 3]
    assert (bench.version("t"), bench.version("u")) == (0, 0)


KNOWN = TWO_SINKS + "checks: [{type: references, table: known, columns: id, on_fail: quarantine}]\n"
PEOPLE = """
extract: {type: csv, path: "data/known.csv", schema: "id bigint"}
load: {type: delta, table: known, mode: overwrite}
"""


def test_a_batch_is_finished_with_the_tables_its_checks_looked_into(bench: Workbench) -> None:
    bench.write("data/in.csv", ROWS)
    bench.write("data/known.csv", "id\n1\n2\n")
    bench.pipeline("people", PEOPLE)
    bench.pipeline("t", KNOWN)
    bench.run("people")
    cut_run(bench, "t", committed)
    bench.write("data/known.csv", "id\n3\n")
    bench.run("people")
    bench.run("t")
    assert ids(bench, "t") == ids(bench, "u") == [1, 2]  # as known when the batch was planned
    assert len(bench.rows("t__quarantine")) == 1
    assert bench.run("t")["status"] == "skipped"  # what is known now is no reason to append again
    bench.run("t", "--again")
    assert ids(bench, "t") == [1, 2, 3]
    cut_run(bench, "t", committed, again=True)
    shutil.rmtree(bench.table("known"))
    bench.run("people", "--full-refresh")
    answer = bench.fail("t")
    assert answer.code == 5
    assert "is another table now" in answer.stderr
    shutil.rmtree(bench.table("known"))
    assert "is not a Delta table" in bench.fail("t").stderr


def test_a_half_landed_batch_whose_file_changed_is_refused_with_the_choices(
    bench: Workbench,
) -> None:
    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", TWO_SINKS)
    cut_run(bench, "t", committed)
    bench.write("data/in.csv", "id,v\n9,z\n")
    answer = bench.fail("t")
    assert answer.code == 5
    assert "landed in some of its sinks only" in answer.stderr
    assert "--full-refresh" in answer.stderr
    bench.run("t", "--full-refresh")
    assert ids(bench, "t") == ids(bench, "u") == [9]


def test_a_batch_that_landed_nowhere_is_given_up_when_its_file_changed(bench: Workbench) -> None:
    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", APPEND)
    cut_run(bench, "t", about_to_load)
    assert len(bench.rows("t__quarantine")) == 1
    bench.write("data/in.csv", "id,v\n7,x\n")
    result = bench.run("t")
    assert "given up" in result["notes"][0]
    assert ids(bench, "t") == [7]
    assert bench.rows("t__quarantine") == []
    assert states(bench.open(), "t") == ["abandoned", "done"]


def test_the_same_append_again_is_skipped_unless_asked_for(bench: Workbench) -> None:
    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", APPEND)
    bench.run("t")
    again = bench.run("t")
    assert again["status"] == "skipped"
    assert "--again" in again["notes"][0]
    assert ids(bench, "t") == [1, 2]
    bench.run("t", "--again")
    assert ids(bench, "t") == [1, 1, 2, 2]


def test_a_batch_id_lands_once_whatever_the_file_holds(bench: Workbench) -> None:
    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", APPEND)
    bench.run("t", "--batch-id", "monday")
    bench.write("data/in.csv", "id,v\n7,x\n")
    skipped = bench.run("t", "--batch-id", "monday")
    assert skipped["status"] == "skipped"
    bench.run("t", "--batch-id", "tuesday")
    assert ids(bench, "t") == [1, 2, 7]


def test_a_failed_check_gives_the_batch_up_and_leaves_no_trace(bench: Workbench) -> None:
    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", APPEND.replace("quarantine", "fail"))
    assert bench.fail("t").code == 3
    assert bench.version("t") is None
    assert states(bench.open(), "t") == ["abandoned"]


@pytest.mark.parametrize("harm", ["deleted", "recreated", "restored"])
def test_a_table_changed_by_hand_is_refused_with_the_choices(bench: Workbench, harm: str) -> None:
    from deltalake import DeltaTable, write_deltalake

    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", APPEND)
    bench.run("t")
    bench.run("t", "--again")
    path = str(bench.table("t"))
    if harm == "restored":
        DeltaTable(path).restore(0)
    else:
        old = DeltaTable(path).to_pyarrow_table()
        shutil.rmtree(path)
        if harm == "recreated":
            write_deltalake(path, old)
    before = bench.version("t")
    answer = bench.fail("t", "--again")
    assert answer.code == 5
    assert "--full-refresh" in answer.stderr
    assert bench.version("t") == before
    bench.run("t", "--full-refresh")
    assert ids(bench, "t") == [1, 2]


def test_a_full_refresh_replaces_and_the_next_run_goes_on(bench: Workbench) -> None:
    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", APPEND)
    bench.run("t")
    bench.write("data/in.csv", "id,v\n7,x\n")
    bench.run("t")
    assert "has changed (batch 1)" in bench.fail("t", "--full-refresh").stderr
    bench.run("t", "--full-refresh", "--drop-history")
    assert ids(bench, "t") == [7]
    assert bench.run("t")["status"] == "skipped"
    bench.write("data/in.csv", "id,v\n8,x\n")
    bench.run("t")
    assert ids(bench, "t") == [7, 8]


def test_two_projects_with_one_pipeline_name_share_a_table(bench: Workbench) -> None:
    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", APPEND)
    bench.run("t")
    bench.write("deltaworks.yaml", "project: other\nwarehouse: ./warehouse\n")
    result: RunResult = bench.open().run("t")
    assert result.status == "succeeded"
    assert ids(bench, "t") == [1, 1, 2, 2]


def test_an_unfinished_batch_can_be_resumed_by_its_run(bench: Workbench) -> None:
    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", TWO_SINKS)
    cut_run(bench, "t", committed)
    run_id = bench.cli("runs", "list", "--json").json["runs"][0]["run_id"]
    refused = bench.cli("runs", "abandon", run_id)
    assert refused.code == 5
    assert "has landed in first" in refused.stderr
    assert bench.cli("runs", "resume", run_id, "--quiet").code == 0
    assert ids(bench, "t") == ids(bench, "u") == [1, 2, 3]
    assert bench.cli("runs", "resume", run_id, "--quiet").code == 5


def test_an_unfinished_batch_that_landed_nowhere_can_be_given_up(bench: Workbench) -> None:
    bench.write("data/in.csv", ROWS)
    bench.pipeline("t", APPEND)
    cut_run(bench, "t", about_to_load)
    run_id = bench.cli("runs", "list", "--json").json["runs"][0]["run_id"]
    assert bench.cli("runs", "abandon", run_id).code == 0
    assert bench.rows("t__quarantine") == []
    assert bench.run("t")["batches"][0]["n"] == 2
    assert ids(bench, "t") == [1, 2]
