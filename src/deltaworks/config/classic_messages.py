"""Messages about a file in the file's own words, where it spells options in a way of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PARTS = re.compile(
    r'(?P<quoted>"[^"]*")'  # names and values of the user's
    r"|`(?P<key>\w+)(?:: (?P<value>[^`]*))?`"
    r"|\bmode (?P<modes>\w+(?:(?:, | or )\w+)*)"
    r"|\b(?P<option>[a-z]+(?:_[a-z]+)+)\b"
)
_WORD = re.compile(r"\w+")


def reworded(text: str, words: Mapping[str, str]) -> str:
    """A message with the options in it spelled as the words say; what is quoted stays.

    `merge_schema: true`, between backticks, becomes `"mergeSchema": "true"`.
    """

    def said(match: re.Match[str]) -> str:
        if key := match["key"]:
            return f"`{_entry(key, match['value'], words)}`" if key in words else match[0]
        if modes := match["modes"]:
            return _modes(modes, words)
        return words.get(match["option"] or "", match[0])

    return _PARTS.sub(said, text) if words else text


def _entry(key: str, value: str | None, words: Mapping[str, str]) -> str:
    if value is None:
        return words[key]
    if _WORD.fullmatch(value):
        return f'"{words[key]}": "{words.get(value, value)}"'
    return f"{words[key]}: {value}"


def _modes(modes: str, words: Mapping[str, str]) -> str:
    said = _WORD.sub(lambda match: words.get(match[0], match[0]), modes)
    return f"{words.get('mode', 'mode')} {said}" if said != modes else f"mode {modes}"
