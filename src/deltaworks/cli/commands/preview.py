"""`deltaworks preview`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from deltaworks.cli.boundary import answering
from deltaworks.cli.options import (
    DebugOption,
    JsonOption,
    PipelineArgument,
    ProfileOption,
    ProjectOption,
    QuietOption,
    VarOption,
    project_folder,
)
from deltaworks.cli.output import line, print_json, print_table
from deltaworks.cli.progress import Progress
from deltaworks.cli.run_options import open_project
from deltaworks.model.results import PreviewResult

_WIDEST = 60


def preview(
    target: PipelineArgument,
    step: Annotated[
        str,
        typer.Option("--step", metavar="NAME", help="A source, transform, check or sink."),
    ] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many rows.")] = 20,
    full: Annotated[
        bool, typer.Option("--full", help="Read everything, not only what is new.")
    ] = False,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the rows of a step, as the next batch would read them. Nothing is written."""
    with answering(as_json=as_json, debug=debug):
        with Progress(quiet=quiet) as progress:
            opened = open_project(project_folder(project, target), profile, var, progress)
            result = opened.preview(target, step=step, limit=limit, full=full)
        if as_json:
            print_json(result.to_json())
        else:
            _print(result)


def _print(result: PreviewResult) -> None:
    if result.columns:
        names = [column["name"] for column in result.columns]
        headings = [f"{column['name']}\n{column['type']}" for column in result.columns]
        print_table(headings, [[_cell(row[name]) for name in names] for row in result.rows])
        line(_summary(result))
    for note in result.notes:
        line(f"note: {note}")


def _summary(result: PreviewResult) -> str:
    count = len(result.rows)
    shown = f"the first {count:,} rows" if result.more else f"{count:,} row{'s' * (count != 1)}"
    what = "what sink" if result.kind == "load" else result.kind
    where = f'{what} "{result.step}"{" gets" if result.kind == "load" else ""}'
    aside = result.rows_quarantined
    return f"{shown} of {where}" + (f"; {aside:,} quarantined" if aside else "")


def _cell(value: Any) -> str:
    """A value as SQL would show it, cut where it gets wide."""
    if isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, bool):
        text = str(value).lower()
    else:
        text = "NULL" if value is None else str(value)
    text = text.replace("\n", "\\n")
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
