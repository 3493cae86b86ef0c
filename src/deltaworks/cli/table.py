"""`deltaworks table show | history | restore | undo`."""

from __future__ import annotations

from datetime import datetime
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
    parse_variables,
)
from deltaworks.cli.output import error_line, line, print_document, print_json, print_table
from deltaworks.clock import parse_moment
from deltaworks.errors import ConfigError
from deltaworks.tables.manager import history_document, show_document

if TYPE_CHECKING:
    from deltaworks.runtime.restore import RestoreResult

app = typer.Typer(help="What a table is and how it came to be.", no_args_is_help=True)

TableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="A table of the warehouse, or a path.")
]


@app.command("show")
def show(
    table: TableArgument,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show a table: version, rows, files, schema, properties."""
    with answering(as_json=as_json, debug=debug):
        document = show_document(Project.open(project, profile=profile).table(table).show())
        if as_json:
            print_json(document)
            return
        schema = document.pop("schema")
        properties = document.pop("properties")
        for name in ("partition_columns", "features"):
            document[name] = ", ".join(document[name]) or None
        print_document(document)
        line("schema")
        for column in schema:
            required = "" if column["nullable"] else " not null"
            line(f"  {column['name']} {column['type']}{required}")
        if properties:
            line("properties")
            print_document(properties, indent=2)


@app.command("history")
def history(
    table: TableArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many, newest first.")] = 20,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show a table's commits, each with the run that made it."""
    with answering(as_json=as_json, debug=debug):
        records = Project.open(project, profile=profile).table(table).history(limit=limit)
        document = history_document(records)
        if as_json:
            print_json(document)
            return
        print_table(
            ("version", "time", "operation", "pipeline", "batch", "run", "rows written"),
            [
                (
                    commit["version"],
                    commit["timestamp"][:19].replace("T", " "),
                    commit["operation"],
                    commit["pipeline"],
                    commit["batch"],
                    commit["run_id"],
                    commit["metrics"].get("numOutputRows"),
                )
                for commit in document["commits"]
            ],
        )


@app.command("restore")
def restore(
    table: TableArgument,
    version: Annotated[int | None, typer.Option("--version", help="The version to go to.")] = None,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp", help="The moment to go to; UTC, or with its zone.")
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it; without this it is only shown.")
    ] = False,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Set a table back. Pipelines whose batches go load them again with their next run."""
    with answering(as_json=as_json, debug=debug):
        if (version is None) == (timestamp is None):
            raise ConfigError("say either --version or --timestamp")
        opened = Project.open(project, profile=profile, notify=error_line)
        moment = None if timestamp is None else _moment(timestamp)
        result = opened.restore(table, version=version, timestamp=moment, apply=apply)
        if as_json:
            print_json(result.to_json())
        else:
            _print_restore(result)


def _moment(text: str) -> datetime:
    try:
        return parse_moment(text)
    except ValueError as problem:
        raise ConfigError(f"--timestamp: {problem}") from None


def _print_restore(result: RestoreResult) -> None:
    goes = "was" if result.applied else "would be"
    made = f" (in version {result.version})" if result.applied else ""
    line(f"{result.table} {goes} set back from {result.version_from} to {result.version_to}{made}")
    for pipeline, batches in result.pipelines:
        numbers = ", ".join(str(n) for n in batches)
        line(f"  pipeline {pipeline} loads again what came with batch {numbers}")
    if not result.applied:
        line("--apply does it")


@app.command("undo")
def undo(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="A run, or how its id begins.")],
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it; without this it is only shown.")
    ] = False,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Take back what one run did, if nothing later touched its rows. It is not loaded again."""
    with answering(as_json=as_json, debug=debug):
        opened = Project.open(
            project, profile=profile, variables=parse_variables(var), notify=error_line
        )
        result = opened.undo(run_id, apply=apply)
        if as_json:
            print_json(result.to_json())
            return
        verb = "were" if apply else "would be"
        for label, info in result.tables:
            line(
                f"{label}: {info.rows_removed:,} rows {verb} removed, "
                f"{info.rows_put_back:,} {verb} put back"
            )
        if not result.tables:
            line(f"batch {result.batch} changed no table")
        elif not apply:
            line("--apply does it")
