"""Words that say: what stands here is a secret."""

from __future__ import annotations

import re
from itertools import pairwise

_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SECRET = frozenset(
    {
        *("password", "passwd", "pwd", "passphrase", "secret", "token", "sas"),
        *("apikey", "secretkey", "accesskey"),
    }
)
_SECRET_PAIRS = frozenset(
    {
        *(("secret", "key"), ("access", "key"), ("account", "key"), ("private", "key")),
        *(("api", "key"), ("client", "secret"), ("shared", "key"), ("encryption", "key")),
        *(("sas", "token"), ("secret", "access")),
    }
)
_ABOUT = frozenset(
    {
        *("file", "keyfile", "path", "name", "id", "email", "column", "columns", "field", "header"),
        *("provider", "providers", "type", "class", "impl", "algorithm", "kind", "service"),
        *("env", "variable", "url", "uri", "endpoint", "regex", "enabled", "required"),
        *("length", "count", "expiry", "expires", "interval", "hours", "minutes", "seconds", "ms"),
    }
)
"""A key that ends so speaks about a secret, and does not hold it."""


def words(key: str) -> tuple[str, ...]:
    """The words of a key: `fs.s3a.secret.key`, `secretKey` and `SECRET_KEY` alike."""
    return tuple(part.lower() for part in _PARTS.findall(key))


def is_secret_word(key: str) -> bool:
    """Whether a key names a secret, so that its value is one."""
    parts = words(key)
    if not parts or parts[-1] in _ABOUT:
        return False
    pairs = set(pairwise(parts))
    return parts[-1] in _SECRET or bool(_SECRET_PAIRS & pairs)
