"""The MERGE statement, as text that can be shown, tested and run anywhere Spark SQL runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from deltaworks.contracts.expression import without_target
from deltaworks.engines.spark.audit import MARK
from deltaworks.engines.spark.columns import exact_json, quoted
from deltaworks.engines.spark.key_ranges import condition
from deltaworks.model.merge_facts import KeyRange
from deltaworks.model.schema import Schema
from deltaworks.model.write import Upsert

NEW = "new"
AS_JSON = "json"
NOT_AT_ALL = "not"


def key_match(keys: Sequence[str]) -> str:
    """The condition that finds a row's match."""
    return " AND ".join(f"target.{quoted(key)} = source.{quoted(key)}" for key in keys)


def comparisons(table: Schema, batch: Schema) -> dict[str, str]:
    """How each column of the batch is compared: as it is, as JSON, as new, or not at all."""
    types = {entry["name"].lower(): entry["type"] for entry in table.to_json()}
    ways = {}
    for entry in batch.to_json():
        kind = types.get(entry["name"].lower())
        if kind is None:
            ways[entry["name"].lower()] = NEW
        elif "map<" in kind or (kind != entry["type"] and "<" in kind):
            ways[entry["name"].lower()] = AS_JSON  # Spark compares no maps, nor unlike structs
    for field in json.loads(batch.document)["fields"]:
        if field["metadata"].get(MARK):
            ways[field["name"].lower()] = NOT_AT_ALL
    return ways


def differs(columns: Sequence[str], ways: Mapping[str, str]) -> str:
    """True when any of the columns would change; NULLs are values here."""
    compared = [name for name in columns if ways.get(name.lower()) != NOT_AT_ALL]
    return " OR ".join(_differs(name, ways.get(name.lower(), "")) for name in compared) or "false"


def _differs(name: str, way: str) -> str:
    column = quoted(name)
    if way == NEW:
        return f"source.{column} IS NOT NULL"
    if way == AS_JSON:
        return f"NOT ({exact_json(f'target.{column}')} <=> {exact_json(f'source.{column}')})"
    return f"NOT (target.{column} <=> source.{column})"


def updated_columns(upsert: Upsert, batch: Sequence[str]) -> list[str]:
    """Columns an update sets: those asked for, or all of the batch but the keys."""
    keys = {key.lower() for key in upsert.keys}
    wanted = {name.lower() for name in upsert.update_columns}
    return [
        name
        for name in batch
        if name.lower() not in keys and (not wanted or name.lower() in wanted)
    ]


def inserted_columns(upsert: Upsert, batch: Sequence[str]) -> list[str]:
    """Columns an insert fills: those asked for and the keys, or all of the batch."""
    wanted = {name.lower() for name in (*upsert.insert_columns, *upsert.keys)}
    return [name for name in batch if not upsert.insert_columns or name.lower() in wanted]


def written_columns(upsert: Upsert, batch: Sequence[str]) -> list[str]:
    """Columns of the batch that reach the table by an update or an insert."""
    reached = {*updated_columns(upsert, batch), *inserted_columns(upsert, batch)}
    return [name for name in batch if name in reached]


def update_when(upsert: Upsert, batch: Sequence[str], ways: Mapping[str, str]) -> str:
    """When a matched row is updated: the user's condition, and something to change."""
    changes = differs(updated_columns(upsert, batch), ways)
    if not upsert.update_condition:
        return changes
    return f"({upsert.update_condition}\n) AND ({changes})"


def merge_sql(
    upsert: Upsert,
    *,
    table: str,
    source: str,
    batch: Sequence[str],
    ways: Mapping[str, str],
    ranges: Sequence[KeyRange] = (),
) -> str:
    """The whole statement; ranges of the batch's keys let Delta skip files that hold none."""
    evolution = " WITH SCHEMA EVOLUTION" if upsert.merge_schema else ""
    parts = [
        f"MERGE{evolution} INTO {table} AS target",
        f"USING {source} AS source",
        "\n  AND ".join(
            [
                f"ON {key_match(upsert.keys)}",
                *(condition(found, qualifier="target.") for found in ranges),
            ]
        ),
    ]
    if upsert.delete_condition:
        parts.append(f"WHEN MATCHED AND ({upsert.delete_condition}\n) THEN DELETE")
    updated = updated_columns(upsert, batch)
    if updated:
        settings = ", ".join(f"{quoted(n)} = source.{quoted(n)}" for n in updated)
        changes = update_when(upsert, batch, ways)
        parts.append(f"WHEN MATCHED AND ({changes}) THEN UPDATE SET {settings}")
    inserted = inserted_columns(upsert, batch)
    names = ", ".join(quoted(name) for name in inserted)
    values = ", ".join(f"source.{quoted(name)}" for name in inserted)
    unmatched = "WHEN NOT MATCHED"
    if upsert.delete_condition:
        unmatched += f" AND NOT coalesce({without_target(upsert.delete_condition)}, false)"
    parts.append(f"{unmatched} THEN INSERT ({names}) VALUES ({values})")
    if upsert.delete_missing:
        parts.append("WHEN NOT MATCHED BY SOURCE THEN DELETE")
    return "\n".join(parts)
