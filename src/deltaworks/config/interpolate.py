"""`${var:NAME}`, `${env:NAME}` and `${secret:NAME}` in files.

A value that comes in by a name is kept out of every text if it may be a secret: by the name, by its
place in the file or in a text, by its shape, or because the user says so (`${secret:NAME}`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from deltaworks.config.documents import Document, Where
from deltaworks.config.secret_shapes import is_random, secrets_in
from deltaworks.config.secret_words import MAYBE, OF_COLUMNS, may_be_secret_word, words
from deltaworks.errors import Problem
from deltaworks.redact import know_secret, know_url_password
from deltaworks.suggest import did_you_mean

_SECRET = "secret"  # noqa: S105 - the word of ${secret:NAME}
_CODE = "unknown_name"
_ENVIRONMENT = "environment variable"
_PATTERN = re.compile(r"\$(\$\{)|\$\{(?P<kind>[a-z]*):?(?P<name>[^}]*)\}")
_BEFORE = re.compile(
    r"(?P<key>[\w.-]+)[ ]*[=:][ ]*[\"'({]*\Z|(?P<user>://[^/@\s]*:)\Z"
    r"|\b(?P<scheme>bearer|basic|token|apikey)\s+\Z",
    re.IGNORECASE,
)
"""What a text says before a value: `password=`, the user of a URL, or `Bearer`."""


class Given(dict[str, str]):
    """Variables of one command, each of which must be of use to what it does."""


@dataclass(frozen=True)
class Names:
    """What names stand for: the project's variables and the environment."""

    variables: Mapping[str, str]
    environ: Mapping[str, str]
    of_project: frozenset[str] = frozenset()
    """Variables that the project file sets or uses itself."""
    given: frozenset[str] = frozenset()
    """Variables of the command, each of which must be of use."""
    declared: frozenset[str] = frozenset()
    """Variables that the pipeline file declares."""


def variables_in(value: Any) -> tuple[str, ...]:
    """The names of all variables that a document uses, in their order."""
    texts = [value] if isinstance(value, str) else []
    found = [m["name"] for text in texts for m in _PATTERN.finditer(text) if m["kind"] == "var"]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inside:
        found.extend(variables_in(item))
    return tuple(dict.fromkeys(found))


def is_unset_environment(problem: Problem) -> bool:
    """Whether a problem is that the environment lacks a name, and not that the file is wrong."""
    return problem.code == _CODE and problem.message.startswith(_ENVIRONMENT)


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
            if match["kind"] == _SECRET:
                know_secret(found, marked=True)
            _keep_secret(found, match, where)
            return found
        message, hint = found
        problems.append(document.problem(where, code=_CODE, message=message, hint=hint))
        return match[0]

    replaced = _PATTERN.sub(stand_in, value)
    know_url_password(replaced)
    return replaced


def _keep_secret(value: str, match: re.Match[str], where: Where) -> None:
    """Keep a value out of every text if it may be a secret, and what has the shape of one."""
    places = [match["name"], *_named_before(match)]
    if not OF_COLUMNS & set(where):
        places += _keys(where)
    maybe = any(MAYBE & set(words(place)) for place in places)
    if any(may_be_secret_word(place) for place in places) or (maybe and is_random(value)):
        know_secret(value)
    know_secret(*secrets_in(value))


def _keys(where: Where) -> list[str]:
    """The keys a value stands under, without names that users give to sources and buckets."""
    keys = [part for part in where if isinstance(part, str)]
    return [*keys[-1:], *(key for key in keys[2:-1] if "://" not in key)]


def _named_before(match: re.Match[str]) -> tuple[str, ...]:
    """The word for what stands at this place of a text."""
    before = _BEFORE.search(match.string[: match.start()])
    if before is None:
        return ()
    return (before["key"] or "password",)


def _look_up(kind: str, name: str, names: Names) -> str | tuple[str, str]:
    if kind == "var":
        if name in names.variables:
            return str(names.variables[name])
        hint = did_you_mean(name, names.variables)
        return (
            f'variable "{name}" is not set',
            f"{hint} (or give it: --var {name}=...)" if hint else f"give it: --var {name}=...",
        )
    if kind in ("env", _SECRET):
        if name in names.environ:
            return names.environ[name]
        return f'{_ENVIRONMENT} "{name}" is not set', f"export {name}=..."
    return (
        f'"${{{kind}:{name}}}" is not a name that can be replaced',
        "write ${var:NAME}, ${env:NAME} or ${secret:NAME}; $${ stands for ${ itself",
    )
