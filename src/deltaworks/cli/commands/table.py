"""`deltaworks table list | rows | show | history | restore | accept | undo`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deltaworks.api import Project
from deltaworks.cli.boundary import answering
from deltaworks.cli.commands.table_rows import list_tables, rows
from deltaworks.cli.options import (
    DebugOption,
    JsonOption,
    ProfileOption,
    ProjectOption,
    TableArgument,
    VarOption,
    parse_variables,
    timestamp_option,
)
from deltaworks.cli.output import error_line, line, print_document, print_json, print_table
from deltaworks.errors import ConfigError, GuardError
from deltaworks.model.results import error_document
from deltaworks.tables.manager import history_document, show_document

if TYPE_CHECKING:
    from deltaworks.runtime.recovery.accept_result import AcceptResult, Meaning
    from deltaworks.runtime.recovery.restore import RestoreResult

app = typer.Typer(
    help="What a table is, what it holds and how it came to be.", no_args_is_help=True
)

app.command("list")(list_tables)
app.command("rows")(rows)


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
        str | None,
        typer.Option("--timestamp", help="The timestamp to restore to; UTC, or with its zone."),
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
        moment = None if timestamp is None else timestamp_option(timestamp)
        result = opened.restore(table, version=version, timestamp=moment, apply=apply)
        if as_json:
            print_json(result.to_json())
        else:
            _print_restore(result)


def _print_restore(result: RestoreResult) -> None:
    goes = "was" if result.applied else "would be"
    made = f" (in version {result.version})" if result.applied else ""
    line(f"{result.table} {goes} set back from {result.version_from} to {result.version_to}{made}")
    for pipeline, batches in result.pipelines:
        numbers = ", ".join(str(n) for n in batches)
        line(f"  pipeline {pipeline} loads again what came with batch {numbers}")
    if not result.applied:
        line("Nothing has changed yet; add --apply")


@app.command("accept")
def accept(
    table: TableArgument,
    read_again: Annotated[
        bool,
        typer.Option("--read-again", help="Read batches again whose rows the table does not hold."),
    ] = False,
    keep_position: Annotated[
        bool, typer.Option("--keep-position", help="Read nothing again; go on from where it was.")
    ] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it; without this it is only shown.")
    ] = False,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    var: VarOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Take a table as it is after others changed it, and say what that means for the ledger."""
    with answering(as_json=as_json, debug=debug):
        if read_again and keep_position:
            raise ConfigError("--read-again and --keep-position exclude each other")
        if apply and not (read_again or keep_position):
            raise ConfigError(
                "say what becomes of rows that the table does not hold any more",
                hint="--read-again reads them again, --keep-position does not",
            )
        opened = Project.open(
            project, profile=profile, variables=parse_variables(var), notify=error_line
        )
        if read_again or keep_position:
            result = opened.accept(table, keep_position=keep_position, apply=apply)
            _answer(result, as_json=as_json)
        else:
            _answer_both(opened, table, as_json=as_json)


def _answer(result: AcceptResult, *, as_json: bool) -> None:
    if as_json:
        print_json(result.to_json())
        return
    for text in _lines(result):
        line(text)
    if result.pipelines and not result.applied:
        line("Nothing has changed yet; add --apply")


def _answer_both(opened: Project, table: str, *, as_json: bool) -> None:
    """Show what either choice means; one of them may not be possible."""
    documents: list[dict[str, Any]] = []
    for option, keep in (("read-again", False), ("keep-position", True)):
        try:
            result = opened.accept(table, keep_position=keep)
        except GuardError as error:
            documents.append({"choice": option, "error": error_document(error)})
            texts = [f"is not possible: {error.message}"]
        else:
            documents.append(result.to_json())
            texts = list(_lines(result))
            if not result.pipelines:
                break
        for text in [] if as_json else [f"--{option}", *(f"  {text}" for text in texts)]:
            line(text)
    if as_json:
        print_json({"applied": False, "choices": documents})
    elif not result.pipelines:
        line(*_lines(result))
    else:
        line("Nothing has changed yet; add one of these, and --apply")


def _lines(result: AcceptResult) -> Iterator[str]:
    if not result.pipelines:
        yield f"{result.table} holds what the ledger says: there is nothing to accept"
    for meaning in result.pipelines:
        yield f"{result.table} is {meaning.found}, for pipeline {meaning.pipeline}"
        yield from _meaning(meaning)


def _meaning(meaning: Meaning) -> Iterator[str]:
    for numbers, words in (
        (meaning.held, "count as in the table"),
        (meaning.unknown, "are in the table and not in the ledger; they stay"),
        (meaning.read_again, "count as out: the next run reads them again"),
        (meaning.undone, "count as undone: they are not in the table, and are not read again"),
    ):
        if numbers:
            yield f"  batches {', '.join(map(str, numbers))} {words}"
    for source, what in meaning.counts_as_read.items():
        yield f"  what source {source} holds now counts as read: {what}"


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
            line(f"batch {result.batches[0]} changed no table")
        elif not apply:
            line("Nothing has changed yet; add --apply")
