"""What commands that run something share: a project that tells its progress, and the answer."""

from __future__ import annotations

import typer

from deltaworks.api import Project
from deltaworks.cli.options import parse_variables
from deltaworks.cli.output import print_json, print_run
from deltaworks.cli.progress import Progress
from deltaworks.model.results import RunResult


def open_project(project: str, profile: str, var: list[str] | None, progress: Progress) -> Project:
    """The project, with its progress on the screen."""
    return Project.open(
        project,
        profile=profile,
        variables=parse_variables(var),
        listeners=[progress.listen],
        notify=progress.say,
        one_command=True,
    )


def answer_run(result: RunResult, *, as_json: bool) -> None:
    """Print how a run ended, and end with its exit code."""
    if as_json:
        print_json(result.to_json())
    else:
        print_run(result)
    if result.exit_code:
        raise typer.Exit(result.exit_code)
