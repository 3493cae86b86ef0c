"""JSON files as their lines show them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from deltaworks.engines.spark.read.text import TextFiles, fault_at
from deltaworks.errors import InputError
from deltaworks.model.batch import Bounds
from deltaworks.storage.drift import FileDrift

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql.types import StructType

_SHOWN = 200


@dataclass(frozen=True, kw_only=True)
class JsonFiles(TextFiles):
    """Lines of records, or documents of many lines."""

    multiline: bool

    def records(self, path: str) -> Iterator[tuple[int, str]]:
        return iter(()) if self.multiline else super().records(path)

    def surely_row(self, line: str) -> bool:
        return line.startswith("{")

    def values(self, line: str, columns: Sequence[str]) -> Mapping[str, str]:
        record = _loaded(line)
        found = record if isinstance(record, dict) else {}
        return {name: _text(found[name]) for name in columns if name in found}

    def fault(self, raw: str, parsed: Sequence[Row], columns: StructType) -> str:
        try:
            document = json.loads(raw, parse_float=Decimal)
        except json.JSONDecodeError as problem:
            place = f"character {problem.colno}"
            place = f"line {problem.lineno}, {place}" if problem.lineno > 1 else place
            if problem.msg == "Extra data":
                return f"something follows the record, at {place}: {_short(raw)}"
            return f"not JSON ({problem.msg}, at {place}): {_short(raw)}"
        records = document if isinstance(document, list) else [document]
        for record, row in zip_longest(records, parsed):
            if not isinstance(record, dict):
                return f"expected an object such as {{...}}, not {_text(record)[:_SHOWN]}"
            if row is not None and (found := _misfit(record, row, columns, "")):
                return found
        return f"the record does not fit its columns: {_short(raw)}"

    def remedy(self, raw: str) -> str:
        try:
            json.loads(raw)
        except json.JSONDecodeError as problem:
            if not self.multiline and problem.pos >= len(raw.rstrip()):
                return "say `multiline: true` for files that are one document each, or correct it"
        return super().remedy(raw)


def first_fault(bounds: Bounds, files: JsonFiles) -> InputError | None:
    """The error for the first line that is no record, where no line tells of a column."""
    from pyspark.sql.types import StructType

    for stamp in bounds.files:
        for number, line in files.records(stamp.path):
            if line.strip() and not isinstance(_loaded(line), dict | list):
                fault = files.fault(line, (), StructType([]))
                return fault_at(files, stamp.path, number, raw=line, fault=fault)
    return None


def first_with(bounds: Bounds, files: JsonFiles, field: str) -> FileDrift:
    """The file and line of the first record that has a field; the first file when none shows."""
    path, line = _place_of(bounds, files, field)
    return FileDrift(path=path, line=line)


def _place_of(bounds: Bounds, files: JsonFiles, field: str) -> tuple[str, int]:
    names = field.split(".")
    for stamp in bounds.files:
        for number, line in files.lines(stamp.path):
            if f'"{names[-1]}"' not in line:
                continue
            if files.multiline:
                return stamp.path, 0
            if _has(_loaded(line), names):
                return stamp.path, number
    return bounds.files[0].path, 0


def _has(value: Any, names: Sequence[str]) -> bool:
    if isinstance(value, list):
        return any(_has(item, names) for item in value)
    if not isinstance(value, dict) or names[0] not in value:
        return False
    return len(names) == 1 or _has(value[names[0]], names[1:])


def refuse_lines(bounds: Bounds, files: JsonFiles) -> None:
    """A file of one record per line is no document: all records but the first would be lost."""
    for stamp in bounds.files:
        lines = (line for _, line in files.lines(stamp.path) if line.strip())
        first, second = next(lines, ""), next(lines, "")
        if second and isinstance(_loaded(first), dict | list):
            raise InputError(
                f'file "{stamp.path}" holds more than one document',
                hint="leave `multiline` out for files of one record per line",
            )


def _misfit(record: Mapping[str, Any], row: Row, columns: Any, above: str) -> str:
    """The first value that Spark could not take, by its full name; empty when there is none."""
    from pyspark.sql.types import StructType

    for field in columns.fields:
        value, taken = record.get(field.name), row[field.name]
        if value is None:
            continue
        if taken is None:
            kind = field.dataType.simpleString()
            return f'column "{above}{field.name}": "{_text(value)[:_SHOWN]}" is not {kind}'
        nested = isinstance(field.dataType, StructType) and isinstance(value, dict)
        found = _misfit(value, taken, field.dataType, f"{above}{field.name}.") if nested else ""
        if found:
            return found
    return ""


def _short(raw: str) -> str:
    return " ".join(raw.split())[:_SHOWN]


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _text(value: Any) -> str:
    if isinstance(value, str | Decimal):
        return str(value)
    return json.dumps(value, default=float)
