"""Table schemas as values, and how one differs from another.

Spark, Delta and delta-rs describe a schema with the same JSON; this is its frozen form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

ADDED = "added"
MISSING = "missing"
CAST = "cast"
WIDENED = "widened"
CHANGED = "changed"

_INTEGERS = ("byte", "short", "integer", "long")
_DECIMAL_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_SQL_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


@dataclass(frozen=True)
class Field:
    """One column or nested field, by its full path."""

    path: str
    type: str
    text: str


@dataclass(frozen=True)
class SchemaChange:
    """One difference between what is written and what the table has."""

    kind: str
    column: str
    table_type: str
    batch_type: str

    def text(self) -> str:
        """One line of a schema diff."""
        if self.kind == ADDED:
            return f'+ "{self.column}" {self.batch_type} (not in the table)'
        if self.kind == MISSING:
            return f'- "{self.column}" {self.table_type} (not in the rows: becomes NULL)'
        return f'~ "{self.column}" table {self.table_type}, rows {self.batch_type} ({self.kind})'


@dataclass(frozen=True)
class Schema:
    """Columns in order, nested ones included, each under its path."""

    fields: tuple[Field, ...]
    document: str

    @staticmethod
    def from_json(text: str) -> Schema:
        """The schema a Spark or Delta schema document describes."""
        return Schema(tuple(_walk(json.loads(text), "")), text)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the top-level columns."""
        return tuple(entry["name"] for entry in json.loads(self.document)["fields"])

    def to_json(self) -> list[dict[str, Any]]:
        """Name, type and nullability of the top-level columns, for people and programs."""
        return [
            {"name": entry["name"], "type": type_text(entry["type"]), "nullable": entry["nullable"]}
            for entry in json.loads(self.document)["fields"]
        ]


def type_text(kind: Any) -> str:
    """A type as SQL spells it."""
    if isinstance(kind, str):
        return _SQL_NAMES.get(kind, kind)
    if kind["type"] == "struct":
        inner = ", ".join(f"{f['name']}: {type_text(f['type'])}" for f in kind["fields"])
        return f"struct<{inner}>"
    if kind["type"] == "array":
        return f"array<{type_text(kind['elementType'])}>"
    return f"map<{type_text(kind['keyType'])}, {type_text(kind['valueType'])}>"


def _walk(struct: Mapping[str, Any], prefix: str) -> Iterator[Field]:
    for entry in struct["fields"]:
        yield from _walk_type(entry["type"], f"{prefix}{entry['name']}")


def _walk_type(kind: Any, path: str) -> Iterator[Field]:
    name = kind if isinstance(kind, str) else str(kind["type"])
    yield Field(path, name, type_text(kind))
    if name == "struct":
        yield from _walk(kind, f"{path}.")
    elif name == "array":
        yield from _walk_type(kind["elementType"], f"{path}.element")
    elif name == "map":
        yield from _walk_type(kind["keyType"], f"{path}.key")
        yield from _walk_type(kind["valueType"], f"{path}.value")


def compare(table: Schema, batch: Schema, *, may_widen: bool = False) -> tuple[SchemaChange, ...]:
    """How the rows of a batch differ from the table they go to; names ignore case."""
    in_table = {field.path.lower(): field for field in table.fields}
    in_batch = {field.path.lower(): field for field in batch.fields}
    changes = [
        SchemaChange(ADDED, field.path, "", field.text)
        for path, field in in_batch.items()
        if path not in in_table and not _below_another(path, in_table, in_batch)
    ]
    for path, field in in_table.items():
        if path in in_batch:
            kind = _type_change(field.type, in_batch[path].type, may_widen=may_widen)
            if kind:
                changes.append(SchemaChange(kind, field.path, field.text, in_batch[path].text))
        elif not _below_another(path, in_batch, in_table):
            changes.append(SchemaChange(MISSING, field.path, field.text, ""))
    return tuple(changes)


def _below_another(path: str, here: Mapping[str, Field], there: Mapping[str, Field]) -> bool:
    """Whether the parent differs already, so that naming the child adds nothing."""
    parent = path.rpartition(".")[0]
    if not parent:
        return False
    return parent not in here or here[parent].type != there[parent].type


def _type_change(table: str, batch: str, *, may_widen: bool) -> str:
    if table == batch:
        return ""
    if fits(batch, into=table):
        return CAST
    if may_widen and fits(table, into=batch):
        return WIDENED
    return CHANGED


def fits(kind: str, *, into: str) -> bool:
    """Whether every value of a type can be kept exactly in another."""
    if kind in (into, "void"):
        return True
    if kind in _INTEGERS and into in _INTEGERS:
        return _INTEGERS.index(kind) <= _INTEGERS.index(into)
    if kind == "float" and into == "double":
        return True
    if kind in ("byte", "short", "integer") and into == "double":
        return True
    if kind == "date" and into == "timestamp_ntz":
        return True
    return _fits_decimal(kind, into)


def _fits_decimal(kind: str, into: str) -> bool:
    target = _DECIMAL.fullmatch(into)
    if target is None:
        return False
    digits, scale = int(target[1]), int(target[2])
    if kind in _DECIMAL_DIGITS:
        return digits - scale >= _DECIMAL_DIGITS[kind]
    source = _DECIMAL.fullmatch(kind)
    if source is None:
        return False
    return scale >= int(source[2]) and digits - scale >= int(source[1]) - int(source[2])


def diff_text(changes: tuple[SchemaChange, ...], *, most: int = 4) -> str:
    """The differences, a line each, cut where a person stops reading."""
    lines = [f"  {change.text()}" for change in changes[:most]]
    if len(changes) > most:
        lines.append(f"  (+{len(changes) - most} more)")
    return "\n".join(lines)
