"""Tables that delta-rs can write without doing harm, and settings that would lock it out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from deltaworks.errors import UnsupportedOperation
from deltaworks.model.table_properties import (
    APPEND_ONLY,
    FEED,
    LOG_CLEANUP,
    LOG_RETENTION,
    is_on,
    maps_columns,
)

if TYPE_CHECKING:
    from deltalake import DeltaTable

_FEATURES = frozenset({"appendOnly", "invariants", "changeDataFeed", "timestampNtz"})
_MAY_BE_SET = frozenset(
    {
        "delta.appendOnly",
        "delta.checkpointInterval",
        "delta.dataSkippingNumIndexedCols",
        "delta.deletedFileRetentionDuration",
        "delta.enableChangeDataFeed",
        "delta.enableExpiredLogCleanup",
        "delta.logRetentionDuration",
        "delta.targetFileSize",
    }
)
_RULES = ("delta.invariants", "delta.generationExpression", "delta.identity.start")
_FORGETS = "delta.setTransactionRetentionDuration"
_FLAGS = ("true", "false")
_READ_ALIKE = re.compile(r"interval(\s+\d+\s+(week|day|hour|minute|second)s?)+")
SPARK_CAN = "load it with a pipeline: Spark can write such a table"
PARTITION_TYPES = frozenset({"string", "byte", "short", "integer", "long", "date", "boolean"})


def refuse_properties(properties: Mapping[str, str]) -> None:
    """Refuse what would make a table that delta-rs can no longer write, or that forgets epochs."""
    for name, value in properties.items():
        if name in (APPEND_ONLY, FEED) and value not in _FLAGS:
            raise UnsupportedOperation(
                f'"{name}" is "{value}", which delta-rs does not read', hint='write "true"'
            )
        if name == _FORGETS:
            raise UnsupportedOperation(
                f'"{name}" would make the table forget which epochs it has',
                hint="leave it out",
            )
        if name.startswith("delta.") and name not in _MAY_BE_SET:
            raise UnsupportedOperation(
                f'"{name}" would keep delta-rs from writing the table',
                hint=f"leave it out, or {SPARK_CAN}",
            )


def refuse_unwritable(table: DeltaTable, *, label: str, only_adds: bool) -> None:
    """Refuse a table with anything that delta-rs would damage or pass over."""
    for what in obstacles(table):
        raise UnsupportedOperation(
            f'"{label}" has {what}, which the epoch sink cannot keep', hint=SPARK_CAN
        )
    settings = table.metadata().configuration
    if not only_adds and is_on(settings, FEED) and settings[FEED] not in _FLAGS:
        raise UnsupportedOperation(
            f'"{label}" has {FEED} as "{settings[FEED]}", which delta-rs does not read',
            hint='set it to "true"',
        )
    if not only_adds and is_on(settings, APPEND_ONLY):
        raise UnsupportedOperation(
            f'"{label}" is append-only', hint='use mode "append", or set delta.appendOnly to false'
        )


def obstacles(table: DeltaTable) -> Iterator[str]:
    """Whatever a table has that delta-rs would damage or pass over."""
    protocol, settings = table.protocol(), table.metadata().configuration
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    for feature in sorted(features - _FEATURES - {"checkConstraints", "generatedColumns"}):
        yield f"the feature {feature}"
    if maps_columns(settings):
        yield "column mapping"
    if _FORGETS in settings:
        yield f"the property {_FORGETS}"
    for name in settings:
        if name.startswith("delta.constraints."):
            yield f"the constraint {name.removeprefix('delta.constraints.')}"
    document = json.loads(table.schema().to_json())
    yield from _rules(document)
    partitions = table.metadata().partition_columns
    for field in document["fields"]:
        if field["name"] in partitions and field["type"] not in PARTITION_TYPES:
            yield f'the partition column "{field["name"]}" of type {field["type"]}'


def may_forget(properties: Mapping[str, str]) -> bool:
    """Whether delta-rs may remove what expired of a log.

    It falls back to 30 days where it cannot read how long the log is to be kept.
    """
    kept = properties.get(LOG_RETENTION)
    is_read = kept is None or _READ_ALIKE.fullmatch(kept) is not None
    return is_read and is_on(properties, LOG_CLEANUP, default=True)


def _rules(document: Mapping[str, Any]) -> Iterator[str]:
    """Rules of columns, which nobody would check."""
    for field in document["fields"]:
        for rule in _RULES:
            if rule in field["metadata"]:
                yield f'a rule for column "{field["name"]}" ({rule})'
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            yield from _rules(field["type"])
