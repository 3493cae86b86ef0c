"""How a YAML file writes a text, and where a character of the text stands in the file."""

from __future__ import annotations

from dataclasses import dataclass

_BLOCKS = ("|", ">")
_ESCAPES = {"'": "'", '"': "\\"}
"""What stands before a character that a quoted text holds as it is."""


@dataclass(frozen=True)
class SourceText:
    """A text with its quotes and indentation, as it stands at a line and column of a file."""

    written: str
    style: str
    """The quote, `|` or `>`; empty for a plain text."""
    line: int
    column: int

    def find(self, value: str, at: int) -> tuple[int, int]:
        """Line and column of the character `value[at]`; zeros when the file writes it otherwise.

        YAML folds and indents texts, so only what is not blank is compared.
        """
        place = self._start()
        for character in value[:at]:
            if character.isspace():
                continue
            place = self._after(place, character)
            if place < 0:
                return 0, 0
        place = self._skip_blank(place)
        known = self._after(place, value[at]) >= 0 if at < len(value) else True
        return self._position(place) if known else (0, 0)

    def _start(self) -> int:
        if self.style in _BLOCKS:
            return self.written.find("\n") + 1
        return len(self.style)

    def _skip_blank(self, place: int) -> int:
        while self.written[place : place + 1].isspace():
            place += 1
        return place

    def _after(self, place: int, character: str) -> int:
        """The place after a character, blanks before it skipped; -1 when another stands there."""
        place = self._skip_blank(place)
        if self.style in _ESCAPES and self.written.startswith(_ESCAPES[self.style], place):
            place += 1
        return place + 1 if self.written.startswith(character, place) else -1

    def _position(self, place: int) -> tuple[int, int]:
        before = self.written[:place]
        breaks = before.count("\n")
        first = self.column if not breaks else 1
        return self.line + breaks, first + len(before) - (before.rfind("\n") + 1)
