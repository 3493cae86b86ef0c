"""`deltaworks sql`."""

from __future__ import annotations

from typing import Annotated

import typer

from deltaworks.api import Project
from deltaworks.cli.boundary import answering
from deltaworks.cli.options import DebugOption, JsonOption, ProfileOption, ProjectOption
from deltaworks.cli.output import error_line
from deltaworks.cli.rows_output import CsvOption, LimitOption, VerboseOption, print_rows
from deltaworks.runtime.project_tables import QueryEngine


def sql(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A SELECT statement over tables by name.")
    ],
    limit: LimitOption = 20,
    engine: Annotated[
        QueryEngine,
        typer.Option("--engine", help="delta-rs (DataFusion's SQL), or spark (Spark's SQL)."),
    ] = "delta-rs",
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_csv: CsvOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Answer a SELECT statement over the project's tables. No JVM, unless Spark is chosen."""
    with answering(as_json=as_json, debug=debug):
        opened = Project.open(project, profile=profile, notify=error_line, one_command=True)
        found = opened.query(query, engine=engine, limit=limit or None)
        print_rows(found, as_json=as_json, as_csv=as_csv, verbose=verbose)
