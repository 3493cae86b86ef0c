"""Table schemas as values, and how one differs from another.

Spark, Delta and delta-rs describe a schema with the same JSON; this is its frozen form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

ADDED = "added"
MISSING = "missing"
CAST = "cast"
WIDENED = "widened"
CHANGED = "changed"
KEPT = "kept"
DROPPED = "dropped"
NULLS = "nulls"
COMMENT = "comment"
ORDER = "order"
PROPERTY = "property"
PARTITIONS = "partitions"
CLUSTERING = "clustering"
_WORDS = {
    ADDED: '+ "{column}" {new} (not in the table)',
    MISSING: '- "{column}" {old} (not in the rows: becomes NULL)',
    KEPT: '- "{column}" {old} (not in the rows: stays as it is, and NULL in new rows)',
    DROPPED: '- "{column}" {old} (not in the rows: taken out of the table)',
    NULLS: '~ "{column}" was {old}, will be {new}',
    COMMENT: '~ "{column}" loses its comment: {old}',
    ORDER: "~ columns in another order: {old}; then {new}",
    PROPERTY: '~ property "{column}" was {old}, will be {new}',
    PARTITIONS: "~ partitioned by ({old}), then by ({new})",
    CLUSTERING: "~ clustered by ({old}), then by ({new})",
}
"""How a difference reads, by its kind; those of a type are all alike."""

_INTEGERS = ("byte", "short", "integer", "long")
_DECIMAL_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_SQL_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


@dataclass(frozen=True)
class Field:
    """One column or nested field, by the names that lead to it: a name may have a dot in it."""

    names: tuple[str, ...]
    type: str
    text: str

    @property
    def path(self) -> str:
        """The names in one text, for people; those with a dot are in backticks."""
        if len(self.names) == 1:
            return self.names[0]
        return ".".join(f"`{name}`" if "." in name else name for name in self.names)

    @property
    def key(self) -> tuple[str, ...]:
        """What two spellings of one field have in common."""
        return tuple(name.lower() for name in self.names)


@dataclass(frozen=True)
class SchemaChange:
    """One difference between what is written and what the table has."""

    kind: str
    column: str
    table_type: str
    batch_type: str

    def text(self) -> str:
        """One line of a schema diff."""
        words = _WORDS.get(self.kind, '~ "{column}" table {old}, rows {new} ({kind})')
        parts = {"old": self.table_type, "new": self.batch_type}
        return words.format(column=self.column, kind=self.kind, **parts)


@dataclass(frozen=True)
class Schema:
    """Columns in order, nested ones included, each under its path."""

    fields: tuple[Field, ...]
    document: str

    @staticmethod
    def from_json(text: str) -> Schema:
        """The schema a Spark or Delta schema document describes."""
        return Schema(tuple(_walk(json.loads(text), ())), text)

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


def _walk(struct: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[Field]:
    for entry in struct["fields"]:
        yield from _walk_type(entry["type"], (*above, entry["name"]))


def _walk_type(kind: Any, names: tuple[str, ...]) -> Iterator[Field]:
    name = kind if isinstance(kind, str) else str(kind["type"])
    yield Field(names, name, type_text(kind))
    if name == "struct":
        yield from _walk(kind, names)
    elif name == "array":
        yield from _walk_type(kind["elementType"], (*names, "element"))
    elif name == "map":
        yield from _walk_type(kind["keyType"], (*names, "key"))
        yield from _walk_type(kind["valueType"], (*names, "value"))


def compare(table: Schema, batch: Schema, *, may_widen: bool = False) -> tuple[SchemaChange, ...]:
    """How the rows of a batch differ from the table they go to; names ignore case."""
    in_table = {field.key: field for field in table.fields}
    in_batch = {field.key: field for field in batch.fields}
    changes = [
        SchemaChange(ADDED, field.path, "", field.text)
        for key, field in in_batch.items()
        if key not in in_table and not _below_another(key, in_table, in_batch)
    ]
    for key, field in in_table.items():
        if key in in_batch:
            kind = _type_change(field.type, in_batch[key].type, may_widen=may_widen)
            if kind:
                changes.append(SchemaChange(kind, field.path, field.text, in_batch[key].text))
        elif not _below_another(key, in_batch, in_table):
            changes.append(SchemaChange(MISSING, field.path, field.text, ""))
    return tuple(changes)


def replaced(table: Schema, batch: Schema) -> tuple[SchemaChange, ...]:
    """What is different where the columns of a batch take the place of the table's."""
    kinds = {MISSING: DROPPED, CAST: CHANGED}
    changes = [
        replace(change, kind=kinds.get(change.kind, change.kind))
        for change in compare(table, batch)
    ]
    old, new = ({f["name"].lower(): f for f in _entries(one)} for one in (table, batch))
    common = [name for name in old if name in new]
    for name in common:
        entry = old[name]
        if not entry["nullable"]:  # Delta takes every column of rows as one that may be NULL
            changes.append(SchemaChange(NULLS, entry["name"], "NOT NULL", "NULL allowed"))
        comment = entry["metadata"].get("comment", "")
        if comment and new[name]["metadata"].get("comment", "") != comment:
            changes.append(SchemaChange(COMMENT, entry["name"], json.dumps(comment), ""))
    after = [name for name in new if name in old]
    if common != after:
        changes.append(SchemaChange(ORDER, "", ", ".join(common), ", ".join(after)))
    return tuple(changes)


def _entries(schema: Schema) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(schema.document)["fields"]
    return found


_Fields = Mapping[tuple[str, ...], Field]


def _below_another(key: tuple[str, ...], here: _Fields, there: _Fields) -> bool:
    """Whether the parent differs already, so that naming the child adds nothing."""
    parent = key[:-1]
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
    """The differences, a line each; where a person stops reading, the others by name in one."""
    lines = [f"  {change.text()}" for change in changes[:most]]
    if others := changes[most:]:
        named = ", ".join(f'{change.text()[:1]} "{change.column}"' for change in others)
        lines.append(f"  (and {len(others)} more: {named})")
    return "\n".join(lines)
