"""`deltaworks validate`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from deltaworks.api import Project
from deltaworks.cli.boundary import answering
from deltaworks.cli.options import (
    DebugOption,
    JsonOption,
    ProfileOption,
    ProjectOption,
    VarOption,
    complete_pipeline,
    parse_variables,
    project_folder,
)
from deltaworks.cli.output import line, print_json, print_problems
from deltaworks.errors import EXIT_SPEC, DeltaworksError, Problem


def validate(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|NAME]...",
            help="Pipelines; all of them when left out.",
            autocompletion=complete_pipeline,
        ),
    ] = None,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Check pipeline files. Starts nothing, reads no data, reports every problem at once."""
    with answering(as_json=as_json, debug=debug):
        problems, notes, count = _found(targets or [], project, profile, var)
        if as_json:
            print_json(
                {
                    "ok": not problems,
                    "problems": [asdict(problem) for problem in problems],
                    "notes": [asdict(note) for note in notes],
                }
            )
        else:
            print_problems(problems)
            print_problems(notes, label="note")
            if not problems:
                line(f"{count} pipeline{'' if count == 1 else 's'} ok")
        if problems:
            raise typer.Exit(EXIT_SPEC)


def _found(
    targets: list[str], project: str, profile: str, var: list[str] | None
) -> tuple[tuple[Problem, ...], tuple[Problem, ...], int]:
    """Problems, notes, and the number of pipelines that are right."""
    try:
        folder = project_folder(project, targets[0] if targets else None)
        opened = Project.open(folder, profile=profile, variables=parse_variables(var))
        catalog = opened.catalog(*targets)
    except DeltaworksError as error:
        return error.problems, (), 0
    return catalog.problems, opened.notes(catalog), len(catalog.plans)
