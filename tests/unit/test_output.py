"""What the command line prints: unknown is a dash, errors are short, data and talk are apart."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import pytest

from deltaworks.cli.output import (
    batch_text,
    cell_text,
    output_text,
    print_error,
    print_plan,
    print_problems,
    print_run,
    print_summary,
    print_table,
)
from deltaworks.cli.progress import Progress, event_text
from deltaworks.errors import InputError, Problem, SchemaMismatch
from deltaworks.model.events import (
    BatchPlanned,
    Committed,
    EngineStarting,
    RunStarted,
    StageStarted,
    Warned,
)
from deltaworks.model.merge_facts import FilesUsed
from deltaworks.model.results import (
    BatchResult,
    OutputPlan,
    OutputResult,
    PlanResult,
    RunResult,
)

Captured = pytest.CaptureFixture[str]
OUTPUT = OutputResult(
    sink="delta",
    table="orders",
    committed=True,
    version=3,
    rows_inserted=1200,
    rows_updated=0,
    rows_deleted=0,
    rows_unchanged=7,
)
BATCH = BatchResult(
    n=4,
    id=None,
    state="done",
    rows_read=1234567,
    rows_quarantined=2,
    rows_dropped=1,
    outputs=(OUTPUT,),
)


def run(**fields: object) -> RunResult:
    known: dict[str, object] = {
        "run_id": "run-1",
        "pipeline": "orders",
        "status": "succeeded",
        "started_at": "2026-01-02T10:00:00+00:00",
        "duration_s": 1.26,
        "batches": (BATCH,),
    }
    return RunResult(**{**known, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (1234567, "1,234,567"), (True, "yes"), (False, "no"), ("a", "a")],
)
def test_a_cell_shows_thousands_and_a_dash_for_the_unknown(value: object, text: str) -> None:
    assert cell_text(value) == text


def test_a_run_is_two_lines_on_stdout(capsys: Captured) -> None:
    print_run(run())
    told = capsys.readouterr()
    assert told.err == ""
    assert told.out.splitlines() == [
        "orders: batch 4: 1,234,567 rows read, 2 quarantined, 1 dropped in 1.3 s",
        "  orders version 3: 1,200 inserted, 0 updated, 0 deleted, 7 unchanged",
    ]


def test_one_row_is_a_row() -> None:
    assert batch_text(replace(BATCH, rows_read=1, rows_quarantined=0, rows_dropped=0)) == (
        "batch 4: 1 row read"
    )


def test_counts_nobody_made_are_dashes_and_not_zeros(capsys: Captured) -> None:
    output = OutputResult(sink="parquet", path="exports", committed=True)
    assert output_text(output) == "exports: - inserted, - updated, - deleted, - unchanged"
    print_summary([run(batches=(BatchResult(n=1, id=None, state="done", outputs=(output,)),))])
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split() == ["orders", "succeeded", *["-"] * 8, "1.3"]


def test_a_run_without_a_commit_says_why() -> None:
    output = OutputResult(sink="d", table="t", committed=False, note="nothing to change")
    assert output_text(output).startswith("t: nothing to change (")


def test_a_skipped_run_says_why(capsys: Captured) -> None:
    batch = BatchResult(n=7, id=None, state="skipped")
    print_run(run(status="skipped", batches=(batch,), notes=("skipped: batch 7 did it",)))
    assert capsys.readouterr().out.splitlines() == [
        "orders: nothing to do",
        "  skipped: batch 7 did it",
    ]


def test_a_failed_run_tells_its_error_and_its_id_on_stderr(capsys: Captured) -> None:
    error = InputError("no file", hint="make one", file="p.yaml", line=3)
    print_run(run(status="failed", batches=(), error=error))
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "error: p.yaml:3: no file",
        "  fix: make one",
        "  run: run-1 (`deltaworks runs show run-1`)",
    ]


def test_a_run_that_never_began_has_no_id_to_show(capsys: Captured) -> None:
    print_run(run(run_id=None, status="failed", batches=(), error=InputError("no")))
    assert capsys.readouterr().err == "error: no\n"


@pytest.mark.parametrize("run_id", [None, "run-1"])
def test_an_error_never_has_more_than_six_lines_and_keeps_its_fix(
    capsys: Captured, run_id: str | None
) -> None:
    diff = "\n".join(f"  ~ column {i}" for i in range(20))
    print_error(SchemaMismatch(f"the rows do not fit:\n{diff}", hint="cast them"), run_id=run_id)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6
    assert "  fix: cast them" in lines[-2:]


def test_every_problem_has_its_own_place(capsys: Captured) -> None:
    print_problems(
        [
            Problem(code="a", message="one", file="p.yaml", line=2, hint="so"),
            Problem(code="b", message="two", file="q.yaml"),
            Problem(code="c", message="three"),
        ]
    )
    assert capsys.readouterr().err.splitlines() == [
        "error: p.yaml:2: one",
        "  fix: so",
        "error: q.yaml: two",
        "error: three",
    ]


def test_brackets_in_a_message_are_not_markup(capsys: Captured) -> None:
    print_error(InputError('no step "[bold]x[/bold]"', hint="write local[*]"))
    assert capsys.readouterr().err == 'error: no step "[bold]x[/bold]"\n  fix: write local[*]\n'


def test_long_lines_are_neither_wrapped_nor_cut(capsys: Captured) -> None:
    print_error(InputError("x" * 500))
    assert capsys.readouterr().err == f"error: {'x' * 500}\n"


def test_tables_align_numbers_to_the_right(capsys: Captured) -> None:
    print_table(("name", "rows"), [("a", 5), ("bb", 12000), ("c", None)])
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "name    rows",
        "a          5",
        "bb    12,000",
        "c          -",
    ]


def test_an_empty_table_is_its_headings(capsys: Captured) -> None:
    print_table(("run", "status"), [])
    assert capsys.readouterr().out.split() == ["run", "status"]


def test_progress_goes_to_stderr_in_plain_lines(capsys: Captured) -> None:
    names = {"run_id": "r", "pipeline": "orders"}
    with Progress(quiet=False) as progress:
        progress.listen(RunStarted(**names))
        progress.listen(EngineStarting(**names))
        progress.listen(BatchPlanned(**names, n=2, detail="1 file"))
        progress.listen(StageStarted(**names, stage="typed", kind="transform"))
        progress.listen(Committed(**names, n=2, output=OUTPUT))
        progress.listen(Warned(**names, message="careful"))
        progress.say("downloading")
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "orders: run r",
        "orders: starting Spark",
        "orders: batch 2 planned (1 file)",
        "orders: transform typed",
        "orders: landed in orders version 3: 1,200 inserted, 0 updated, 0 deleted, 7 unchanged",
        "orders: warning: careful",
        "downloading",
    ]


def test_quiet_progress_says_nothing(capsys: Captured) -> None:
    with Progress(quiet=True) as progress:
        progress.listen(RunStarted(run_id="r", pipeline="orders"))
        progress.say("downloading")
    assert capsys.readouterr() == ("", "")


def test_events_nobody_needs_to_hear_of_have_no_text() -> None:
    from deltaworks.model.events import RunFinished

    assert event_text(RunFinished(run_id="r", pipeline="p", result=run())) == ""


ON_A_TERMINAL = """
import time
from deltaworks.cli.progress import Progress
from deltaworks.model.events import EngineStarted, RunFinished, StageStarted

