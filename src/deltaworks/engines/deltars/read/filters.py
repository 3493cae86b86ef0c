"""Conditions of Spark's SQL that DataFusion surely judges alike, in DataFusion's SQL.

Only comparisons of a column with a value of its own type are translated. Everything else is left
to Spark, so that the same condition never chooses other rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from deltaworks.engines.deltars.text import text
from deltaworks.engines.deltars.write.spark_parity import COMPARABLE, INTEGERS
from deltaworks.engines.deltars.write.sql_conditions import named

if TYPE_CHECKING:
    from sqlglot import exp

_MAX_LONG = 2**63 - 1
_EXACT_WHOLE = {"float": 2**24, "double": 2**53}
_MAX_DIGITS = 38
_MAX_EXACT_DIGITS = 15
"""Statistics hold a decimal as a double."""
_NUMBER = re.compile(r"(\d*)(?:\.(\d*))?(?:[eE][+-]?\d{1,3})?")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z?)")
_SIGNS = {"EQ": "=", "NEQ": "<>", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<="}
_TIMES = ("timestamp", "timestamp_ntz")
_COMPARED = COMPARABLE | {"float", "double", "timestamp_ntz"}


@dataclass(frozen=True)
class _Column:
    sql: str
    kind: str


def filter_sql(condition: str, schema_document: str) -> str | None:
    """A condition for delta-rs; None when only Spark may judge it."""
    from sqlglot import parse_one
    from sqlglot.errors import SqlglotError

    if "\\" in condition:  # Spark's settings decide what it means
        return None
    try:
        tree = parse_one(condition, dialect="spark")
    except SqlglotError:
        return None
    return _clause(tree, json.loads(schema_document)["fields"])


def exact_value(sql: str, kind: Any) -> str:
    """A column whose values DataFusion compares as they are, and not by statistics of its files.

    Statistics leave NaN out, and round long decimals. DataFusion takes NaN with a sign for the
    smallest number, Spark for the greatest.
    """
    if kind == "float":
        return f"CASE WHEN isnan({sql}) THEN arrow_cast('NaN', 'Float32') ELSE {sql} END"
    if kind == "double":
        return f"CASE WHEN isnan({sql}) THEN CAST('NaN' AS DOUBLE) ELSE {sql} END"
    is_exact = isinstance(kind, str) and not _is_long_decimal(kind)
    return sql if is_exact else f"coalesce({sql}, {sql})"


def _is_long_decimal(kind: str) -> bool:
    found = _DECIMAL.fullmatch(kind)
    return found is not None and int(found[1]) > _MAX_EXACT_DIGITS


def _clause(node: exp.Expression, fields: Sequence[Any]) -> str | None:
    from sqlglot import exp

    if isinstance(node, exp.Paren):
        return _clause(node.this, fields)
    if isinstance(node, exp.And | exp.Or):
        word = "AND" if isinstance(node, exp.And) else "OR"
        return _joined(word, [_clause(part, fields) for part in (node.left, node.right)])
    if isinstance(node, exp.Not):
        inner = _clause(node.this, fields)
        return None if inner is None else f"(NOT {inner})"
    return _judged(node, fields)


def _judged(node: exp.Expression, fields: Sequence[Any]) -> str | None:
    """A condition about one column."""
    from sqlglot import exp

    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        path = _path(node.this, fields)
        return None if path is None else f"({path[0]} IS NULL)"
    if type(node).__name__ in _SIGNS:
        return _comparison(node, fields)
    column = _column(node if isinstance(node, exp.Column) else node.this, fields)
    if column is None:
        return None
    if isinstance(node, exp.Column):
        return column.sql if column.kind == "boolean" else None
    return _chosen(node, column)


def _chosen(node: exp.Expression, column: _Column) -> str | None:
    """A condition that compares a column with several values, or with a pattern."""
    from sqlglot import exp

    if isinstance(node, exp.In) and node.expressions:
        values = [_value(one, column.kind) for one in node.expressions]
        return _joined("OR", [None if one is None else f"{column.sql} = {one}" for one in values])
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low, high = (_value(node.args[name], column.kind) for name in ("low", "high"))
        return None if not (low and high) else f"({column.sql} BETWEEN {low} AND {high})"
    if isinstance(node, exp.Like) and column.kind == "string":
        pattern = _value(node.expression, "string")
        return None if pattern is None else f"({column.sql} LIKE {pattern})"
    return None


def _joined(word: str, parts: Sequence[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    return f"({f' {word} '.join(known)})" if len(known) == len(parts) else None


def _comparison(node: exp.Expression, fields: Sequence[Any]) -> str | None:
    sign = _SIGNS[type(node).__name__]
    left, right = _column(node.this, fields), _column(node.expression, fields)
    if left is not None and right is not None:
        is_alike = left.kind == right.kind or {left.kind, right.kind} <= INTEGERS
        return f"({left.sql} {sign} {right.sql})" if is_alike else None
    if left is not None:
        value = _value(node.expression, left.kind)
        return None if value is None else f"({left.sql} {sign} {value})"
    if right is not None:
        value = _value(node.this, right.kind)
        return None if value is None else f"({value} {sign} {right.sql})"
    return None


def _column(node: Any, fields: Sequence[Any]) -> _Column | None:
    """A column, or a field of structs, whose values can be compared; None for anything else."""
    sql, kind = _path(node, fields) or ("", None)
    if not isinstance(kind, str) or not (kind in _COMPARED or _DECIMAL.fullmatch(kind)):
        return None
    return _Column(_compared(sql, kind), kind)


def _path(node: Any, fields: Sequence[Any]) -> tuple[str, Any] | None:
    """A column, or a field of structs, as DataFusion's SQL names it, with its type."""
    from sqlglot import exp

    if not isinstance(node, exp.Column):
        return None
    first, *rest = [part.name.lower() for part in node.parts]
    field = _field(first, fields)
    if field is None:
        return None
    sql, kind = named(field["name"]), field["type"]
    for name in rest:
        inner = _field(name, kind["fields"] if _is_struct(kind) else ())
        if inner is None:
            return None
        sql, kind = f"{sql}[{text(inner['name'])}]", inner["type"]
    return sql, kind


