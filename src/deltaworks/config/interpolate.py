"""`${var:NAME}` and `${env:NAME}` in files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from deltaworks.config.files import Document, Where
from deltaworks.config.secret_words import is_secret_word
from deltaworks.errors import Problem
from deltaworks.redact import know_secret, know_url_password
from deltaworks.suggest import did_you_mean

_PATTERN = re.compile(r"\$(\$\{)|\$\{(?P<kind>[a-z]*):?(?P<name>[^}]*)\}")


@dataclass(frozen=True)
class Names:
    """What names stand for: the project's variables and the environment."""

    variables: Mapping[str, str]
    environ: Mapping[str, str]


def interpolate(document: Document, names: Names) -> tuple[Document, tuple[Problem, ...]]:
    """The document with every name replaced, and the names that stand for nothing."""
    problems: list[Problem] = []
    value = _replace(document.value, (), document, names, problems)
    return replace(document, value=value), tuple(problems)


def _replace(
    value: Any, where: Where, document: Document, names: Names, problems: list[Problem]
) -> Any:
    if isinstance(value, dict):
        return {
            key: _replace(item, (*where, key), document, names, problems)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _replace(item, (*where, i), document, names, problems) for i, item in enumerate(value)
        ]
    if not isinstance(value, str) or "$" not in value:
        return value

    def stand_in(match: re.Match[str]) -> str:
        if match[1]:
            return "${"
        found = _look_up(match["kind"], match["name"], names)
        if isinstance(found, str):
            _keep_secret(found, match["name"], where)
            return found
        message, hint = found
        problems.append(document.problem(where, code="unknown_name", message=message, hint=hint))
        return match[0]

    return _PATTERN.sub(stand_in, value)


def _keep_secret(value: str, name: str, where: Where) -> None:
    """A secret that comes in by a name is kept out of every text, as one from a vault is."""
    keys = [part for part in where if isinstance(part, str)][-1:]
    if any(is_secret_word(word) for word in (name, *keys)):
        know_secret(value)
    know_url_password(value)


def _look_up(kind: str, name: str, names: Names) -> str | tuple[str, str]:
    if kind == "var":
        if name in names.variables:
            return str(names.variables[name])
        hint = did_you_mean(name, names.variables)
        return (
            f'variable "{name}" is not set',
            f"{hint} (or give it: --var {name}=...)" if hint else f"give it: --var {name}=...",
        )
    if kind == "env":
        if name in names.environ:
            return names.environ[name]
        return f'environment variable "{name}" is not set', f"export {name}=..."
    return (
        f'"${{{kind}:{name}}}" is not a name that can be replaced',
        "write ${var:NAME} or ${env:NAME}; $${ stands for ${ itself",
    )
