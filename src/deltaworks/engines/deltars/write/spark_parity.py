"""The one list of what delta-rs may commit in Spark's place.

It may only where both writers surely leave the same table, as Spark reads it. So this names what is
known to be alike, by types, properties, notes of columns and values; all else is Spark's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deltaworks.model.schema import Schema
from deltaworks.model.table_properties import APPEND_ONLY, AUTO_COMPACT, FEED, is_on

if TYPE_CHECKING:
    import pyarrow as pa

INTEGERS = frozenset({"byte", "short", "integer", "long"})
COMPARABLE = INTEGERS | {"string", "date", "timestamp", "boolean"}
"""Types whose values both engines compare alike; decimals only where none is converted."""
KEYS = COMPARABLE
"""Types of keys: delta-rs skips files by statistics, and others round those of decimals."""
_COLUMNS = COMPARABLE | {"float", "double", "binary", "timestamp_ntz"}
_PROPERTIES = frozenset(
    {
        "delta.autoOptimize.optimizeWrite",
        "delta.checkpoint.writeStatsAsJson",
        "delta.checkpoint.writeStatsAsStruct",
        "delta.checkpointInterval",
        "delta.columnMapping.mode",  # "none"; another is an obstacle
        "delta.compatibility.symlinkFormatManifest.enabled",  # off; on it is a hook of Spark's
        "delta.dataSkippingNumIndexedCols",
        "delta.dataSkippingStatsColumns",
        "delta.deletedFileRetentionDuration",
        "delta.enableDeletionVectors",  # off; on it is a feature
        "delta.enableExpiredLogCleanup",
        "delta.isolationLevel",
        "delta.logRetentionDuration",
        "delta.minReaderVersion",
        "delta.minWriterVersion",
        "delta.targetFileSize",
        APPEND_ONLY,
        AUTO_COMPACT,
        FEED,
    }
)
_MUST_BE_OFF = (AUTO_COMPACT, "delta.compatibility.symlinkFormatManifest.enabled")
_MUST_BE_OFF_TO_MERGE = (FEED, APPEND_ONLY)
_OWN_NOTES = ("delta.", "__", "CURRENT_DEFAULT", "EXISTS_DEFAULT")
"""What notes of a column begin with that engines act on, such as a length or a collation."""
_NO_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_MAX_FOLDER_BYTES = 80
"""A folder's name has 255 bytes at most, and each of a value's may take three."""
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""From year 1 to 9999, in days from 1970: what every engine can spell."""
_DAY_US = 86_400_000_000


def column_problem(schema: Schema, *, new: bool = False) -> str:
    """Why rows of these columns are better written by Spark; empty when either will do."""
    for field in _fields(schema):
        kind = field["type"]
        if not isinstance(kind, str) or not (kind in _COLUMNS or kind.startswith("decimal")):
            return f'column "{field["name"]}" is of a type that Spark had better write'
        if has_own_note(field) or (new and field["metadata"]):
            return f'column "{field["name"]}" has a length or a note, which only Spark knows'
    return ""


def has_own_note(field: Mapping[str, Any]) -> bool:
    """Whether a column has a note that changes how its values are stored or compared."""
    return any(name.startswith(_OWN_NOTES) for name in field["metadata"])


def key_problem(schema: Schema, keys: Sequence[str]) -> str:
    """Why keys of these types are better compared by Spark; empty when either will do."""
    types = {field["name"].lower(): field["type"] for field in _fields(schema)}
    for key in keys:
        if types.get(key.lower()) not in KEYS:
            return f'key "{key}" is of a type that Spark had better compare'
    return ""


def property_problem(properties: Mapping[str, str], *, merges: bool) -> str:
    """Why a table with these properties is better written by Spark."""
    for name in (*_MUST_BE_OFF, *(_MUST_BE_OFF_TO_MERGE if merges else ())):
        if is_on(properties, name):
            return f"the table has {name}"
    for name in properties:
        if name.startswith("parquet."):
            return "the table says how its Parquet files are written"
        if name.startswith("delta.") and name not in _PROPERTIES:
            return f"the table has {name}"
    return ""


def value_problem(rows: pa.Table, folders: Sequence[str]) -> str:
    """Why these values are better written by Spark; `folders` make the table's folders."""
    named = {name.lower() for name in folders}
    for name in rows.column_names:
        column = rows.column(name)
        if name.lower() in named and not _all_name_folders(column):
            return f'column "{name}", which makes folders, has a text that Spark stores otherwise'
        if not _all_valid_text(column):
            return f'column "{name}" has text that is not UTF-8'
        if not _all_near(column):
            return f'column "{name}" has a time before year 1 or after year 9999'
    return ""


def no_folder(column: pa.ChunkedArray) -> str:
    """Which text of a column cannot name a folder, because Spark reads it as NULL; else empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type):
        return ""
    for text, what in (("", "an empty text"), (_NO_FOLDER, f'the text "{_NO_FOLDER}"')):
        if pc.any(pc.equal(column, text)).as_py():
            return what
    return ""


def _all_name_folders(column: pa.ChunkedArray) -> bool:
    """Whether texts become folders and come back the same."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type) or column.null_count == len(column):
        return True
    longest = pc.max(pc.binary_length(column)).as_py()
    return bool(longest <= _MAX_FOLDER_BYTES and not no_folder(column))


def _all_valid_text(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa

    if not pa.types.is_string(column.type):
        return True
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _all_near(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if not pa.types.is_temporal(kind) or column.null_count == len(column):
        return True
    is_day = pa.types.is_date32(kind)
    ends = pc.min_max(column.cast(pa.int32() if is_day else pa.int64()))
    unit = 1 if is_day else _DAY_US
    low, high = ends["min"].as_py() // unit, ends["max"].as_py() // unit
    return bool(low >= _FIRST_DAY and high <= _LAST_DAY)


def _fields(schema: Schema) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(schema.document)["fields"]
    return found
