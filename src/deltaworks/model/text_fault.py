"""Faults inside a value of a file: in an SQL expression, a list, or a name given twice."""

from __future__ import annotations

from collections.abc import Iterable

MAX_SHOWN = 60


class TextFault(ValueError):
    """What is wrong with a value, how to correct it, and where the fault is."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        at: int | None = None,
        inside: tuple[str | int, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.at = at
        """The index of the first wrong character; None when it is not known."""
        self.inside = inside
        """The wrong entry of a list or map; empty when the value as a whole is wrong."""


def excerpt(text: str, at: int = 0) -> str:
    """A text in one line; a long one is cut to what stands around a place in it."""
    if len(text) <= MAX_SHOWN:
        return " ".join(text.split())
    start = max(0, min(at - MAX_SHOWN // 2, len(text) - MAX_SHOWN))
    end = start + MAX_SHOWN
    kept = " ".join(text[start:end].split())
    return f"{'...' if start else ''}{kept}{'...' if end < len(text) else ''}"


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
