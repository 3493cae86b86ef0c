"""Conditions that DataFusion and Spark surely understand alike: comparisons of equal types.

Three parsers read such a text, and settings of Spark change how it reads quotes and backslashes. So
only words, numbers, signs and plain texts may stand in it that all of them read alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaworks.engines.deltars.text import text
from deltaworks.engines.deltars.write.spark_parity import COMPARABLE, INTEGERS

if TYPE_CHECKING:
    from sqlglot import exp

_LARGEST = 2**63 - 1
_READ_ALIKE = re.compile(
    r"""(?: [ \t\r\n]+
          | [^\W\d]\w*                # a name or a word
          | `[^`\\${}]+`             # a name in backticks
          | '[^'"\\`${}\x00-\x1f]*'   # a text that holds nothing special
          | [0-9]+
          | -(?=[ ]*[0-9])           # a sign, and no comment
          | <= | >= | <> | != | [=<>().]
        )*""",
    re.VERBOSE,
)


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The columns of a batch and of its table: how they are spelled, and their types."""

    source: Mapping[str, tuple[str, str]]
    """Spelling and type by name in small letters."""
    target: Mapping[str, tuple[str, str]]


def portable(condition: str, sides: Sides) -> str | None:
    """A merge condition for delta-rs; None when only Spark may judge it."""
    from sqlglot import parse_one
    from sqlglot.errors import SqlglotError

    if _READ_ALIKE.fullmatch(condition) is None:
        return None
    try:
        return _clause(parse_one(condition, dialect="spark"), sides)
    except SqlglotError:
        return None


def named(name: str) -> str:
    """A column's name as delta-rs' SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def _clause(node: exp.Expression, sides: Sides) -> str | None:
    from sqlglot import exp

    if isinstance(node, exp.Paren):
        return _clause(node.this, sides)
    if isinstance(node, exp.And | exp.Or):
        left, right = _clause(node.left, sides), _clause(node.right, sides)
        word = "AND" if isinstance(node, exp.And) else "OR"
        return None if left is None or right is None else f"({left} {word} {right})"
    if isinstance(node, exp.Not):
        inner = _clause(node.this, sides)
        return None if inner is None else f"(NOT {inner})"
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        column = _column(node.this, sides)
        return None if column is None else f"({column[0]} IS NULL)"
    return _comparison(node, sides)


def _comparison(node: exp.Expression, sides: Sides) -> str | None:
    from sqlglot import exp

    signs: dict[type[exp.Expression], str] = {
        exp.EQ: "=",
        exp.NEQ: "<>",
        exp.GT: ">",
        exp.GTE: ">=",
        exp.LT: "<",
        exp.LTE: "<=",
    }
    sign = signs.get(type(node))
    if sign is None or not isinstance(node, exp.Binary):
        return None
    left, right = _operand(node.left, sides), _operand(node.right, sides)
    if left is None or right is None or not _alike(left[1], right[1]):
        return None
    return f"({left[0]} {sign} {right[0]})"


def _alike(left: str, right: str) -> bool:
    """Whether values are compared as they are: no engine converts one of them."""
    is_decimal = left == right and left.startswith("decimal")
    return (left == right and left in COMPARABLE) or {left, right} <= INTEGERS or is_decimal


def _operand(node: exp.Expression, sides: Sides) -> tuple[str, str] | None:
    """A column or a plain value as SQL, with its type."""
    from sqlglot import exp

    if isinstance(node, exp.Column):
        return _column(node, sides)
    if isinstance(node, exp.Boolean):
        return str(bool(node.this)).lower(), "boolean"
    negative = isinstance(node, exp.Neg)
    literal = node.this if negative else node
    if not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        plain = not negative and "'" not in literal.this  # two texts side by side are one to some
        return (text(literal.this), "string") if plain else None
    if not literal.this.isdecimal() or int(literal.this) > _LARGEST:
        return None
    return f"{'-' if negative else ''}{literal.this}", "long"


def _column(node: exp.Expression, sides: Sides) -> tuple[str, str] | None:
    from sqlglot import exp

    if not isinstance(node, exp.Column):
        return None
    first, *rest = node.parts
    if len(rest) != 1:
        return None
    qualifier = first.name.lower()
    columns = {"source": sides.source, "target": sides.target}.get(qualifier)
    found = None if columns is None else columns.get(node.name.lower())
    return None if found is None else (f"{qualifier}.{named(found[0])}", found[1])
