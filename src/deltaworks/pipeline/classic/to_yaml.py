"""A native document as the YAML a person would write."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

_MAX_CHARACTERS = 88
_ENDLESS = 1_000_000


def native_text(document: Mapping[str, Any]) -> str:
    """The text of a pipeline file: a block for each part, small things within a line."""
    parts: list[str] = []
    for key, value in document.items():
        is_part = isinstance(value, dict | list)
        parts.append(("\n" if is_part and parts else "") + _dumped({key: value}))
    return "".join(parts)


def _dumped(part: Mapping[str, Any]) -> str:
    from ruamel.yaml import YAML

    yaml = YAML(pure=True)
    yaml.width = _ENDLESS
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    yaml.dump({key: _arranged(value, within=False) for key, value in part.items()}, out)
    return out.getvalue()


def _arranged(value: Any, *, within: bool = True) -> Any:
    """The value, told which of its lists and maps fit within a line."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    if isinstance(value, str):
        return _quoted(value)
    if not isinstance(value, dict | list):
        return value
    short = within and _is_short(value)
    arranged: CommentedMap | CommentedSeq
    if isinstance(value, list):
        arranged = CommentedSeq([_arranged(item) for item in value])
    else:
        arranged = CommentedMap({_quoted(key): _arranged(item) for key, item in value.items()})
    (arranged.fa.set_flow_style if short else arranged.fa.set_block_style)()
    return arranged


def _quoted(text: str) -> Any:
    """A text, told how to stand: as lines, with escapes, or as YAML likes it."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    if _fits_block(text):
        return LiteralScalarString(text)
    # Within braces a "?" begins a key, and ruamel does not know that.
    plain = text.isprintable() and not text.startswith("?")
    return text if plain else DoubleQuotedScalarString(text)


def _is_short(value: Any) -> bool:
    text = json.dumps(value, ensure_ascii=False)
    return len(text) <= _MAX_CHARACTERS and "\\n" not in text


def _fits_block(text: str) -> bool:
    """Whether a text can stand as it is, on several indented lines."""
    lines = text.removesuffix("\n").split("\n")
    return len(lines) > 1 and all(x.isprintable() and x and x == x.strip() for x in lines)
