"""Names that stand twice in a list; Spark and Delta ignore case, so two spellings are one name."""

from __future__ import annotations

from collections.abc import Iterable


def twins(names: Iterable[str]) -> tuple[int, str]:
    """The index of the first column that is named again, and a message; empty when none is."""
    seen: dict[str, str] = {}
    for i, name in enumerate(names):
        first = seen.setdefault(name.lower(), name)
        if first != name:
            return i, f'columns "{first}" and "{name}" differ only in case'
        if len(seen) <= i:
            return i, f'column "{name}" is named twice'
    return 0, ""


def twin_problem(names: Iterable[str]) -> str:
    """The first column that is named twice, as a message; empty when there is none."""
    return twins(names)[1]
