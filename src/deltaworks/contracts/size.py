"""Sizes as people write them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(b|kb|mb|gb|tb)?", re.IGNORECASE)
_UNITS = {"b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "tb": 1024**4}
_MIN_BYTES = 1024**2  # Delta counts the size of optimised writes in whole mebibytes


def size_bytes(text: str) -> int:
    """`128mb` in bytes; a bare number is one already."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'"{text}" is not a size; write it as 128mb')
    return int(float(match[1]) * _UNITS[(match[2] or "b").lower()])


def _checked(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    if size_bytes(str(value)) < _MIN_BYTES:
        raise ValueError(f'"{value}" is too small; 1mb is the least')
    return str(value)


FileSize = Annotated[str, BeforeValidator(_checked, json_schema_input_type=str | int)]
"""A size of files, such as `128mb`."""
