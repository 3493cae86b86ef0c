"""`deltaworks table rows` and `deltaworks table list`."""

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
    TableArgument,
    timestamp_option,
)
from deltaworks.cli.output import error_line, print_json, print_table
from deltaworks.cli.rows_output import CsvOption, LimitOption, VerboseOption, print_rows
from deltaworks.errors import ConfigError


def rows(
    table: TableArgument,
    where: Annotated[
        str, typer.Option("--where", metavar="CONDITION", help="Only rows that match; Spark's SQL.")
    ] = "",
    columns: Annotated[
        str, typer.Option("--columns", metavar="A,B", help="These columns, in this order.")
    ] = "",
    limit: LimitOption = 20,
    version: Annotated[int | None, typer.Option("--version", help="Read this version.")] = None,
    timestamp: Annotated[
        str | None,
        typer.Option("--timestamp", help="Read the version of this time; UTC, or with its zone."),
    ] = None,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_csv: CsvOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show rows of a table, now or at a version. No JVM, unless only Spark reads the table."""
    with answering(as_json=as_json, debug=debug):
        if version is not None and timestamp is not None:
            raise ConfigError("--version and --timestamp exclude each other")
        opened = Project.open(project, profile=profile, notify=error_line, one_command=True)
        found = opened.table(table).rows(
            columns=[name.strip() for name in columns.split(",") if name.strip()],
            where=where,
            version=version,
            timestamp=None if timestamp is None else timestamp_option(timestamp),
            limit=limit or None,
        )
        print_rows(found, as_json=as_json, as_csv=as_csv, verbose=verbose)


def list_tables(
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List the tables of the warehouse: version, rows, size and last write."""
    with answering(as_json=as_json, debug=debug):
        found = Project.open(project, profile=profile).tables()
        documents = [table.to_json() for table in found]
        if as_json:
            print_json({"tables": documents})
            return
        print_table(
            ("table", "version", "rows", "files", "bytes", "last write"),
            [
                (
                    table["name"],
                    table["version"],
                    table["rows"],
                    table["files"],
                    table["bytes"],
                    table["last_write"] and table["last_write"][:19].replace("T", " "),
                )
                for table in documents
            ],
        )
        for table in documents:
            if table["problem"]:
                error_line(f"{table['name']}: {table['problem']}")
