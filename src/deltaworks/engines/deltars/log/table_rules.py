"""What a log must say of its table: a protocol we know, and columns that can be read.

The features are those of the Delta release that Spark runs here; delta-rs knows fewer, and what
it does not know is Spark's to answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deltaworks.errors import DeltaworksError, UnreadableTable, UnsupportedTable

_READER, _WRITER = 3, 7
_BOTH = frozenset(
    {
        *("columnMapping", "deletionVectors", "geospatial", "timestampNtz", "v2Checkpoint"),
        *("typeWidening", "typeWidening-preview", "vacuumProtocolCheck"),
        *("variantType", "variantType-preview", "variantShredding", "variantShredding-preview"),
    }
)
_WRITING = frozenset(
    {
        *("allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints"),
        *("checkpointProtection", "clustering", "domainMetadata", "generatedColumns"),
        *("icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "identityColumns"),
        *("inCommitTimestamp", "invariants", "materializePartitionColumns", "rowTracking"),
    }
)
_BY_CATALOG = ("catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview")
_COORDINATOR = "delta.coordinatedCommits.commitCoordinator-preview"
_TYPES = frozenset(
    {
        *("string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary"),
        *("date", "timestamp", "timestamp_ntz", "variant", "void", "null"),
    }
)
_DECIMAL = re.compile(r"decimal(?:\(\s*([0-9]+)\s*,\s*(-?[0-9]+)\s*\))?")
_SIZED = re.compile(r"(?:char|varchar|time)\([0-9]+\)|(?:geometry|geography)\(.*\)|interval .*")
_MAX_DIGITS = 38
_MAPPINGS = ("none", "name", "id")
_HINT = "nothing was written; restore the log from a backup, or rewrite the table"


@dataclass(frozen=True)
class Protocol:
    """What a reader and a writer of a table must know."""

    reader: int
    writer: int
    features: frozenset[str] = frozenset()

    def unknown_to_writers(self) -> str:
        """What keeps us from writing; empty when nothing does."""
        if self.writer > _WRITER:
            return f"version {self.writer} of the writers' protocol"
        unknown = sorted(self.features - _BOTH - _WRITING)
        return f"the feature {unknown[0]}" if unknown else ""


def read_protocol(location: str, found: Mapping[str, Any] | None) -> Protocol:
    """A table's protocol, or why its rows cannot be read."""
    if found is None:
        raise unreadable(location, "its log has no protocol")
    said = found.get("minReaderVersion"), found.get("minWriterVersion")
    reader, writer = (_version(one) for one in said)
    if not reader or writer is None:
        raise unreadable(location, f"its protocol is {said[0]!r} and {said[1]!r}, no versions")
    listed = {name: found.get(name) for name in ("readerFeatures", "writerFeatures")}
    for name, features in listed.items():
        if features is not None and not _is_list_of_text(features):
            raise unreadable(location, f"{name} of its protocol is not a list of names")
    reading, writing = (frozenset(features or ()) for features in listed.values())
    _refuse_unknown(location, reader, reading, writing)
    if reader == _READER and listed["readerFeatures"] is None:
        raise unreadable(location, "its protocol names no features for readers")
    if not reading <= writing:
        name = min(reading - writing)
        raise unreadable(location, f"its protocol asks readers for {name}, and not writers")
    return Protocol(reader, writer, reading | writing)


def _refuse_unknown(
    location: str, reader: int, reading: frozenset[str], writing: frozenset[str]
) -> None:
    for feature in _BY_CATALOG:
        if feature in reading | writing:
            raise by_catalog(location)
    if reader > _READER:
        raise unsupported(location, f"version {reader} of the readers' protocol")
    if unknown := reading - _BOTH - _WRITING:
        raise unsupported(location, f"the feature {min(unknown)}")


