"""Pipelines by a pattern: a name, a tag, and what is before or after them in the graph.

`sales_*`, `tag:daily`, `+sums` (and what it reads from), `raw+` (and what reads from it); several
are separated by commas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatch

from deltaworks.errors import ConfigError
from deltaworks.pipeline.catalog import Catalog
from deltaworks.suggest import did_you_mean

_TAG = "tag:"


def selected(catalog: Catalog, pattern: str) -> tuple[str, ...]:
    """The names of the pipelines that a pattern covers, in an order to run them."""
    names = [plan.pipeline.name for plan in catalog.plans]
    parts = [part.strip() for part in pattern.split(",")] if pattern else ["*"]
    found = {name for part in parts for name in _covered(catalog, part)}
    return tuple(name for name in names if name in found)


def _covered(catalog: Catalog, part: str) -> set[str]:
    word = part.removeprefix("+").removesuffix("+")
    labels = {
        plan.pipeline.name: [f"{_TAG}{tag}" for tag in plan.pipeline.tags]
        if word.startswith(_TAG)
        else [plan.pipeline.name]
        for plan in catalog.plans
    }
    found = {name for name, own in labels.items() if any(fnmatch(one, word) for one in own)}
    if not found:
        choices = dict.fromkeys(label for own in labels.values() for label in own)
        raise ConfigError(f'no pipeline matches "{part}"', hint=did_you_mean(word, choices))
    before = _reached(found, catalog.after) if part.startswith("+") else set()
    after = _reached(found, _turned(catalog.after)) if part.endswith("+") else set()
    return found | before | after


def _reached(start: Iterable[str], edges: Mapping[str, frozenset[str]]) -> set[str]:
    """All that some names lead to."""
    found: set[str] = set()
    waiting = list(start)
    while waiting:
        for name in edges.get(waiting.pop(), frozenset()) - found:
            found.add(name)
            waiting.append(name)
    return found


def _turned(edges: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    return {
        name: frozenset(other for other, before in edges.items() if name in before)
        for name in edges
    }