def _compared(sql: str, kind: str) -> str:
    """As `exact_value`; minus zero and zero are one number to Spark."""
    if kind not in ("float", "double"):
        return exact_value(sql, kind)
    wide = f"CAST({sql} AS DOUBLE)"
    return f"(CASE WHEN isnan({sql}) THEN CAST('NaN' AS DOUBLE) ELSE {wide} + 0.0 END)"


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, dict) and kind["type"] == "struct"


def _field(name: str, fields: Sequence[Any]) -> Any:
    return next((field for field in fields if field["name"].lower() == name), None)


def _value(node: exp.Expression, kind: str) -> str | None:
    """A value as DataFusion's SQL has it, if it is plainly one of a column's type."""
    from sqlglot import exp

    if isinstance(node, exp.Boolean):
        return str(bool(node.this)).lower() if kind == "boolean" else None
    if kind == "date" or kind in _TIMES:
        return _time(node, kind)
    is_negative = isinstance(node, exp.Neg)
    literal = node.this if is_negative else node
    if not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        is_plain = kind == "string" and not is_negative and "'" not in literal.this
        return text(literal.this) if is_plain else None
    return _number(str(literal.this), kind, sign="-" if is_negative else "")


def _number(digits: str, kind: str, *, sign: str) -> str | None:
    found = _NUMBER.fullmatch(digits)
    if found is None or len(digits) > _MAX_DIGITS:
        return None
    whole, fraction = found[1].lstrip("0"), found[2] or ""
    if kind in INTEGERS:
        is_long = digits.isdecimal() and int(digits) <= _MAX_LONG
        return f"{sign}{digits}" if is_long else None
    if kind in _EXACT_WHOLE:
        is_exact = not digits.isdecimal() or int(digits) <= _EXACT_WHOLE[kind]
        return f"CAST('{sign}{digits}' AS DOUBLE)" if is_exact else None
    column = _DECIMAL.fullmatch(kind)
    if column is None or "e" in digits.lower():
        return None
    precision, scale = int(column[1]), int(column[2])
    if max(scale, len(fraction)) + max(precision - scale, len(whole)) > _MAX_DIGITS:
        return None
    size = f"{max(len(whole) + len(fraction), 1)}, {len(fraction)}"
    return f"CAST('{sign}{whole or '0'}.{fraction or '0'}' AS DECIMAL({size}))"


def _time(node: exp.Expression, kind: str) -> str | None:
    from sqlglot import exp

    literal = node.this if type(node) is exp.Cast else node
    if not isinstance(literal, exp.Literal) or not literal.is_string:
        return None
    is_date = _is_date(literal.this)
    if type(node) is exp.Cast and is_date != node.is_type("date"):
        return None
    if kind == "date":
        return f"CAST('{literal.this}' AS DATE)" if is_date else None
    found = _TIMESTAMP.fullmatch(literal.this)
    if not is_date and (found is None or not _is_timestamp(literal.this)):
        return None
    if kind == "timestamp":
        moment = literal.this.removesuffix("Z") + ("T00:00:00" if is_date else "")
        return f"arrow_cast('{moment}Z', 'Timestamp(Microsecond, Some(\"UTC\"))')"
    has_zone = found is not None and bool(found[2])
    return None if has_zone else f"arrow_cast('{literal.this}', 'Timestamp(Microsecond, None)')"


def _is_date(value: str) -> bool:
    try:
        return _DATE.fullmatch(value) is not None and bool(date.fromisoformat(value))
    except ValueError:
        return False


def _is_timestamp(value: str) -> bool:
    try:
        return bool(datetime.fromisoformat(value))
    except ValueError:
        return False
