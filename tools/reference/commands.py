"""A page of all commands, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from deltaworks.cli.app import command_line


def commands_page() -> str:
    """Every command with its arguments and options."""
    parts = ["# Commands\n", "`deltaworks COMMAND --help` says the same.\n"]
    parts.extend(_command(words, command) for words, command in _commands())
    return "\n".join(parts)


def _commands() -> Iterator[tuple[str, Any]]:
    root: Any = typer.main.get_command(command_line())
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
            continue
        for second, leaf in inner.items():
            yield f"{name} {second}", leaf


def _command(words: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([f"deltaworks {words}", "[OPTIONS]", *map(_metavar, arguments)])
    rows = "| | |\n|---|---|\n"
    for param in command.params:
        shown = _metavar(param) if param in arguments else _option(param)
        rows += f"| `{_escaped(shown)}` | {_escaped(getattr(param, 'help', None) or '')} |\n"
    return f"## {words}\n\n{command.help}\n\n`{usage}`\n\n{rows}"


def _metavar(param: Any) -> str:
    return str(param.metavar or param.name.upper())


def _option(param: Any) -> str:
    names = ", ".join(param.opts)
    return names if param.is_flag else f"{names} {param.metavar or param.name.upper()}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
