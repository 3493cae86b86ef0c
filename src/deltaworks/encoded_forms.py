"""How a text may be spelled on its way out, and where it stands in a text that spells it so.

Escapes of URLs, XML, JSON, Python and Java are undone, however often they were put on top of each
other, and lines that were wrapped are joined. What has no escapes to undo is listed: base64 at each
of its three offsets, hex, doubled quotes, and letters that an encoding could not keep.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import quote_plus

Span = tuple[int, int]
_LEVELS = 5
"""How many escapes on top of each other are undone."""
_ESCAPED = re.compile(  # every choice begins with a letter of its own, which makes it quick
    r"%[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*"
    r"|\\\\*(?:x[0-9A-Fa-f]{2}(?:\\+x[0-9A-Fa-f]{2})*|u[0-9A-Fa-f]{4}(?:\\+u[0-9A-Fa-f]{4})*"
    r"|U[0-9A-Fa-f]{8}(?:\\+U[0-9A-Fa-f]{8})*|u\{[0-9A-Fa-f]{1,6}\}(?:\\+u\{[0-9A-Fa-f]{1,6}\})*"
    r"|[0-3][0-7]{2}(?:\\+[0-3][0-7]{2})*|\r?\n[ \t>]*)?"
    r"|&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8}[0-9]?);"
    r"|=\r?\n[ \t>]*|\r\n(?!\Z)[ \t>]*|\n(?!\Z)[ \t>]*|\x1b\[[0-9;]*m"
)
_ODD = re.compile(r"[\\%&\x1b]|\n(?!\Z)")
_CODES = re.compile(r"(?<!\\)\\+[xuU]?\{?([0-9A-Fa-f]+)")  # a run of backslashes is read once
_URL_SAFE = str.maketrans("+/", "-_")
_CUT_AFTER = re.compile(r"[\"'`)\]}>]|[ \t]*(?:\Z|\r?\n|\.\.|…|\[\.)")
_CUT_BEFORE = re.compile(r"(?:\A|\n|\.\.|…)[ \t\"'`(\[{<]*\Z")
_LOOK_BACK = 12
MIN_PIECE, _MAX_PIECE = 6, 16
_MIN_LISTED = 5
_LONG = 40
"""A value this long may be wrapped into three lines or more."""


@dataclass(frozen=True)
class Decoded:
    """A text with one level of escapes undone, and where its parts were before."""

    text: str
    starts: tuple[int, ...]
    """Where what an escape stood for begins in the text."""
    ends: tuple[int, ...]
    """Where it ends."""
    before: tuple[Span, ...]
    """Where the escape itself was."""

    def span_before(self, span: Span) -> Span:
        """Where a part of the text stood before; an escape counts as a whole."""
        return self._place(span[0], end=False), self._place(span[1], end=True)

    def _place(self, at: int, *, end: bool) -> int:
        i = bisect_right(self.starts, at - 1 if end else at) - 1
        if i < 0:
            return at
        if at < self.ends[i] or at == (self.ends[i] if end else self.starts[i]):
            return self.before[i][1 if end else 0]
        return self.before[i][1] + at - self.ends[i]


def undo_escapes(text: str) -> Iterator[Decoded]:
    """The text with its escapes undone, level by level; nothing for a text without any."""
    for _ in range(_LEVELS):
        if _ODD.search(text) is None:
            return
        decoded = _undone(text)
        if decoded.text == text:
            return
        yield decoded
        text = decoded.text


def plain_form(text: str) -> str:
    """The text with all its escapes undone."""
    for decoded in undo_escapes(text):
        text = decoded.text
    return text


def _undone(text: str) -> Decoded:
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    before: list[Span] = []
    at = length = 0
    for match in _ESCAPED.finditer(text):
        start, end = match.span()
        meant = _meaning(match[0])
        parts += (text[at:start], meant)
        length += start - at
        starts.append(length)
        length += len(meant)
        ends.append(length)
        before.append((end if "\n" in match[0] else start, end))  # a line's end is no part of it
        at = end
    parts.append(text[at:])
    return Decoded("".join(parts), tuple(starts), tuple(ends), tuple(before))


def _meaning(escape: str) -> str:
    """What an escape stands for; nothing for a backslash before what follows, or a line's end."""
    if escape[0] == "&":
        from html import unescape  # brings a long list along, and few texts need it

        return unescape(escape)
    if escape[0] == "%":
        return _letters(bytes.fromhex(escape.replace("%", "")))
    codes = _CODES.findall(escape)
    if not codes:
        return ""
    if "U" in escape or "{" in escape:
        return "".join(chr(int(code, 16)) for code in codes if int(code, 16) <= sys.maxunicode)
    if "u" in escape:
        units = b"".join(int(code, 16).to_bytes(2, "big") for code in codes)
        return units.decode("utf-16-be", errors="replace")
    return _letters(bytes(int(code, 16 if "x" in escape else 8) for code in codes))


