"""Texts of logs and statements: JSON parsed, SQL strings quoted."""

from __future__ import annotations

import json
from typing import Any


def read_json(text: str) -> Any:
    """What a text of a log says; a ValueError, too, where it is nested without end."""
    try:
        return json.loads(text)
    except RecursionError as problem:
        raise ValueError("too deep") from problem


def text(value: str) -> str:
    """A text that delta-rs' SQL takes as it is; other than Spark it knows no backslash."""
    return "'" + value.replace("'", "''") + "'"