with Progress(quiet=False) as progress:
    progress.listen(EngineStarted(run_id="r", pipeline="p", rows_so_far=lambda: 1234))
    progress.listen(StageStarted(run_id="r", pipeline="p", stage="orders", kind="load"))
    time.sleep(1.3)
"""


def test_a_terminal_shows_the_stage_the_rows_so_far_and_the_time() -> None:
    here, there = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    environ.pop("NO_COLOR", None)
    command = [sys.executable, "-c", ON_A_TERMINAL]
    with subprocess.Popen(command, stderr=there, stdout=there, env=environ) as child:
        os.close(there)
        shown = b""
        with suppress(OSError):  # Linux ends a pseudo terminal with an error
            while part := os.read(here, 4096):
                shown += part
    os.close(here)
    assert child.returncode == 0
    assert "p: load orders (1 s, 1,234 rows so far)" in shown.decode()


def test_a_merge_says_which_files_it_left_alone(capsys: Captured) -> None:
    output = replace(OUTPUT, files=FilesUsed(scanned=2, skipped=1200, rewritten=1))
    print_run(run(batches=(replace(BATCH, outputs=(output,)),)))
    assert "files: 2 scanned, 1,200 skipped, 1 rewritten" in capsys.readouterr().out


def test_a_plan_says_how_rows_would_go_in_and_what_would_be_cheaper(capsys: Captured) -> None:
    planned = OutputPlan(
        sink="t",
        table="t",
        exists=True,
        strategy="append: all rows are new",
        advice="do this",
        files=FilesUsed(scanned=0, skipped=3, rewritten=0),
    )
    print_plan(PlanResult(pipeline="p", offline=False, stages=(), outputs=(planned,)))
    shown = capsys.readouterr().out
    for words in ("strategy: append: all rows are new", "3 skipped", "advice: do this"):
        assert words in shown
