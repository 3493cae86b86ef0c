"""`deltaworks secrets set | list | rm | test`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from deltaworks.api import Project
from deltaworks.cli.boundary import answering
from deltaworks.cli.options import (
    DebugOption,
    JsonOption,
    ProfileOption,
    ProjectOption,
    parse_pairs,
)
from deltaworks.cli.output import line, print_json, print_table
from deltaworks.config.credentials.credential import (
    FIELDS,
    SECRET_FIELDS,
    parse_credential,
    require_name,
)
from deltaworks.config.credentials.vault import Vault
from deltaworks.config.secret_words import is_secret_word
from deltaworks.errors import ConfigError
from deltaworks.redact import know_secret
from deltaworks.suggest import did_you_mean

app = typer.Typer(help="Credentials, by name; values are never shown.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The credential.")]


@app.command("set")
def set_credential(
    name: NameArgument,
    fields: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIELD|FIELD=VALUE]...",
            help="A field to be asked for, unseen; or one that is no secret, with its value.",
        ),
    ] = None,
    from_env: Annotated[
        list[str] | None,
        typer.Option(
            "--from-env", metavar="FIELD=VARIABLE", help="Take a field from the environment."
        ),
    ] = None,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read the one field named, or a JSON object of fields.")
    ] = False,
    backend: Annotated[
        str, typer.Option("--backend", help="Where to keep it; the first that can be written.")
    ] = "",
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Store a credential, or change fields of one; `FIELD=` removes a field."""
    with answering(as_json=as_json, debug=debug):
        require_name(name)
        keeper = _vault(project, profile).keeper(backend)
        given = _given(name, fields or [], from_env, stdin=stdin)
        before = keeper.get(name)
        kept = {**(before.values() if before else {}), **given}
        record = parse_credential(
            {field: value for field, value in kept.items() if value != ""}, name=name
        )
        keeper.put(name, record)
        if as_json:
            print_json({"name": name, "backend": keeper.name, "fields": record.present()})
        else:
            line(f"{name}: {', '.join(record.present())} ({keeper.name})")


@app.command("list")
def list_credentials(
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List the names of credentials, and where each is kept."""
    with answering(as_json=as_json, debug=debug):
        found = _vault(project, profile).names()
        if as_json:
            print_json({"credentials": [{"name": n, "backend": where} for n, where in found]})
        elif found:
            print_table(("name", "backend"), found)
        else:
            line("no credential is stored")


@app.command("rm")
def remove_credential(
    name: NameArgument,
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it; without this it is only shown.")
    ] = False,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Remove a credential. Shows where it is first; --apply removes it."""
    with answering(as_json=as_json, debug=debug):
        vault = _vault(project, profile)
        places = vault.places(name)
        if apply:
            places = vault.remove(name)
        if as_json:
            print_json({"name": name, "applied": apply, "backends": places})
            return
        done = "is removed" if apply else "would be removed; --apply removes it"
        line(f"{name} ({', '.join(places)}) {done}")


@app.command("test")
def open_credential(
    name: NameArgument,
    project: ProjectOption = ".",
    profile: ProfileOption = "",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Open a credential as a run would, and name its fields. Connects to nothing else."""
    with answering(as_json=as_json, debug=debug):
        found = _vault(project, profile).find(name)
        fields = found.credential.present()
        if as_json:
            print_json({"name": name, "backend": found.backend, "fields": fields})
        else:
            said = ", ".join(fields) or "no field; the cloud's own identity is used"
            line(f"{name} ({found.backend}): {said}")


def _vault(project: str, profile: str) -> Vault:
    return Project.open(project, profile=profile).project_ctx.vault


def _given(
    name: str, fields: Sequence[str], from_env: list[str] | None, *, stdin: bool
) -> dict[str, Any]:
    """The fields that the command line gives, asks for or reads."""
    asked = [field for field in fields if "=" not in field]
    split = [field.partition("=") for field in fields if "=" in field]
    plain = {field: value for field, _, value in split}
    named = parse_pairs(from_env, option="--from-env", example="--from-env password=DB_PASSWORD")
    for field in (*asked, *plain, *named):
        _require_field(field)
    for field, value in plain.items():
        if value and _is_secret(field):
            know_secret(value)
            raise ConfigError(
                f'"{field}" is a secret, and others can read a command line',
                hint=f"say `deltaworks secrets set {name} {field}` to be asked for it, "
                "or use --from-env or --stdin",
            )
    read = _from_stdin(asked) if stdin else {field: _ask(field) for field in asked}
    values = {**plain, **_from_environment(named), **read}
    if not values:
        raise ConfigError(
            "say which fields the credential has",
            hint=f"deltaworks secrets set {name} access_key secret_key region=eu-central-1",
        )
    return values


def _require_field(field: str) -> None:
    if field not in FIELDS and not field.startswith("options."):
        raise ConfigError(f'a credential has no field "{field}"', hint=did_you_mean(field, FIELDS))


def _is_secret(field: str) -> bool:
    return field in SECRET_FIELDS or (field.startswith("options.") and is_secret_word(field))


def _from_environment(named: dict[str, str]) -> dict[str, str]:
    values = {}
    for field, variable in named.items():
        if variable not in os.environ:
            raise ConfigError(
                f'environment variable "{variable}" is not set', hint=f"export {variable}=..."
            )
        values[field] = os.environ[variable]
        know_secret(*([values[field]] if _is_secret(field) else []))
    return values


def _from_stdin(asked: list[str]) -> dict[str, Any]:
    text = sys.stdin.read()
    know_secret(text)
    if len(asked) == 1:
        return {asked[0]: text.strip("\r\n")}
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if asked or not isinstance(values, dict):
        raise ConfigError(
            "--stdin reads the value of one field that is named, or a JSON object of fields",
            hint='such as {"user": "bob", "password": "..."}',
        )
    return values


def _ask(field: str) -> str:
    if not sys.stdin.isatty():
        raise ConfigError(
            f'there is no terminal to ask for "{field}"', hint="use --stdin or --from-env"
        )
    return str(typer.prompt(field, hide_input=_is_secret(field), err=True))
