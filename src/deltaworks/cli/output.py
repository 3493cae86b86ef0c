"""Everything the command line prints: data on stdout, the rest on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deltaworks.errors import DeltaworksError, Problem
from deltaworks.model.results import (
    PARKED,
    SKIPPED,
    STOPPED,
    BatchResult,
    MaintenanceResult,
    OutputPlan,
    OutputResult,
    PlanResult,
    RunResult,
)
from deltaworks.redact import scrub, scrub_document

_MAX_LINES = 6


def stdout() -> Console:
    """The console for data; width does not cut what is piped."""
    return Console(file=sys.stdout, soft_wrap=True, highlight=False)


def stderr() -> Console:
    """The console for everything else."""
    return Console(file=sys.stderr, soft_wrap=True, highlight=False)


def print_json(document: object) -> None:
    """One JSON document."""
    sys.stdout.write(json.dumps(scrub_document(document), indent=2, default=_text) + "\n")


def _text(value: object) -> str:
    return scrub(str(value))


def print_text(text: str) -> None:
    """A text of several lines, as it is."""
    sys.stdout.write(scrub(text))


def line(text: str = "") -> None:
    """A line of data."""
    stdout().print(Text(scrub(text)))


def error_line(text: str) -> None:
    """A line that is not data."""
    stderr().print(Text(scrub(text)))


def print_error(error: DeltaworksError, *, run_id: str | None = None) -> None:
    """An error: at most six lines for each problem, the run that had it included."""
    if run_id is None:
        print_problems(error.problems)
        return
    print_problems(error.problems, max_lines=_MAX_LINES - 1)
    error_line(f"  run: {run_id} (`deltaworks runs show {run_id}`)")


def print_problems(
    problems: Iterable[Problem], *, label: str = "error", max_lines: int = _MAX_LINES
) -> None:
    """Problems or notes, each with its place and fix."""
    style = "bold red" if label == "error" else "bold"
    for problem in problems:
        lines = scrub(problem.text()).splitlines()
        kept = lines if len(lines) <= max_lines else [*lines[: max_lines - 1], lines[-1]]
        console = stderr()
        console.print(Text.assemble((f"{label}: ", style), kept[0]))
        for text in kept[1:]:
            console.print(Text(text))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Rows under headings; numbers to the right."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    listed = [list(row) for row in rows]
    for i, name in enumerate(columns):
        numeric = all(isinstance(row[i], int | float) or row[i] is None for row in listed)
        grid.add_column(Text(name), justify="right" if numeric and listed else "left", no_wrap=True)
    for row in listed:
        grid.add_row(*[Text(scrub(cell_text(cell))) for cell in row])  # brackets are not markup
    console = stdout()
    if not console.is_terminal:
        console.width = 240
    console.print(grid, soft_wrap=False, crop=False)


def cell_text(value: object) -> str:
    """A value in a table: thousands separated, unknown as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_run(result: RunResult) -> None:
    """A run as a person reads it."""
    for batch in result.batches:
        if batch.outputs:
            line(f"{result.pipeline}: {batch_text(batch)} in {result.duration_s:.1f} s")
        for output in batch.outputs:
            line(f"  {output_text(output)}")
            if output.files is not None and output.committed:
                line(f"    {output.files.text()}")
            for done in output.maintenance:
                line(f"    {maintenance_text(done)}")
            if output.shown is not None:
                print_table(output.shown.columns, output.shown.rows)
    if ending := _ending(result):
        line(f"{result.pipeline}: {ending}")
    for note in result.notes:
        line(f"  {note}")
    if result.error is not None:
        print_error(result.error, run_id=result.run_id)


def _ending(result: RunResult) -> str:
    """How a run ended, where its batches do not tell."""
    if result.status == SKIPPED:
        return "nothing to do" if result.run_id else "was not run"
    return {PARKED: "parked, not loaded everywhere", STOPPED: "stopped"}.get(result.status, "")


def batch_text(batch: BatchResult) -> str:
    """What a batch read and refused, in one line."""
    rows = "row" if batch.rows_read == 1 else "rows"
    parts = [f"batch {batch.n}: {cell_text(batch.rows_read)} {rows} read"]
    if batch.rows_quarantined:
        parts.append(f"{batch.rows_quarantined:,} quarantined")
    if batch.rows_dropped:
        parts.append(f"{batch.rows_dropped:,} dropped")
    return ", ".join(parts)


