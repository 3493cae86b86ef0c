"""Secrets, known by their values, taken out of everything that leaves this process.

A value becomes known the moment it is read from a vault, an environment variable or a file. From
then on no text may carry it, neither plainly nor as URLs, JSON, base64 or Java spell it.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "***"
_LEAST = 5
"""Shorter values are left alone: they stand in every other text by chance."""
_LEAST_SURE = 8
"""From here on a value that is no plain word is found inside other words too."""
_WORD = re.compile(r"[a-z]+|[A-Z][a-z]+|\d+")
_URL_USER = re.compile(r"(?<=://)[^/@\s:\"']*:[^/@\s\"']+(?=@)")


class Redactor:
    """Knows values that must not be seen, and takes them out of texts."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._all: re.Pattern[str] | None = None
        self._sure: re.Pattern[str] | None = None
        self._lock = threading.Lock()

    def know(self, *values: str) -> None:
        """Keep these values out of every text from now on."""
        new = {part for value in values for part in _parts(value)} - self._values
        if not new:
            return
        with self._lock:
            self._values |= new
            self._all = _pattern(self._values)
            self._sure = _pattern(value for value in self._values if _is_sure(value))

    def scrub(self, text: str) -> str:
        """A text for people and logs without any known value, or a password in a URL."""
        if self._all is not None:
            text = self._all.sub(MASK, text)
        return _URL_USER.sub(MASK, text) if "://" in text else text

    def scrub_books(self, text: str) -> str:
        """A text that programs read back, without any value that is surely no word of theirs."""
        return text if self._sure is None else self._sure.sub(MASK, text)

    def holds(self, text: str) -> bool:
        """Whether a text carries a known value that is surely no ordinary word."""
        return self._sure is not None and self._sure.search(text) is not None

    def pattern(self) -> str:
        """A regular expression for whatever is surely secret, for others who take it out."""
        return "" if self._sure is None else self._sure.pattern

    def forget(self) -> None:
        """Know nothing again, as a new process does."""
        with self._lock:
            self._values, self._all, self._sure = set(), None, None


def _parts(value: str) -> Iterable[str]:
    """The value, and the lines of one that has several: logs are read line by line."""
    whole = value.strip()
    lines = [line.strip() for line in whole.splitlines()]
    return [part for part in {whole, *lines} if len(part) >= _LEAST]


def _is_sure(value: str) -> bool:
    """Whether a value is too odd to stand anywhere by chance, unlike `postgres`."""
    return len(value) >= _LEAST_SURE and _WORD.fullmatch(value) is None


def _pattern(values: Iterable[str]) -> re.Pattern[str] | None:
    forms = {form: _is_sure(value) for value in values for form in _forms(value)}
    longest_first = sorted(forms, key=len, reverse=True)
    parts = [_found(form, inside=forms[form]) for form in longest_first]
    return re.compile("|".join(parts)) if parts else None


def _found(form: str, *, inside: bool) -> str:
    """A plain word counts only by itself, or a password `orders` would change every path."""
    return re.escape(form) if inside else rf"(?<![\w/.-]){re.escape(form)}(?![\w/.-])"


def _forms(value: str) -> set[str]:
    """The value as it may be spelled on its way."""
    forms = {
        value,
        quote(value, safe=""),
        quote(value),
        quote_plus(value),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        value.replace("'", "''"),
    }
    forms |= {form.replace("%", "%25") for form in forms if "%" in form}
    forms |= {re.sub("%..", lambda hexed: hexed[0].lower(), form) for form in forms}
    if _is_sure(value):
        forms |= _encoded(value.encode())
    return {form for form in forms if len(form) >= _LEAST}


def _encoded(raw: bytes) -> set[str]:
    """In base64 a text looks different at each of three offsets; only whole letters are kept."""
    found = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}
    for shift in range(3):
        padded = b"\0" * shift + raw
        letters = base64.b64encode(padded).decode()
        first = (shift * 8 + 5) // 6
        last = len(padded) * 8 // 6
        found |= {letters[first:last], letters[first:last].translate(_URL_SAFE)}
    return found


_URL_SAFE = str.maketrans("+/", "-_")
_redactor = Redactor()


def know_secret(*values: str) -> None:
    """Keep these values out of everything that leaves the process."""
    _redactor.know(*values)


def know_url_password(url: str) -> None:
    """Keep the password of a URL out of everything, if it has one."""
    for match in _URL_USER.finditer(url):
        _redactor.know(match[0].partition(":")[2])


def scrub(text: str) -> str:
    """A text without any secret that is known."""
    return _redactor.scrub(text)


def scrub_document(value: Any) -> Any:
    """Plain values, every text in them without secrets; numbers stay as they are."""
    return _each_text(value, scrub)


def safe_json(document: Any) -> str:
    """JSON for our own books and for notes in commits, which are read back by what they say."""
    return json.dumps(_each_text(document, _redactor.scrub_books))


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(key)): _each_text(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(item, change) for item in value]
    return value


def holds_secret(text: str) -> bool:
    """Whether a text carries a secret that is surely one."""
    return _redactor.holds(text)


def secret_pattern() -> str:
    """A regular expression that finds every secret that is surely one; empty when none is known."""
    return _redactor.pattern()


def forget_secrets() -> None:
    """Know no secret any more; for tests."""
    _redactor.forget()
