"""What Spark says of tables whose log it cannot read, in our words.

Logs are checked before Spark reads them (`engines/deltars/log/soundness.py`); this module covers
what changes in between, and buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from deltaworks.engines.spark.errors.causes import Cause
from deltaworks.errors import (
    DamagedCheckpoint,
    DamagedData,
    DamagedTable,
    DeltaworksError,
    UnreadableTable,
    UnsupportedTable,
)

_RESTORE = "nothing was written; restore the log from a backup before you run again"


def _gap(cause: Cause) -> DamagedTable:
    first, last = (cause.parameters.get(name, "?") for name in ("startVersion", "endVersion"))
    return DamagedTable(
        f"a table's log is damaged: commits between {first} and {last} are missing", hint=_RESTORE
    )


def _cut_off(cause: Cause) -> DamagedTable:
    version = cause.parameters.get("version", "?")
    return DamagedTable(
        f"{_log(cause)} is damaged: version {version} cannot be put together from what is left",
        hint=_RESTORE,
    )


def _no_parts(cause: Cause) -> DamagedTable:
    version = cause.parameters.get("version", "?")
    return DamagedCheckpoint(
        f"{_log(cause)} is damaged: a part of checkpoint {version} is missing", hint=_RESTORE
    )


def _no_state(cause: Cause) -> DamagedTable:
    what = cause.parameters.get("operation", "protocol or metadata")
    return UnreadableTable(f"{_log(cause)} cannot be read: it has no {what}", hint=_RESTORE)


def _no_columns(_: Cause) -> DamagedTable:
    return UnreadableTable(
        "a table cannot be read: it has no columns", hint="rewrite it with the columns it needs"
    )


def _unknown(cause: Cause) -> UnsupportedTable:
    table = cause.parameters.get("tableNameOrPath", "")
    named = f'"{table.removeprefix("file:")}"' if table else "a table"
    what = cause.parameters.get("unsupported", "a later version of the protocol")
    return UnsupportedTable(
        f"{named} needs {what}, which is not known here",
        hint="nothing was written; use it with what made it, or take the feature out there",
    )


def _by_catalog(cause: Cause) -> UnsupportedTable:
    return UnsupportedTable(
        f'"{cause.parameters.get("path", "the table")}" is managed by a catalog',
        hint="nothing was written; use it through its catalog",
    )


def _vector(_: Cause) -> DamagedData:
    return DamagedData(
        "a deletion vector of a table is damaged",
        hint="nothing was written; restore the file from a backup, or the table to a version "
        "without it",
    )


def _log(cause: Cause) -> str:
    path = cause.parameters.get("path", "") or cause.parameters.get("logPath", "")
    table = path.removeprefix("file:").partition("/_delta_log")[0]
    return f'the log of "{table}"' if table else "a table's log"


TABLE_ERRORS: Mapping[str, Callable[[Cause], DeltaworksError]] = {
    "DELTA_VERSIONS_NOT_CONTIGUOUS": _gap,
    "DELTA_TRUNCATED_TRANSACTION_LOG": _cut_off,
    "DELTA_LOG_FILE_NOT_FOUND": _cut_off,
    "DELTA_TXN_LOG_FAILED_INTEGRITY": _cut_off,
    "DELTA_MISSING_PART_FILES": _no_parts,
    "DELTA_STATE_RECOVER_ERROR": _no_state,
    "DELTA_READ_TABLE_WITHOUT_COLUMNS": _no_columns,
    "DELTA_SCHEMA_NOT_SET": _no_columns,
    "DELTA_INVALID_PROTOCOL_VERSION": _unknown,
    "DELTA_UNSUPPORTED_FEATURES_FOR_READ": _unknown,
    "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE": _unknown,
    "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED": _by_catalog,
    "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH": _vector,
    "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH": _vector,
    "DELTA_DELETION_VECTOR_INVALID_ROW_INDEX": _vector,
    "DELTA_DELETION_VECTOR_SIZE_MISMATCH": _vector,
}