def check_metadata(location: str, found: Mapping[str, Any] | None) -> None:
    """Refuse a table whose columns or properties nobody could read."""
    if found is None:
        raise unreadable(location, "its log has no metadata")
    if found.get("id") is None:
        raise unreadable(location, "its metadata has no id")
    kind = found.get("format") or {"provider": "parquet"}
    if not isinstance(kind, Mapping) or kind.get("provider") != "parquet":
        raise unsupported(location, "another format for its files than Parquet")
    names = _columns(location, found.get("schemaString"))
    partitions = found.get("partitionColumns")
    if partitions is not None and not _is_list_of_text(partitions):
        raise unreadable(location, "its partition columns are not a list of names")
    for name in partitions or ():
        if name.lower() not in names:
            raise unreadable(location, f'it is partitioned by "{name}", which is no column')
    _check_properties(location, found.get("configuration"))


def _check_properties(location: str, properties: object) -> None:
    properties = {} if properties is None else properties
    if not isinstance(properties, Mapping):
        raise unreadable(location, "its properties are no map")
    if properties.get(_COORDINATOR):
        raise by_catalog(location)
    mapping = properties.get("delta.columnMapping.mode", "none")
    if mapping not in _MAPPINGS:
        raise unreadable(location, f'its columns are mapped by "{mapping}", which nobody knows')


def _columns(location: str, text: object) -> frozenset[str]:
    """The names of the columns, in small letters; refused when one cannot be read."""
    try:
        document = json.loads(text) if isinstance(text, str) else None
        fields = document.get("fields") if isinstance(document, dict) else None
        problem = (
            _field_problem(fields) if isinstance(fields, list) else "its schema cannot be read"
        )
    except (ValueError, RecursionError):  # no JSON, or nested without end
        problem = "its schema cannot be read"
    if problem:
        raise unreadable(location, problem)
    if not fields:
        raise unreadable(location, "it has no columns", "rewrite it with the columns it needs")
    return frozenset(str(field["name"]).lower() for field in fields)


def _field_problem(fields: list[Any]) -> str:
    """What is wrong with some columns; empty when nothing is."""
    names = set()
    for field in fields:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str):
            return "its schema has a column without a name"
        name = field["name"]
        if name.lower() in names:
            return f'its schema has column "{name}" twice'
        names.add(name.lower())
        if problem := _type_problem(field.get("type")):
            return f'column "{name}" {problem}'
    return ""


def _type_problem(kind: object) -> str:
    if isinstance(kind, str):
        return "" if _is_known(kind) else f'is of type "{kind}", which nobody knows'
    parts = _PARTS.get(str(kind.get("type"))) if isinstance(kind, dict) else None
    if parts is None or not isinstance(kind, dict):
        return "is of a type that nobody knows"
    if not parts:
        inner = kind.get("fields")
        found = _field_problem(inner) if isinstance(inner, list) else "it has no fields"
        return f"is a struct that is wrong: {found}" if found else ""
    return next((found for part in parts if (found := _type_problem(kind.get(part)))), "")


_PARTS: Mapping[str, tuple[str, ...]] = {
    "struct": (),
    "array": ("elementType",),
    "map": ("keyType", "valueType"),
    "udt": ("sqlType",),
}


def _is_known(kind: str) -> bool:
    if kind in _TYPES or _SIZED.fullmatch(kind):
        return True
    match = _DECIMAL.fullmatch(kind)
    return match is not None and int(match[1] or 10) <= _MAX_DIGITS


def _version(value: object) -> int | None:
    is_one = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_one and isinstance(value, int) else None


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def unreadable(location: str, what: str, hint: str = _HINT) -> DeltaworksError:
    """The error for a table that does not say what it is."""
    return UnreadableTable(f'"{location}" cannot be read: {what}', hint=hint)


def unsupported(location: str, what: str) -> DeltaworksError:
    """The error for a table of a time that is not yet."""
    return UnsupportedTable(
        f'"{location}" needs {what}, which is not known here',
        hint="nothing was written; use it with what made it, or take the feature out there",
    )


def by_catalog(location: str) -> DeltaworksError:
    """The error for a table whose commits a catalog keeps."""
    return UnsupportedTable(
        f'"{location}" is managed by a catalog, which alone knows its latest commits',
        hint="nothing was written; use it through its catalog",
    )
