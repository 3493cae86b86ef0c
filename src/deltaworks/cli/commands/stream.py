"""`deltaworks stream run | epochs`."""

from __future__ import annotations

from datetime import UTC, datetime
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
    VarOption,
    parse_variables,
)
from deltaworks.cli.output import cell_text, line, print_json, print_table

app = typer.Typer(help="Streams of epochs into tables.", no_args_is_help=True)


@app.command("run")
def run(
    target: Annotated[
        str, typer.Argument(metavar="FILE|NAME", help="The pipeline whose files are streamed.")
    ],
    writer_id: Annotated[
        str, typer.Option("--writer-id", help="The name under which the table keeps the epochs.")
    ] = "stream-run",
    files_per_epoch: Annotated[
        int, typer.Option("--files-per-epoch", min=1, help="How many files an epoch has.")
    ] = 1,
    after_runs: Annotated[
        bool, typer.Option("--after-runs", help="Begin after what `deltaworks run` has read.")
    ] = False,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Stream the new files of a pipeline, or messages of Kafka, into its table, without a JVM."""
    with answering(as_json=as_json, debug=debug):
        opened = Project.open(project, profile=profile, variables=parse_variables(var))
        result = opened.stream_files(
            target,
            writer_id=writer_id,
            files_per_epoch=files_per_epoch,
            after_runs=after_runs,
        )
        document = result.to_json()
        if as_json:
            print_json(document)
            return
        line(
            f"{result.table}: {_many(len(result.commits), 'epoch')}, "
            f"{_many(result.files, 'file')}, {_many(document['rows'], 'row')}; "
            f"the last epoch is {cell_text(result.last_epoch)}"
        )
        if result.stopped:
            line("stopped by Ctrl-C; run it again: it goes on where it stopped")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


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
