"""Tables whose rows delta-rs reads as Spark does; all others are left to Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from deltaworks.engines.deltars.read.calendars import has_old_days
from deltaworks.engines.deltars.write.data_files import DataFolder
from deltaworks.engines.deltars.write.spark_parity import COMPARABLE
from deltaworks.engines.deltars.write.write_support import PARTITION_TYPES
from deltaworks.errors import UnsupportedOperation
from deltaworks.model.table_properties import maps_columns

if TYPE_CHECKING:
    from deltalake import DeltaTable

_FEATURES = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
_TYPES = COMPARABLE | {"float", "double", "binary", "timestamp_ntz"}
_PARTITION_TYPES = PARTITION_TYPES | {"timestamp", "timestamp_ntz"}
_LENGTH, _COLLATIONS = "__CHAR_VARCHAR_TYPE_STRING", "__COLLATIONS"


def refuse_misread_rows(table: DeltaTable, folder: DataFolder) -> None:
    """Raise when delta-rs may read other rows than Spark."""
    for what in _differences(table):
        raise _for_spark(folder.location, what)
    if has_old_days(table, folder):
        raise _for_spark(folder.location, "days by the old calendar")


def _for_spark(location: str, what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f'"{location}" has {what}, which only Spark reads right', hint="let Spark read it"
    )


def _differences(table: DeltaTable) -> Iterator[str]:
    for feature in sorted({*(table.protocol().reader_features or ())} - _FEATURES):
        yield f"the feature {feature}"
    metadata = table.metadata()
    if maps_columns(metadata.configuration):
        yield "column mapping"
    for field in json.loads(table.schema().to_json())["fields"]:
        is_partition = field["name"] in metadata.partition_columns
        if (is_partition and not _is_read_alike(field["type"], _PARTITION_TYPES)) or not (
            _is_read_alike(field["type"], _TYPES)
        ):
            yield f'column "{field["name"]}" of a type that delta-rs may read otherwise'
        if _changes_text(field["metadata"]):
            yield f'column "{field["name"]}" with a fixed length or a collation'


def _is_read_alike(kind: Any, types: frozenset[str]) -> bool:
    """Whether a type, and every type in it, is one of these."""
    if isinstance(kind, str):
        return kind in types or kind.startswith("decimal")
    inner = [kind[name] for name in ("elementType", "keyType", "valueType") if name in kind]
    inner += [field["type"] for field in kind.get("fields", ())]
    return kind["type"] != "udt" and all(_is_read_alike(one, types) for one in inner)


def _changes_text(notes: Mapping[str, Any]) -> bool:
    """Whether Spark pads a column's text as it reads it, or compares it by other rules."""
    length = str(notes.get(_LENGTH, "")).replace("varchar(", "")
    return "char(" in length or _COLLATIONS in notes
