"""Names that stand twice in a list; Spark and Delta ignore case, so two spellings are one name."""

from __future__ import annotations

from collections.abc import Iterable


def twin_problem(names: Iterable[str]) -> str:
    """The first column that is named twice, as a message; empty when there is none."""
    seen: dict[str, str] = {}
    for name in names:
        first = seen.get(name.lower())
        if first == name:
            return f'column "{name}" is named twice'
        if first is not None:
            return f'columns "{first}" and "{name}" differ only in case'
        seen[name.lower()] = name
    return ""
