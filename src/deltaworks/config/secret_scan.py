"""Find secrets that stand in a file in the clear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from deltaworks.config.documents import Document, Where
from deltaworks.config.secret_shapes import SHAPES, is_random
from deltaworks.config.secret_words import MAYBE, OF_COLUMNS, is_secret_word, words
from deltaworks.errors import Problem
from deltaworks.redact import know_secret

CODE = "secret"
_REFERENCE = re.compile(r"\$\{[^}]*\}")
_FIELDS = (
    ("secret_key", ("secret", "key")),
    ("secret_key", ("secret", "access")),
    ("access_key", ("access", "key")),
    ("account_key", ("account", "key")),
    ("client_secret", ("client", "secret")),
    ("session_token", ("session", "token")),
    ("sas_token", ("sas",)),
    ("token", ("token",)),
)


def secret_problems(document: Document) -> tuple[Problem, ...]:
    """Every secret that stands in a file, each with the command that stores it properly."""
    return tuple(
        document.problem(
            where,
            code=CODE,
            message=f'"{document.key(where)}" holds {what}; a secret must not stand in a file',
            hint=_hint(where, document),
        )
        for where, what in _found(document.value, ())
    )


def _found(value: Any, where: Where) -> Iterator[tuple[Where, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _found(item, (*where, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _found(item, (*where, i))
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        text = _REFERENCE.sub("", str(value)).strip()
        if what := _secret_in(text, where):
            know_secret(text)
            yield where, what


def _secret_in(text: str, where: Where) -> str:
    """What kind of secret a text is at its place; empty for none."""
    for what, shape in SHAPES:
        if match := shape.search(text):
            know_secret(match[shape.groups])
            return what
    if not text or OF_COLUMNS & set(where):
        return ""
    key = _key(where)
    if is_secret_word(key):
        return "a secret"
    is_maybe = bool(MAYBE & set(words(key)[-1:]))
    return "what looks like a secret" if is_maybe and is_random(text) else ""


def _key(where: Where) -> str:
    return next((part for part in reversed(where) if isinstance(part, str)), "")


def _hint(where: Where, document: Document) -> str:
    parts = words(_key(where))
    joined = " ".join(parts)
    field = next((name for name, tail in _FIELDS if " ".join(tail) in joined), "password")
    is_classic = isinstance(document.value, dict) and "pipelineId" in document.value
    named = '"credentialId": "NAME"' if is_classic else "credential: NAME"
    return f"store it with `deltaworks secrets set NAME {field}`, and write `{named}` instead"
