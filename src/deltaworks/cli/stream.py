"""`deltaworks stream epochs`."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from deltaworks.api import Project
from deltaworks.cli.boundary import answering
from deltaworks.cli.options import DebugOption, JsonOption, ProfileOption, ProjectOption
from deltaworks.cli.output import print_json, print_table
from deltaworks.cli.table import TableArgument

app = typer.Typer(help="Streams of epochs into tables.", no_args_is_help=True)


@app.command("epochs")
def epochs(
    table: TableArgument,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show which version of a table each epoch became."""
    with answering(as_json=as_json, debug=debug):
        found = Project.open(project, profile=profile).epochs(table)
        if as_json:
            print_json({"epochs": [record.to_json() for record in found]})
            return
        print_table(
            ("writer", "epoch", "version", "rows", "time", "kept"),
            [
                (
                    record.writer_id,
                    record.epoch,
                    record.version,
                    record.rows,
                    f"{datetime.fromtimestamp(record.timestamp_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}",
                    record.kept,
                )
                for record in found
            ],
        )
