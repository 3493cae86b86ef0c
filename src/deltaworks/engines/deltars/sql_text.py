"""Texts as string literals of delta-rs' SQL."""

from __future__ import annotations


def text(value: str) -> str:
    """A text that delta-rs' SQL takes as it is; other than Spark it knows no backslash."""
    return "'" + value.replace("'", "''") + "'"