def _letters(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def spelled(value: str) -> set[str]:
    """The value in the spellings that no escape accounts for, and as it is."""
    forms = {value, value.replace(" ", "+")}
    if len(value) >= _MIN_LISTED:  # letter by letter, and in two bytes each
        forms |= {between.join(value) for between in ("\0", ", ", "', '", '", "', ",")}
    for quote in ("'", '"'):
        if quote in value:
            doubled = (quote * 2, quote * 3, "'\\''", "'\"'\"'")
            forms |= {value.replace(quote, twice) for twice in doubled}
    if not value.isascii():
        forms |= _garbled(value)
        forms |= _composed(value)
    return forms


def _composed(value: str) -> set[str]:
    from unicodedata import normalize  # few values need it

    return {normalize(form, value) for form in ("NFC", "NFD")}


def _garbled(value: str) -> set[str]:
    """The value as programs print it that know no letters like its own, or others for them."""

    def replaced(change: str, *, each_byte: bool) -> str:
        return "".join(
            c if c.isascii() else change * (len(c.encode(errors="replace")) if each_byte else 1)
            for c in value
        )

    found = {replaced(mark, each_byte=each) for mark in "?\ufffd" for each in (False, True)}
    raw = value.encode(errors="replace")
    return found | {raw.decode("latin-1"), raw.decode("cp1252", errors="replace")}


def encoded(value: str) -> set[str]:
    """The value as part of a base64 text, at each of three offsets, in hex, and byte by byte.

    Only letters that belong to the value alone are part of a form.
    """
    raws = _bytes_of(value)
    found = {form for raw in raws for form in (*_base64(raw), *_hexed(raw))}
    found.add(", ".join(str(byte) for byte in value.encode(errors="replace")))
    return found


def usually_encoded(value: str) -> set[str]:
    """The same as most programs do it, for who has little room for a list."""
    raw = value.encode(errors="replace")
    return {*_base64(raw), raw.hex(), raw.hex().upper()}


def _bytes_of(value: str) -> set[bytes]:
    """The value as programs put it into bytes: by itself, or within JSON or a URL."""
    texts = (value, json.dumps(value)[1:-1], quote_plus(value, errors="replace"))
    wide = {value.encode(code, errors="replace") for code in ("utf-16-le", "utf-16-be")}
    return {text.encode(errors="replace") for text in texts} | wide


def _base64(raw: bytes) -> set[str]:
    found = {base64.b64encode(raw).decode()}
    for shift in range(3):
        padded = b"\0" * shift + raw
        letters = base64.b64encode(padded).decode()
        found.add(letters[(shift * 8 + 5) // 6 : len(padded) * 8 // 6])
    return found | {form.translate(_URL_SAFE) for form in found}


def _hexed(raw: bytes) -> Iterator[str]:
    yield from (raw.hex(), raw.hex().upper())
    pairs = [f"{byte:02x}" for byte in raw]
    for between in (":", " ", "-", ", 0x", ",0x"):
        yield from (between.join(pairs), between.join(pair.upper() for pair in pairs))


def cut_pieces(text: str, values: Iterable[str]) -> Iterator[Span]:
    """Where the first or last half of a value stands by a cut: a line's end, dots, a quote."""
    for value in values:
        size = min(max(MIN_PIECE, (len(value) + 1) // 2), _MAX_PIECE)
        for at in _each(text, value[:size]):
            end = at + _agreed(text[at : at + len(value)], value)
            if _CUT_AFTER.match(text, end):
                yield at, end
        for at in _each(text, value[-size:]):
            end = at + size
            start = end - _agreed(text[max(0, end - len(value)) : end][::-1], value[::-1])
            if _CUT_BEFORE.search(text[max(0, start - _LOOK_BACK) : start]):
                yield start, end


def inner_lines(text: str, values: Iterable[str]) -> Iterator[Span]:
    """Lines that are nothing but a piece from the middle of a long value."""
    long_values = "\0".join(value for value in values if len(value) >= _LONG)
    at = 0
    for line in text.split("\n") if long_values else ():
        piece = line.strip()
        if len(piece) >= _MAX_PIECE and piece in long_values:
            start = at + line.index(piece)
            yield start, start + len(piece)
        at += len(line) + 1


def any_of(pieces: Iterable[str]) -> re.Pattern[str]:
    """A pattern that finds out quickly whether a text has any of these."""
    ordered = groupby(sorted(set(pieces)), key=lambda piece: piece[:1])
    groups = ((first, "|".join(re.escape(p[1:]) for p in rest)) for first, rest in ordered)
    return re.compile("|".join(f"{re.escape(first)}(?:{rest})" for first, rest in groups))


def _agreed(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


def _each(text: str, piece: str) -> Iterator[int]:
    at = text.find(piece)
    while at >= 0:
        yield at
        at = text.find(piece, at + 1)


def places_of(text: str, form: str) -> Iterator[Span]:
    """Every place of a form in a text."""
    at = text.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = text.find(form, at + len(form))


def replace_spans(text: str, spans: Iterable[Span], mask: str) -> str:
    """The text with a mask in place of each part; parts that overlap get one."""
    parts: list[str] = []
    at = 0
    for start, end in _joined(spans):
        parts += (text[at:start], mask)
        at = end
    return "".join((*parts, text[at:]))


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
