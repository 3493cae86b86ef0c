"""The command `deltaworks`: every command in one place, each in a file of its own."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from deltaworks.cli import (
    checks,
    convert,
    doctor,
    init,
    jars,
    plan,
    preview,
    quarantine,
    run,
    runs,
    schema,
    secrets,
    sources,
    stream,
    table,
    test,
    validate,
)
from deltaworks.cli.output import error_line, print_error, print_json
from deltaworks.errors import EXIT_INTERRUPTED, EXIT_SPEC, ConfigError
from deltaworks.model.results import error_document
from deltaworks.version import __version__

# Typer brings a click of its own and has no public name for this class, only for one below it.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

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
app.command("preview")(preview.preview)
app.command("test")(test.run_tests)
app.command("run")(run.run)
app.command("convert")(convert.convert)
app.command("schema")(schema.schema)
app.add_typer(runs.app, name="runs")
app.command("checks")(checks.checks)
app.add_typer(quarantine.app, name="quarantine")
app.add_typer(table.app, name="table")
app.add_typer(secrets.app, name="secrets")
app.add_typer(sources.app, name="sources")
app.add_typer(stream.app, name="stream")
app.add_typer(jars.app, name="jars")


def main() -> None:
    """Run the command line; a wrong word on it gets one short message."""
    sys.exit(answer(sys.argv[1:]))


def answer(arguments: list[str]) -> int:
    """The exit code of one command line."""
    try:
        code = app(arguments, prog_name="deltaworks", standalone_mode=False)
    except _UsageError as problem:
        if type(problem).__name__ == "NoArgsIsHelpError":
            error_line(str(problem))
            return EXIT_SPEC
        error = _usage_error(problem)
        if "--json" in arguments:
            print_json({"error": error_document(error)})
        else:
            print_error(error)
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        error_line("stopped")
        return EXIT_INTERRUPTED
    return code if isinstance(code, int) else 0


def _usage_error(problem: Exception) -> ConfigError:
    """A wrong word on the command line, and where the right ones are listed."""
    context = getattr(problem, "ctx", None)
    command = context.command_path if context is not None else "deltaworks"
    if hasattr(problem, "possibilities") and hasattr(problem, "option_name"):
        near = problem.possibilities
        hint = f'did you mean "{near[0]}"?' if near else f"see `{command} --help`"
        return ConfigError(f'there is no option "{problem.option_name}"', hint=hint)
    said: str = getattr(problem, "format_message", lambda: str(problem))()
    return ConfigError(said.rstrip(".").replace("'", '"'), hint=f"see `{command} --help`")
