"""`deltaworks plan`."""

from __future__ import annotations

from typing import Annotated

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
from deltaworks.cli.output import print_json, print_plan
from deltaworks.cli.progress import Progress
from deltaworks.cli.run_options import open_project


def plan(
    target: PipelineArgument,
    offline: Annotated[
        bool, typer.Option("--offline", help="Say only what needs no data and no Spark.")
    ] = False,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what a run would change: rows, schema, statement. Nothing is written."""
    with answering(as_json=as_json, debug=debug):
        with Progress(quiet=quiet) as progress:
            opened = open_project(project_folder(project, target), profile, var, progress)
            result = opened.plan(target, offline=offline)
        if as_json:
            print_json(result.to_json())
        else:
            print_plan(result)
