"""`deltaworks graph`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

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
from deltaworks.cli.output import error_line, print_json, print_text

if TYPE_CHECKING:
    from deltaworks.pipeline.project_graph import DataNode, ProjectGraph


def graph(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|NAME]...",
            help="Pipelines; all of them when left out.",
            autocompletion=complete_pipeline,
        ),
    ] = None,
    as_mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print a Mermaid flowchart, for Markdown pages.")
    ] = False,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Draw which pipeline reads and writes which tables. Starts nothing, reads no data."""
    from deltaworks.pipeline.project_graph import mermaid

    with answering(as_json=as_json, debug=debug):
        names = targets or []
        folder = project_folder(project, names[0] if names else None)
        opened = Project.open(folder, profile=profile, variables=parse_variables(var))
        found = opened.graph(*names)
        if as_json:
            print_json(found.to_json())
            return
        print_text((mermaid(found) if as_mermaid else "\n".join(_lines(found))) + "\n")
        for warning in _warnings(found):
            error_line(warning)


def _lines(found: ProjectGraph) -> Iterator[str]:
    for one in found.pipelines:
        yield one.name
        for node in one.reads:
            yield f"  reads   {_with(node, 'written by', found.writers(node))}"
        for node in one.writes:
            yield f"  writes  {_with(node, 'read by', found.readers(node))}"


def _with(node: DataNode, relation: str, pipelines: tuple[str, ...]) -> str:
    kind = "" if node.kind == "table" else f" ({node.kind})"
    others = f"  <- {relation} {', '.join(pipelines)}" if pipelines else ""
    return f"{node.name}{kind}{others}"


def _warnings(found: ProjectGraph) -> Iterator[str]:
    if found.circle:
        yield f"circle: {' -> '.join(found.circle)}; these pipelines read each other's last state"
    for node in found.unwritten():
        readers = ", ".join(found.readers(node))
        yield f'table "{node.name}" is read by {readers}, and no pipeline here writes it'
