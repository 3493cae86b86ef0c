"""What secrets look like, wherever they stand."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

SHAPES = (
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
_NAMED = re.compile(
    r"(?:\A|[\s;,&])(?:password|passwd|pwd|passphrase|secret|token)\s*=\s*"
    r"(?:\"([^\"]+)\"|'([^']+)'|([^\s;,&\"']+))",
    re.IGNORECASE,
)
"""A secret by its name, as in `host=db user=me password=...`; in a query it may be a column."""
_LONG, _BITS, _MAX_RUN = 16, 3.4, 4


def secrets_in(text: str) -> Iterator[str]:
    """The parts of a text that have the shape of a secret, such as the password of a URL."""
    for _, shape in SHAPES:
        yield from (match[shape.groups] for match in shape.finditer(text))
    yield from (match[match.lastindex or 0] for match in _NAMED.finditer(text))


def is_random(text: str) -> bool:
    """Whether a text is long, without spaces, and its letters follow no language."""
    if len(text) < _LONG or re.search(r"\s", text):
        return False
    counts = Counter(text)
    bits = -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
    runs = len(re.findall(r"\d+|[a-z]+|[A-Z]+|[^\da-zA-Z]+", text))  # names have few, and long ones
    return bits >= _BITS and runs >= len(text) / _MAX_RUN
