"""A native document as the YAML a person would write."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

_MOST_CHARACTERS = 88
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
    from ruamel.yaml.scalarstring import LiteralScalarString

    if isinstance(value, str):
        return LiteralScalarString(value) if _fits_block(value) else value
    if not isinstance(value, dict | list):
        return value
    short = within and _is_short(value)
    if isinstance(value, list):
        listed = CommentedSeq(value if short else [_arranged(item) for item in value])
        (listed.fa.set_flow_style if short else listed.fa.set_block_style)()
        return listed
    mapped = CommentedMap(value if short else {k: _arranged(item) for k, item in value.items()})
    (mapped.fa.set_flow_style if short else mapped.fa.set_block_style)()
    return mapped


def _is_short(value: Any) -> bool:
    text = json.dumps(value, ensure_ascii=False)
    return len(text) <= _MOST_CHARACTERS and "\\n" not in text


def _fits_block(text: str) -> bool:
    """Whether a text can stand as it is, on several indented lines."""
    lines = text.removesuffix("\n").split("\n")
    return len(lines) > 1 and all(x.isprintable() and x and x == x.strip() for x in lines)
