"""The command `deltaworks`: every command in one place, each in a file of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Annotated

import typer

from deltaworks.cli.output import error_line, print_error, print_json
from deltaworks.errors import EXIT_INTERRUPTED, EXIT_SPEC, ConfigError
from deltaworks.model.results import error_document
from deltaworks.version import __version__

# Typer brings a click of its own and has no public name for this class, only for one below it.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

_GROUP = "app"
_COMPLETING = "_DELTAWORKS_COMPLETE"
"""Set by the shell when it asks which words may follow."""
_COMMANDS: Mapping[str, str] = {
    "init": "init",
    "doctor": "doctor",
    "validate": "validate",
    "graph": "graph",
    "plan": "plan",
    "preview": "preview",
    "test": "run_tests",
    "run": "run",
    "convert": "convert",
    "schema": "schema",
    "runs": _GROUP,
    "checks": "checks",
    "quarantine": _GROUP,
    "table": _GROUP,
    "sql": "sql",
    "secrets": _GROUP,
    "sources": _GROUP,
    "stream": _GROUP,
    "jars": _GROUP,
}
"""Each command, in the order of the help, and its function in the module of its name."""


def command_line(names: Iterable[str] = _COMMANDS) -> typer.Typer:
    """The command line with some of its commands; the modules of others are not imported."""
    app = typer.Typer(
        name="deltaworks",
        help="Data pipelines on Delta Lake, run by Spark, that land every batch exactly once.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    for name in names:
        found = getattr(import_module(f"deltaworks.cli.commands.{name}"), _COMMANDS[name])
        if _COMMANDS[name] == _GROUP:
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"deltaworks {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Data pipelines on Delta Lake, run by Spark, that land every batch exactly once."""


def main() -> None:
    """Run the command line; a wrong word on it gets one short message."""
    sys.exit(answer(sys.argv[1:]))


def answer(arguments: list[str]) -> int:
    """The exit code of one command line."""
    try:
        app = command_line(_named(arguments))
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


def _named(arguments: list[str]) -> Iterable[str]:
    """The one command that is called, or all of them where help or completion lists them."""
    first = arguments[0] if arguments else ""
    return (first,) if first in _COMMANDS and _COMPLETING not in os.environ else _COMMANDS


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
