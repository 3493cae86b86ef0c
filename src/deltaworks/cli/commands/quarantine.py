"""`deltaworks quarantine list | show | replay | discard`."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated, Any

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
    parse_pairs,
)
from deltaworks.cli.output import line, print_json, print_plan, print_table
from deltaworks.cli.progress import Progress
from deltaworks.cli.run_options import answer_run, open_project
from deltaworks.contracts.expression import expression_problem
from deltaworks.errors import ConfigError

if TYPE_CHECKING:
    from deltaworks.runtime.quarantine.table import Choice

app = typer.Typer(help="Quarantined rows, and how to replay them.", no_args_is_help=True)

PipelineArgument = Annotated[
    str,
    typer.Argument(metavar="PIPELINE", help="Whose rows.", autocompletion=complete_pipeline),
]
BatchOption = Annotated[int | None, typer.Option("--batch", help="Only rows of this batch.")]
StepOption = Annotated[str, typer.Option("--step", help="Only rows that left at this step.")]
RuleOption = Annotated[str, typer.Option("--rule", help="Only rows that this rule refused.")]


def _choice(batch: int | None, step: str, rule: str) -> Choice:
    from deltaworks.runtime.quarantine.table import Choice

    return Choice(batch=batch, step=step, rule=rule)


@app.command("list")
def list_groups(
    pipeline: Annotated[
        str | None,
        typer.Argument(
            metavar="[PIPELINE]",
            help="Whose rows; all when left out.",
            autocompletion=complete_pipeline,
        ),
    ] = None,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Count quarantined rows by pipeline, batch, step and rule."""
    with answering(as_json=as_json, debug=debug):
        opened = Project.open(project, profile=profile)
        names = (opened.pipeline_name(pipeline),) if pipeline else opened.quarantined()
        groups = [
            {"pipeline": name, **_plain(group)}
            for name in names
            for group in opened.quarantine(name).groups()
        ]
        if as_json:
            print_json({"groups": groups})
        elif not groups:
            line("nothing is in quarantine")
        else:
            _print_groups(groups)


def _print_groups(groups: list[dict[str, Any]]) -> None:
    names = ("pipeline", "batch", "step", "rule", "rows", "for example")
    keys = ("pipeline", "batch", "step", "rule", "rows", "example")
    print_table(names, [tuple(group[key] for key in keys) for group in groups])


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the quarantine with names and values that JSON and people know."""
    named = {"step" if key == "stage" else key: value for key, value in row.items()}
    return {**named, "quarantined_at": row["quarantined_at"].isoformat()}


@app.command("show")
def show_rows(
    pipeline: PipelineArgument,
    batch: BatchOption = None,
    step: StepOption = "",
    rule: RuleOption = "",
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many rows.")] = 20,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show quarantined rows, each with the rule that refused it."""
    with answering(as_json=as_json, debug=debug):
        opened = Project.open(project, profile=profile)
        pipeline = opened.pipeline_name(pipeline)
        quarantine = opened.quarantine(pipeline)
        rows = [_plain(row) for row in quarantine.rows(_choice(batch, step, rule), limit=limit)]
        if as_json:
            print_json({"pipeline": pipeline, "rows": rows})
            return
        for row in rows:
            line(f"batch {row['batch']}, step {row['step']}, rule {row['rule']}: {row['reason']}")
            line(f"  {row['raw'] if row['raw'] is not None else row['row']}")
        if not rows:
            line("no such row is in quarantine")


@app.command("replay")
def replay_rows(
    pipeline: PipelineArgument,
    batch: BatchOption = None,
    step: StepOption = "",
    rule: RuleOption = "",
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="COLUMN=SQL", help="Correct a column; may be repeated."),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only show what it would do; nothing is written.")
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Overwrite rows that later batches wrote, too."),
    ] = False,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Bring rows back at the step they left. Each lands once; what fails again stays there."""
    with answering(as_json=as_json, debug=debug):
        changes = _changes(change)
        with Progress(quiet=quiet) as progress:
            opened = open_project(project, profile, var, progress)
            choice = _choice(batch, step, rule)
            words: dict[str, Any] = {"choice": choice, "changes": changes, "overwrite": overwrite}
            if plan:
                planned = opened.plan_replay(pipeline, **words)
            else:
                result = opened.replay(pipeline, **words)
        if not plan:
            answer_run(result, as_json=as_json)
        elif as_json:
            print_json(planned.to_json())
        else:
            print_plan(planned)


def _changes(given: list[str] | None) -> dict[str, str]:
    changes = parse_pairs(given, option="--set", example="--set amount=0")
    for name, sql in changes.items():
        if problem := expression_problem(sql):
            raise ConfigError(f'"--set {name}={sql}": {problem}')
    return changes


@app.command("discard")
def discard_rows(
    pipeline: PipelineArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the table's history.")],
    batch: BatchOption = None,
    step: StepOption = "",
    rule: RuleOption = "",
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it; without this it is only shown.")
    ] = False,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Delete quarantined rows for good. Without --apply it only shows them."""
    with answering(as_json=as_json, debug=debug):
        opened = Project.open(project, profile=profile)
        pipeline = opened.pipeline_name(pipeline)
        choice = _choice(batch, step, rule)
        found = opened.quarantine(pipeline).groups(choice)
        groups = [{"pipeline": pipeline, **_plain(group)} for group in found]
        rows = sum(group["rows"] for group in groups)
        if apply and rows:
            note = {"discarded_by": getpass.getuser(), "reason": reason}
            rows = opened.discard(pipeline, choice=choice, note=note)
        if as_json:
            print_json({"pipeline": pipeline, "applied": apply, "rows": rows, "groups": groups})
            return
        if groups:
            _print_groups(groups)
        done = "are removed" if apply else "would be removed; --apply removes them"
        line(f"{rows:,} rows {done}")
