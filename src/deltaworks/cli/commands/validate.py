"""`deltaworks validate`."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
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
from deltaworks.config.interpolate import Given
from deltaworks.config.profiles import of_profile, other_profiles, profile_names
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
    all_profiles: Annotated[
        bool,
        typer.Option("--all-profiles", help="Check the pipelines under every profile as well."),
    ] = False,
    debug: DebugOption = False,
) -> None:
    """Check the project file and pipelines. Starts nothing, reports every problem at once."""
    with answering(as_json=as_json, debug=debug):
        folder = project_folder(project, targets[0] if targets else None)
        found = _found(targets or [], folder, profile, var, all_profiles=all_profiles)
        if as_json:
            print_json(
                {
                    "ok": not found.problems,
                    "problems": [asdict(problem) for problem in found.problems],
                    "notes": [asdict(note) for note in found.notes],
                }
            )
        else:
            print_problems(found.problems)
            print_problems(found.notes, label="note")
            if not found.problems:
                line(f"{found.count} pipeline{'' if found.count == 1 else 's'} ok")
        if found.problems:
            raise typer.Exit(EXIT_SPEC)


@dataclass(frozen=True)
class _Findings:
    """Problems, notes, and the number of pipelines that are right."""

    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...] = ()
    count: int = 0


def _found(
    targets: list[str], folder: str, profile: str, var: list[str] | None, *, all_profiles: bool
) -> _Findings:
    try:
        given = parse_variables(var)
    except DeltaworksError as error:
        return _Findings(error.problems)
    found = _in_use(targets, folder, profile, given)
    return _with_profiles(found, targets, folder, profile, given) if all_profiles else found


def _in_use(targets: list[str], folder: str, profile: str, given: Given) -> _Findings:
    """What is found under one profile, and in the settings of the others."""
    start = _start(folder)
    others = other_profiles(start, environ=os.environ, profile=profile, variables=given)
    try:
        opened = Project.open(folder, profile=profile, variables=given)
        catalog = opened.catalog(*targets)
    except DeltaworksError as error:
        return _Findings((*error.problems, *others.problems), others.notes)
    problems = (*others.problems, *catalog.problems)
    return _Findings(problems, (*others.notes, *opened.notes(catalog)), len(catalog.plans))


def _with_profiles(
    found: _Findings, targets: list[str], folder: str, profile: str, given: Given
) -> _Findings:
    """What is found as well in pipelines under the other profiles, where those can be loaded."""
    problems = list(found.problems)
    for name in profile_names(_start(folder)):
        try:
            opened = Project.open(folder, profile=name, variables=given)
        except DeltaworksError:
            continue  # reported already
        own = (one for one in opened.validate(*targets) if one not in found.problems)
        problems += () if name == profile else of_profile(name, own)
    return replace(found, problems=tuple(problems))


def _start(folder: str) -> Path:
    start = Path(folder).expanduser().absolute()
    return start if start.is_dir() else start.parent
