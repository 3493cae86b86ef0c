"""Secrets, known by their values, taken out of everything that leaves this process.

A value becomes known the moment it is read from a vault, an environment variable or a file. From
then on no text may carry it, neither plainly nor in any spelling of `deltaworks.encoded_forms`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any
from urllib.parse import quote, quote_plus

from deltaworks.encoded_forms import (
    MIN_PIECE,
    Decoded,
    Span,
    any_of,
    cut_pieces,
    encoded,
    inner_lines,
    places_of,
    plain_form,
    replace_spans,
    spelled,
    undo_escapes,
    usually_encoded,
)

MASK = "***"
_LEAST = 5
"""Shorter values are left alone: they stand in every other text by chance."""
_MIN_MARKED = 3
"""What a user marks as a secret is hidden from here on."""
_MIN_SURE = 8
"""From here on a value that is no plain word is found inside other words too."""
_WORD = re.compile(r"[a-z]+|[A-Z][a-z]+|\d+")
_COMMON = frozenset(
    {
        *("false", "none", "null", "true", "default", "enabled", "disabled", "required"),
        *("prod", "production", "staging", "stage", "test", "testing", "dev", "development"),
        *("local", "localhost", "public", "private", "internal", "latest", "string", "integer"),
        *("password", "passwd", "secret", "secrets", "token", "credential", "credentials"),
        *("username", "database", "table", "column", "pipeline", "batch", "error", "https"),
    }
)
"""Words of every message; to hide them would hide the messages and protect nothing."""
_NEAR = 3
_PART_BEFORE = re.compile(r"(?:[_/.-]|(?<!\\)[^\W_]|(?<=\\)[^\W_abfnrtv])\Z")
"""What makes a word a part of a longer one; `\\n` in front of it is the end of a line."""
_PART_AFTER = re.compile(r"[\w/]|[.-]+\w")
_URL_USER = re.compile(r"(?<=://)[^/@\s:\"']*:[^/@\s\"']+(?=@)")


@dataclass(frozen=True)
class _Known:
    """Values, and every form to look for; made once for each set of values."""

    values: frozenset[str] = frozenset()
    sure: frozenset[str] = frozenset()
    """Forms that are found inside other words, too."""
    words: frozenset[str] = frozenset()
    """Forms that count only by themselves, or a password `orders` would change every path."""
    whole: tuple[str, ...] = ()
    """Values of which a half is told by a cut."""

    def with_values(self, new: Iterable[str]) -> _Known:
        sure, words = set(self.sure), set(self.words)
        whole = list(self.whole)
        for value in new:
            forms = {form for way in spelled(value) for form in (way, plain_form(way))}
            if _is_sure(value):
                sure |= forms | encoded(value)
                whole.append(value)
            else:
                words |= forms
        least = _MIN_MARKED
        return _Known(
            values=self.values.union(new),
            sure=frozenset(form for form in sure if len(form) >= least),
            words=frozenset(form for form in words if len(form) >= least),
            whole=tuple(whole),
        )

    @cached_property
    def _first_letters(self) -> re.Pattern[str]:
        """Finds out quickly that a text holds nothing known, as nearly every text does."""
        tails = (value[-MIN_PIECE:] for value in self.whole)
        heads = (form[:MIN_PIECE] for form in (*self.sure, *self.words))
        return any_of((*heads, *tails))

    def spans(self, text: str, *, all_forms: bool) -> Iterator[Span]:
        """Where known values stand in a text as it is written."""
        if all_forms:
            yield from inner_lines(text, self.whole)
        if self._first_letters.search(text) is None:
            return
        for form in self.sure:
            if form in text:
                yield from places_of(text, form)
        if not all_forms:
            return
        for form in self.words:
            if form in text:
                yield from (span for span in places_of(text, form) if _stands_alone(text, span))
        yield from cut_pieces(text, self.whole)

    def found(self, text: str, *, all_forms: bool) -> Iterator[Span]:
        """Where known values stand in a text, whatever escapes it spells them with."""
        yield from self.spans(text, all_forms=all_forms)
        levels: list[Decoded] = []
        for decoded in undo_escapes(text):
            levels.insert(0, decoded)
            for span in self.spans(decoded.text, all_forms=all_forms):
                yield reduce(lambda found, level: level.span_before(found), levels, span)

    def without(self, text: str, *, all_forms: bool) -> str:
        """The text with a mask in place of each known value."""
        spans = list(self.found(text, all_forms=all_forms)) if self.values else []
        return replace_spans(text, spans, MASK) if spans else text


class Redactor:
    """Knows values that must not be seen, and takes them out of texts."""

    def __init__(self) -> None:
        self._known = _Known()
        self._lock = threading.Lock()

    def know(self, *values: str, marked: bool = False) -> None:
        """Keep these values out of every text from now on."""
        parts = {part for value in values for part in _parts(value, marked=marked)}
        with self._lock:
            if new := parts - self._known.values:
                self._known = self._known.with_values(new)

    def scrub(self, text: str) -> str:
        """A text for people and logs without any known value, or a password in a URL."""
        text = self._known.without(text, all_forms=True)
        return _URL_USER.sub(MASK, text) if "://" in text else text

    def scrub_books(self, text: str) -> str:
        """A text that programs read back, without any value that is surely no word of theirs."""
        return self._known.without(text, all_forms=False)

    def holds(self, text: str) -> bool:
        """Whether a text carries a known value that is surely no ordinary word."""
        return next(self._known.found(text, all_forms=False), None) is not None

    def pattern(self) -> str:
        """A regular expression for whatever is surely secret, for others who take it out."""
        sure = filter(_is_sure, self._known.values)
        forms = {form for value in sure for form in _listed(value) if len(form) >= _LEAST}
        return "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))

    def forget(self) -> None:
        """Know nothing again, as a new process does."""
        with self._lock:
            self._known = _Known()


def _parts(value: str, *, marked: bool) -> Iterable[str]:
    """The value, and the lines of one that has several: logs are read line by line."""
    whole = value.strip()
    lines = [line.strip() for line in whole.splitlines()]
    least = _MIN_MARKED if marked else _LEAST
    found = [part for part in {whole, *lines} if len(part) >= least]
    return [part for part in found if marked or part.lower() not in _COMMON]


def _is_sure(value: str) -> bool:
    """Whether a value is too odd to stand anywhere by chance, unlike `postgres`."""
    return len(value) >= _MIN_SURE and _WORD.fullmatch(value) is None


def _stands_alone(text: str, span: Span) -> bool:
    """Whether a part is a word of its own; a full stop ends one, and so does an escaped line."""
    start, end = span
    before = _PART_BEFORE.search(text[max(0, start - _NEAR) : start])
    return before is None and _PART_AFTER.match(text, end) is None


def _listed(value: str) -> set[str]:
    """The forms of a value one by one, for who can only compare."""
    from html import escape

    forms = {
        *spelled(value),
        *usually_encoded(value),
        *(quote(value, safe=""), quote(value), quote_plus(value), escape(value)),
        *(repr(value)[1:-1], repr(value.encode(errors="replace"))[2:-1]),
        *(json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]),
    }
    forms |= {form.replace("%", "%25") for form in forms if "%" in form}
    return forms | {re.sub("%..", lambda hexed: hexed[0].lower(), form) for form in forms}


_redactor = Redactor()


def know_secret(*values: str, marked: bool = False) -> None:
    """Keep these values out of everything that leaves the process.

    Very short and very common values are left alone, unless a user marked them.
    """
    _redactor.know(*values, marked=marked)


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
