"""Find secrets that stand in a file in the clear."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from deltaworks.config.files import Document, Where
from deltaworks.config.secret_words import is_secret_word, words
from deltaworks.errors import Problem
from deltaworks.redact import know_secret

CODE = "secret"
_REFERENCE = re.compile(r"\$\{[^}]*\}")
_SHAPES = (
    ("an AWS access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    (
        "a password in a URL",
        re.compile(r"\b[a-z][a-z0-9+.-]*://[^/\s:@]*:([^/\s@]+)@", re.IGNORECASE),
    ),
    (
        "a password in a URL",
        re.compile(
            r"[?&;](?:password|passwd|pwd|secret|token|sig|accesstoken)=([^&;\s]+)", re.IGNORECASE
        ),
    ),
    ("a password", re.compile(r"LoginModule\b.*\bpassword\s*=\s*[\"']([^\"']+)[\"']", re.DOTALL)),
    ("an account key", re.compile(r"\bAccountKey=([A-Za-z0-9+/=]{20,})")),
    (
        "a token",
        re.compile(
            r"\b(?:gh[pousr]_\w{36}|github_pat_\w{22,}|glpat-[\w-]{20}|xox[abprs]-[\w-]{10,}"
            r"|sk_live_\w{20,}|hvs\.[\w-]{20,}|dapi[0-9a-f]{32}|AIza[\w-]{35}"
            r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,})"
        ),
    ),
)
_MAYBE = frozenset({"key", "auth", "authorization", "signature", "credential", "credentials"})
"""A key that ends so holds a secret if its value looks like nothing else."""
_OF_COLUMNS = frozenset(
    {
        *("transform", "checks", "columns", "schema", "description", "query"),
        *("partition_by", "cluster_by", "merge_keys", "update_columns", "insert_columns"),
    }
)
"""Below these, names are names of columns, and `password: string` is a type."""
_LONG, _BITS, _LONGEST_RUN = 16, 3.4, 4
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
    for what, shape in _SHAPES:
        if match := shape.search(text):
            know_secret(match[shape.groups])
            return what
    if not text or _OF_COLUMNS & set(where):
        return ""
    key = _key(where)
    if is_secret_word(key):
        return "a secret"
    is_maybe = bool(_MAYBE & set(words(key)[-1:]))
    return "what looks like a secret" if is_maybe and _is_random(text) else ""


def _key(where: Where) -> str:
    return next((part for part in reversed(where) if isinstance(part, str)), "")


def _is_random(text: str) -> bool:
    """Whether a text is long, without spaces, and its letters follow no language."""
    if len(text) < _LONG or re.search(r"\s", text):
        return False
    counts = Counter(text)
    bits = -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
    runs = len(re.findall(r"\d+|[a-z]+|[A-Z]+|[^\da-zA-Z]+", text))  # names have few, and long ones
    return bits >= _BITS and runs >= len(text) / _LONGEST_RUN


def _hint(where: Where, document: Document) -> str:
    parts = words(_key(where))
    joined = " ".join(parts)
    field = next((name for name, tail in _FIELDS if " ".join(tail) in joined), "password")
    is_classic = isinstance(document.value, dict) and "pipelineId" in document.value
    named = '"credentialId": "NAME"' if is_classic else "credential: NAME"
    return f"store it with `deltaworks secrets set NAME {field}`, and write `{named}` instead"
