"""`deltaworks sources test`."""

from __future__ import annotations

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
    parse_variables,
    project_folder,
)
from deltaworks.cli.output import line, print_json
from deltaworks.model.probe import ProbeResult

app = typer.Typer(help="What pipelines read from.", no_args_is_help=True)


@app.command("test")
def try_source(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A bucket or path, a credential, a pipeline, or a source as PIPELINE.SOURCE.",
        ),
    ],
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Connect, list one key or read one row, and say how long it took, or precisely why not."""
    with answering(as_json=as_json, debug=debug):
        opened = Project.open(project_folder(project, name), profile=profile)
        results = opened.probe(name, variables=parse_variables(var))
        if as_json:
            ok = all(result.ok for result in results)
            print_json({"ok": ok, "results": [result.to_json() for result in results]})
        else:
            for result in results:
                _print(result)
        failed = [result.exit_code for result in results if not result.ok]
        if failed:
            raise typer.Exit(failed[0])


def _print(result: ProbeResult) -> None:
    state = "ok " if result.ok else "BAD"
    said = result.found or f"{result.message} ({result.reason})"
    line(f"{state} {result.name}  {said}, {result.latency_ms:g} ms")
    if result.hint:
        line(f"      fix: {result.hint}")
