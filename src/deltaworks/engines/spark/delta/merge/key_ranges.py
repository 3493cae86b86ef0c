"""Ranges of merge keys: found in a batch, and written as conditions that let Delta skip files.

A condition that a matching row always meets changes no match: the key of the table's row equals
the batch's, which lies between the batch's lowest and highest. That holds where the two are of one
type, no value equals another it sorts apart from, and a literal can say the value exactly. So only
whole numbers, dates, times and plain text are used; floating point (NaN, -0.0), decimals (a literal
has a precision of its own), collated text, binary and nested keys are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deltaworks.engines.spark.frames.columns import literal, quoted
from deltaworks.model.merge_facts import KeyRange
from deltaworks.model.schema import Schema, type_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WHOLE = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_TIMES = {"date": "DATE", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ"}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?")
_MAX_TEXT = 200
_OTHER_ORDER = {"__COLLATIONS", "__CHAR_VARCHAR_TYPE_STRING"}
"""Notes at a column of text that it is not compared byte by byte."""
MAX_VALUES = 100


def has_range(kind: str) -> bool:
    """Whether values of a type can be bounded safely."""
    return kind in _WHOLE or kind in _TIMES or kind == "string"


def found_range(
    column: str, kind: str, low: str | None, high: str | None, values: Sequence[str] | None
) -> KeyRange | None:
    """The range of a key as a pass over the batch found it; None where it cannot be said safely."""
    if low is None or high is None or not (_is_safe(kind, low) and _is_safe(kind, high)):
        return None
    few = values is not None and len(values) <= MAX_VALUES
    listed = tuple(sorted(values)) if few and values else ()
    if not all(_is_safe(kind, value) for value in listed):
        listed = ()
    return KeyRange(column=column, kind=kind, low=low, high=high, values=listed)


def usable(ranges: Iterable[KeyRange], table: Schema) -> tuple[KeyRange, ...]:
    """The ranges of keys that the table compares in the same way, with the table's types."""
    fields = {entry["name"].lower(): entry for entry in json.loads(table.document)["fields"]}
    fitted = (_fitted(found, fields.get(found.column.lower())) for found in ranges)
    return tuple(found for found in fitted if found is not None)


def _fitted(found: KeyRange, field: Mapping[str, Any] | None) -> KeyRange | None:
    if field is None or field["metadata"].keys() & _OTHER_ORDER:
        return None
    kind = type_text(field["type"])
    alike = kind == found.kind or {kind, found.kind} <= _WHOLE.keys()
    return replace(found, kind=kind) if alike else None


def condition(found: KeyRange, *, qualifier: str = "") -> str:
    """The range as SQL, in parentheses."""
    name = f"{qualifier}{quoted(found.column)}"
    if len(found.values) > 1:
        return f"({name} IN ({', '.join(_sql(found.kind, value) for value in found.values)}))"
    low, high = _sql(found.kind, found.low), _sql(found.kind, found.high)
    return f"({name} = {low})" if low == high else f"({name} BETWEEN {low} AND {high})"


def within(rows: DataFrame, ranges: Iterable[KeyRange]) -> DataFrame:
    """Only the rows of a table whose keys lie in the ranges."""
    for found in ranges:
        rows = rows.filter(condition(found))
    return rows


def _sql(kind: str, value: str) -> str:
    if kind in _WHOLE:
        return f"{value}{_WHOLE[kind]}"
    if kind == "string":
        return literal(value)
    return f"{_TIMES[kind]}'{value}{'Z' if kind == 'timestamp' else ''}'"


def _is_safe(kind: str, value: str) -> bool:
    """Whether a literal says exactly this value: no year beyond four digits, no odd characters."""
    if kind in _TIMES:
        return _MOMENT.fullmatch(value) is not None
    if kind in _WHOLE:
        return True
    # a backslash or ${name} in a literal says something else under other settings of a session
    special = "\\" in value or "${" in value
    return len(value) <= _MAX_TEXT and value.isprintable() and not special
