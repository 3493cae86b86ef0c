"""JSON as plain values, with the line of everything in it.

Nearly all JSON is YAML too, but not tabs before a key, nor a character written as two escapes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any

Noted = Callable[[tuple[str | int, ...], int], None]
_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None}


def read_json(text: str, note: Noted) -> Any:
    """The value in a text; `note` is told the line of each place. Raises JSONDecodeError."""
    reader = _Reader(text, note)
    value, end = reader.value(reader.skip(0), ())
    if end != len(text):
        raise JSONDecodeError("nothing may follow here", text, end)
    return value


class _Reader:
    """Goes through a text once; each method starts at a place and says where it ended."""

    def __init__(self, text: str, note: Noted) -> None:
        self.text = text
        self.note = note
        self.breaks = [match.start() for match in re.finditer("\n", text)]

    def skip(self, at: int) -> int:
        """The next place that is not blank."""
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def line(self, at: int) -> int:
        """The line of a place."""
        return bisect_right(self.breaks, at) + 1

    def value(self, at: int, where: tuple[str | int, ...]) -> tuple[Any, int]:
        """A value, and the place after it and its blanks."""
        self.note(where, self.line(at))
        first = self.text[at : at + 1]
        if first == "{":
            return self._map(at + 1, where)
        if first == "[":
            return self._list(at + 1, where)
        if first == '"':
            text, end = scanstring(self.text, at + 1)
            return text, self.skip(end)
        return self._word(at)

    def _word(self, at: int) -> tuple[Any, int]:
        for word, value in _WORDS.items():
            if self.text.startswith(word, at):
                return value, self.skip(at + len(word))
        match = _NUMBER.match(self.text, at)
        if match is None:
            raise JSONDecodeError("a value is missing", self.text, at)
        number = float(match[0]) if match[1] or match[2] else int(match[0])
        return number, self.skip(match.end())

    def _map(self, at: int, where: tuple[str | int, ...]) -> tuple[dict[str, Any], int]:
        result: dict[str, Any] = {}
        at = self.skip(at)
        if self.text[at : at + 1] == "}":
            return result, self.skip(at + 1)
        while True:
            key, value, at = self._entry(at, where, result)
            result[key] = value
            if self.text[at : at + 1] == "}":
                return result, self.skip(at + 1)
            at = self._comma(at, "}")

    def _entry(
        self, at: int, where: tuple[str | int, ...], known: dict[str, Any]
    ) -> tuple[str, Any, int]:
        if self.text[at : at + 1] != '"':
            raise JSONDecodeError("a key in quotes is missing", self.text, at)
        key, end = scanstring(self.text, at + 1)
        if key in known:
            raise JSONDecodeError(f'"{key}" is defined twice', self.text, at)
        end = self.skip(end)
        if self.text[end : end + 1] != ":":
            raise JSONDecodeError('":" is missing', self.text, end)
        place = (*where, key)
        self.note(place, self.line(at))
        value, end = self.value(self.skip(end + 1), place)
        return key, value, end

    def _list(self, at: int, where: tuple[str | int, ...]) -> tuple[list[Any], int]:
        result: list[Any] = []
        at = self.skip(at)
        if self.text[at : at + 1] == "]":
            return result, self.skip(at + 1)
        while True:
            value, at = self.value(at, (*where, len(result)))
            result.append(value)
            if self.text[at : at + 1] == "]":
                return result, self.skip(at + 1)
            at = self._comma(at, "]")

    def _comma(self, at: int, closing: str) -> int:
        if self.text[at : at + 1] != ",":
            raise JSONDecodeError(f'"," or "{closing}" is missing', self.text, at)
        return self.skip(at + 1)
