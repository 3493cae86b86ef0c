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
        *(("sas", "token"), ("secret", "access"), ("fixed", "token")),
    }
)
MAYBE = frozenset({"key", "auth", "authorization", "signature", "credential", "credentials"})
"""A key that ends so holds a secret if its value looks like nothing else."""
OF_COLUMNS = frozenset(
    {
        *("transform", "checks", "columns", "schema", "description", "query"),
        *("partition_by", "cluster_by", "merge_keys", "update_columns", "insert_columns"),
    }
)
"""Below these, names are names of columns, and `password: string` is a type."""
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


_SECRET_ANYWHERE = _SECRET | {
    *("pass", "pw", "psw", "passcode", "pin", "salt", "pepper", "bearer", "jwt", "jaas", "cookie"),
    *("secrets", "tokens", "passwords"),
}
_GLUED = re.compile(
    r"password|passwd|passphrase|secrets?$|tokens?$|(?:api|secret|access|private|account|shared"
    r"|encryption|master|signing)keys?$"
)
_ABOUT_PLACES = (_ABOUT - {"id", "env"}) | {
    *("table", "schema", "bucket", "region", "host", "port", "user", "dir", "directory", "folder"),
    *("mode", "format", "version", "prefix", "limit", "size", "days", "ttl", "topic", "arn"),
}
_WHICH = frozenset({"prod", "production", "dev", "test", "staging", "live", "value", "old", "new"})
"""A key that ends so says which of several secrets it holds."""


def is_secret_word(key: str) -> bool:
    """Whether a key names a secret, so that its value is one."""
    parts = _bare(key)
    while len(parts) > 1 and (parts[-1].isdigit() or parts[-1] in _WHICH):
        parts.pop()
    if not parts or parts[-1] in _ABOUT:
        return False
    named = parts[-1] in _SECRET | {"pass"} or _GLUED.search(parts[-1])
    return bool(named) or bool(_SECRET_PAIRS & set(pairwise(parts)))


def may_be_secret_word(key: str) -> bool:
    """Whether what stands under a key is better hidden: a word for secrets anywhere in it."""
    parts = _bare(key)
    if not parts or parts[-1] in _ABOUT_PLACES:
        return False
    named = any(part in _SECRET_ANYWHERE or _GLUED.search(part) for part in parts)
    return named or bool(_SECRET_PAIRS & set(pairwise(parts)))


def _bare(key: str) -> list[str]:
    """The words of a key, without the numbers that some end in."""
    return [part.rstrip("0123456789") or part for part in words(key)]
