"""`deltaworks runs list | show | resume | replay | abandon`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deltaworks.api import Project
from deltaworks.cli.boundary import answering
from deltaworks.cli.options import (
    DebugOption,
    JsonOption,
    ProfileOption,
    ProjectOption,
    QuietOption,
    VarOption,
    complete_pipeline,
    parse_variables,
)
from deltaworks.cli.output import cell_text, line, print_document, print_json, print_table
from deltaworks.cli.progress import Progress
from deltaworks.cli.run_options import answer_run, open_project

app = typer.Typer(help="What ran, when, and how it ended.", no_args_is_help=True)


RunArgument = Annotated[str, typer.Argument(metavar="ID", help="A run, or how its id begins.")]


@app.command("list")
def list_runs(
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many, newest first.")] = 20,
    pipeline: Annotated[
        str,
        typer.Option(
            "--pipeline", help="Only runs of this pipeline.", autocompletion=complete_pipeline
        ),
    ] = "",
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List runs, newest first."""
    with answering(as_json=as_json, debug=debug):
        opened = Project.open(project, profile=profile)
        chosen = opened.runs(opened.pipeline_name(pipeline) if pipeline else "")[:limit]
        if as_json:
            print_json({"runs": [record.to_json() for record in chosen]})
            return
        print_table(
            ("run", "pipeline", "status", "started", "seconds", "rows read"),
            [
                (
                    record.run_id,
                    record.pipeline,
                    record.status,
                    f"{record.started_at:%Y-%m-%d %H:%M:%S}",
                    record.record.get("duration_s"),
                    _rows_read(record.record),
                )
                for record in chosen
            ],
        )


def _rows_read(record: dict[str, Any]) -> int | None:
    counts = [batch.get("rows_read") for batch in record.get("batches", ())]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


@app.command("show")
def show_run(
    run_id: RunArgument,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show one run: its batches, steps, checks and outputs."""
    with answering(as_json=as_json, debug=debug):
        document = Project.open(project, profile=profile).find_run(run_id).to_json()
        if as_json:
            print_json(document)
        else:
            _print_record(document)


@app.command("resume")
def resume_run(
    run_id: RunArgument,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Finish the batch that a run left unfinished, and do nothing else."""
    with answering(as_json=as_json, debug=debug):
        with Progress(quiet=quiet) as progress:
            result = open_project(project, profile, var, progress).resume(run_id)
        answer_run(result, as_json=as_json)


@app.command("replay")
def replay_run(
    run_id: RunArgument,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Load the batch that a run had to park, and those parked before it; each lands once."""
    with answering(as_json=as_json, debug=debug):
        with Progress(quiet=quiet) as progress:
            result = open_project(project, profile, var, progress).load_parked(run_id)
        answer_run(result, as_json=as_json)


@app.command("abandon")
def abandon_run(
    run_id: RunArgument,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Give up the batch that a run left unfinished, if it has landed nowhere."""
    with answering(as_json=as_json, debug=debug):
        opened = Project.open(project, profile=profile, variables=parse_variables(var))
        n = opened.abandon(run_id)
        if as_json:
            print_json({"run_id": run_id, "batch": n, "state": "abandoned"})
        else:
            line(f"batch {n} is given up; the next run plans its own")


def _fates(step: dict[str, Any]) -> str:
    """What became of the rows of a step; records of older versions know only those it passed on."""
    other = [name for name in ("quarantined", "dropped") if step.get(f"rows_{name}", 0) != 0]
    told = [f"{cell_text(step['rows'])} rows"]
    told.extend(f"{cell_text(step[f'rows_{name}'])} {name}" for name in other)
    came = step.get("rows_in")
    return ", ".join(told) + (f", of {came:,}" if came is not None and len(told) > 1 else "")


def _print_record(document: dict[str, Any]) -> None:
    plain = {key: value for key, value in document.items() if not isinstance(value, dict | list)}
    print_document(plain)
    for note in document.get("notes", ()):
        line(f"note: {note}")
    for batch in document.get("batches", ()):
        line(
            f"batch {batch['n']} {batch['state']}: read {cell_text(batch['rows_read'])}, "
            f"quarantined {cell_text(batch['rows_quarantined'])}, "
            f"dropped {cell_text(batch['rows_dropped'])}"
        )
        for count, why in batch.get("uncounted", {}).items():
            line(f"  {count} is not known: {why}")
        for source, what in batch.get("reads", {}).items():
            line(f"  read {source}: {what}")
        for step in batch["steps"]:
            line(f"  step {step['name']} ({step['type']}): {_fates(step)}")
        for check in batch["checks"]:
            state = "passed" if check["passed"] else "failed"
            line(f"  check {check['name']}: {state}, {check['detail']}")
        for output in batch["outputs"]:
            line(
                f"  output {output.get('table') or output.get('path')} "
                f"version {output['version']}: +{output['rows_inserted']} "
                f"~{output['rows_updated']} -{output['rows_deleted']} "
                f"={output['rows_unchanged']} {output['note']}".rstrip()
            )
    error = document.get("error")
    if error:
        line(f"error {error['code']}: {error['message']}")
        if error["hint"]:
            line(f"  fix: {error['hint']}")