def output_text(output: OutputResult) -> str:
    """Where a batch landed, in one line."""
    place = output.table or output.path
    if output.shown is not None:
        return f"{place}: {output.note}"
    counts = (
        f"{cell_text(output.rows_inserted)} inserted, {cell_text(output.rows_updated)} updated, "
        f"{cell_text(output.rows_deleted)} deleted, {cell_text(output.rows_unchanged)} unchanged"
    )
    if not output.committed:
        return f"{place}: {output.note or 'no commit'} ({counts})"
    version = "" if output.version is None else f" version {output.version}"
    note = f" ({output.note})" if output.note else ""
    return f"{place}{version}: {counts}{note}"


def maintenance_text(done: MaintenanceResult) -> str:
    """How a table was looked after, in one line."""
    if done.note:
        return f"{done.operation}: not done: {done.note}"
    removed, added = cell_text(done.files_removed), cell_text(done.files_added)
    if done.operation == "vacuum":
        return f"vacuum: {removed} files removed"
    return f"{done.operation}: {removed} files became {added}"


def print_summary(results: Sequence[RunResult]) -> None:
    """Several runs, a line each."""
    print_table(
        (
            "pipeline",
            "status",
            "read",
            "inserted",
            "updated",
            "deleted",
            "unchanged",
            "quarantined",
            "dropped",
            "version",
            "seconds",
        ),
        [_summary_row(result) for result in results],
    )


def _summary_row(result: RunResult) -> tuple[object, ...]:
    batch = result.batches[-1] if result.batches else None
    output = batch.outputs[0] if batch and batch.outputs else None
    return (
        result.pipeline,
        result.status,
        batch.rows_read if batch else None,
        output.rows_inserted if output else None,
        output.rows_updated if output else None,
        output.rows_deleted if output else None,
        output.rows_unchanged if output else None,
        batch.rows_quarantined if batch else None,
        batch.rows_dropped if batch else None,
        output.version if output else None,
        round(result.duration_s, 1),
    )


def print_plan(result: PlanResult) -> None:
    """A plan as a person reads it."""
    line(f"pipeline {result.pipeline}")
    for stage in result.stages:
        source = f" from {', '.join(stage.inputs)}" if stage.inputs else ""
        detail = f" ({stage.detail})" if stage.detail else ""
        line(f"  {stage.kind:<9} {stage.name}: {stage.type}{source}{detail}")
        if stage.found and stage.columns:
            named = ", ".join(f"{column['name']} {column['type']}" for column in stage.columns)
            line(f"  {'':<9} columns found: {named}")
    if not result.offline:
        line(
            f"would read {cell_text(result.rows_read)} rows "
            f"and quarantine {cell_text(result.rows_to_quarantine)}"
        )
    for output in result.outputs:
        _print_output_plan(output, offline=result.offline)
    for note in result.notes:
        line(f"note: {note}")


def _print_output_plan(output: OutputPlan, *, offline: bool) -> None:
    place = output.table or output.path
    state = "" if output.exists is None else " (exists)" if output.exists else " (new)"
    line(f"output {place}{state}{f': {output.note}' if output.note else ''}")
    if not offline:
        line(
            f"  would insert {cell_text(output.rows_to_insert)}, "
            f"update {cell_text(output.rows_to_update)}, "
            f"delete {cell_text(output.rows_to_delete)}, "
            f"leave {cell_text(output.rows_unchanged)} unchanged"
            + (f", drop {output.rows_to_drop:,} duplicates" if output.rows_to_drop else "")
        )
    for change in output.schema_changes:
        line(f"  {change.text()}")
    if output.strategy:
        line(f"  strategy: {output.strategy}")
    if output.files is not None:
        line(f"  {output.files.text()}")
    if output.advice:
        line(f"  advice: {output.advice}")
    for text in output.sql.splitlines():
        line(f"  {text}")


def print_document(document: dict[str, Any], *, indent: int = 0) -> None:
    """Names and values, a line each."""
    width = max((len(name) for name in document), default=0)
    for name, value in document.items():
        line(f"{' ' * indent}{name:<{width}}  {cell_text(value)}")
