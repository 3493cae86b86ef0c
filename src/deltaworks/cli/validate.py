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
        problems, count = _problems(targets or [], project, profile, var)
        if as_json:
            print_json({"ok": not problems, "problems": [_document(p) for p in problems]})
        elif problems:
            print_problems(problems)
        else:
            line(f"{count} pipeline{'' if count == 1 else 's'} ok")
        if problems:
            raise typer.Exit(EXIT_SPEC)


def _problems(
    targets: list[str], project: str, profile: str, var: list[str] | None
) -> tuple[tuple[Problem, ...], int]:
    try:
        folder = project_folder(project, targets[0] if targets else None)
        opened = Project.open(folder, profile=profile, variables=parse_variables(var))
        catalog = opened.catalog(*targets)
    except DeltaworksError as error:
        return error.problems, 0
    return catalog.problems, len(catalog.plans)


def _document(problem: Problem) -> dict[str, object]:
    return asdict(problem)
