"""Which of several rows a merge condition prefers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class MergeOrder:
    """The row with the highest or lowest value of a column wins."""

    keep: Literal["newest", "oldest"]
    by: str


def order_of(condition: str) -> MergeOrder | None:
    """The order in a condition such as `source.ts > target.ts`; None when it has none."""
    from sqlglot import parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(condition, dialect="spark")
    except SqlglotError:
        return None  # the sink says what is wrong with it, or Spark does
    return next((order for part in _parts(tree) if (order := _order(part))), None)


def _parts(tree: object) -> list[object]:
    """What must hold together."""
    from sqlglot import exp

    if isinstance(tree, exp.Paren):
        return _parts(tree.this)
    if isinstance(tree, exp.And):
        return [*_parts(tree.this), *_parts(tree.expression)]
    return [tree]


def _order(comparison: object) -> MergeOrder | None:
    from sqlglot import exp

    above, below = (exp.GT, exp.GTE), (exp.LT, exp.LTE)
    if not isinstance(comparison, (*above, *below)):
        return None
    left, right = comparison.this, comparison.expression
    if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)):
        return None
    sides = (left.table.lower(), right.table.lower())
    if left.name.lower() != right.name.lower() or set(sides) != {"source", "target"}:
        return None
    higher_wins = isinstance(comparison, above) == (sides[0] == "source")
    return MergeOrder("newest" if higher_wins else "oldest", left.name)
