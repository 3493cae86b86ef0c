"""The command `deltaworks`: every command in one place, each in a file of its own."""

from __future__ import annotations

import sys
from typing import Annotated

import click
import typer

from deltaworks.cli import doctor, init, jars, plan, run, runs, table, validate
from deltaworks.cli.output import error_line
from deltaworks.errors import EXIT_INTERRUPTED, EXIT_SPEC
from deltaworks.version import __version__

app = typer.Typer(
    name="deltaworks",
    help="Data pipelines on Delta Lake, run by Spark, that land every batch exactly once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"deltaworks {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Data pipelines on Delta Lake, run by Spark, that land every batch exactly once."""


app.command("init")(init.init)
app.command("doctor")(doctor.doctor)
app.command("validate")(validate.validate)
app.command("plan")(plan.plan)
app.command("run")(run.run)
app.add_typer(runs.app, name="runs")
app.add_typer(table.app, name="table")
app.add_typer(jars.app, name="jars")


def main() -> None:
    """Run the command line; a wrong word on it gets one short message."""
    sys.exit(answer(sys.argv[1:]))


def answer(arguments: list[str]) -> int:
    """The exit code of one command line."""
    try:
        code = app(arguments, prog_name="deltaworks", standalone_mode=False)
    except click.ClickException as problem:
        error_line(problem.format_message())
        context = getattr(problem, "ctx", None)
        command = context.command_path if context is not None else "deltaworks"
        error_line(f"  fix: see `{command} --help`")
        return EXIT_SPEC
    except (click.Abort, KeyboardInterrupt):
        error_line("stopped")
        return EXIT_INTERRUPTED
    return code if isinstance(code, int) else 0
