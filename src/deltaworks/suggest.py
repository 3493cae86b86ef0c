"""The right word for a wrong one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST = 12
INTERNAL = "__deltaworks_"
"""What the names of columns begin with that we add while we work; no message shows them."""


def did_you_mean(word: str, choices: Iterable[str], *, at_least: float = 0.6) -> str:
    """`did you mean "x"?`, or the choices when nothing is near (1 is equal, 0 nothing alike)."""
    names = [choice for choice in choices if INTERNAL not in choice]
    lowered = {name.lower(): name for name in names}
    near = get_close_matches(word.lower(), list(lowered), n=1, cutoff=at_least)
    if near:
        return f'did you mean "{lowered[near[0]]}"?'
    shown = ", ".join(names[:_MOST]) + (", ..." if len(names) > _MOST else "")
    return f"available: {shown}" if names else ""
