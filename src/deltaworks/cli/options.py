"""Options that several commands share, spelled once."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from deltaworks.clock import parse_timestamp
from deltaworks.config.interpolate import Given
from deltaworks.config.project import load_project
from deltaworks.errors import ConfigError, DeltaworksError
from deltaworks.model.table_ref import is_url
from deltaworks.pipeline.catalog import is_pipeline_file, pipeline_names

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show tracebacks and our own log.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing while working.")]
ProjectOption = Annotated[
    str, typer.Option("--project", "-p", metavar="DIR", help="The project's folder.")
]
ProfileOption = Annotated[str, typer.Option("--profile", help="A profile of the project file.")]
VarOption = Annotated[
    list[str] | None,
    typer.Option("--var", metavar="NAME=VALUE", help="Set a variable; may be repeated."),
]


def complete_pipeline(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of pipelines that begin so, for the shell; silent when there is no project."""
    try:
        folder = Path(str(ctx.params.get("project") or ".")).expanduser()
        config = load_project(folder.absolute(), environ=os.environ)
    except DeltaworksError:
        return []
    return [name for name in pipeline_names(config) if name.startswith(incomplete)]


PipelineArgument = Annotated[
    str,
    typer.Argument(metavar="FILE|NAME", help="The pipeline.", autocompletion=complete_pipeline),
]


def complete_table(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of tables that begin so, for the shell; silent when there is no local warehouse."""
    from deltaworks.tables.listing import table_names

    try:
        folder = Path(str(ctx.params.get("project") or ".")).expanduser()
        config = load_project(folder.absolute(), environ=os.environ)
    except DeltaworksError:
        return []
    if is_url(config.warehouse):
        return []
    return [name for name in table_names(config.warehouse) if name.startswith(incomplete)]


TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A table of the warehouse, or a path.",
        autocompletion=complete_table,
    ),
]


def timestamp_option(text: str) -> datetime:
    """The value of `--timestamp`."""
    try:
        return parse_timestamp(text)
    except ValueError as problem:
        raise ConfigError(f"--timestamp: {problem}") from None


def project_folder(project: str, target: str | None) -> str:
    """Where to look for the project: where the user says, else at the file, else here."""
    if project == "." and target and is_pipeline_file(target) and Path(target).is_file():
        return str(Path(target).parent)
    return project


def parse_variables(given: list[str] | None) -> Given:
    """`--var day=2026-01-02` as a name and a value."""
    return Given(parse_pairs(given, option="--var", example="--var day=2026-01-02"))


def parse_pairs(given: list[str] | None, *, option: str, example: str) -> dict[str, str]:
    """`NAME=VALUE`, as often as it is given."""
    pairs = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigError(f'"{option} {text}" is not NAME=VALUE', hint=example)
        pairs[name] = value
    return pairs
