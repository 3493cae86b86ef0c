"""`deltaworks table show` and `deltaworks table history`."""

from __future__ import annotations

from typing import Annotated

import typer

from deltaworks.api import Project
from deltaworks.cli.boundary import answering
from deltaworks.cli.options import DebugOption, JsonOption, ProfileOption, ProjectOption
from deltaworks.cli.output import line, print_document, print_json, print_table
from deltaworks.tables.manager import history_document, show_document

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
