"""The MERGE statement, as text that can be shown, tested and run anywhere Spark SQL runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deltaworks.contracts.expression import without_target
from deltaworks.engines.spark.delta.merge.key_ranges import condition
from deltaworks.engines.spark.frames.audit_columns import MARK, written_too
from deltaworks.engines.spark.frames.columns import exact_json, quoted
from deltaworks.engines.spark.frames.comparable import form, needs_form
from deltaworks.model.merge_facts import KeyRange
from deltaworks.model.schema import Schema, type_text
from deltaworks.model.write import Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NEW = "new"
AS_JSON = "json"
AS_FORM = "form "
"""Followed by the type, as a schema document has it."""
NOT_AT_ALL = "not"


def key_match(keys: Sequence[str]) -> str:
    """The condition that finds a row's match."""
    return " AND ".join(f"target.{quoted(key)} = source.{quoted(key)}" for key in keys)


def comparisons(table: Schema, batch: Schema) -> dict[str, str]:
    """How each column of the batch is compared: as it is, in a form, as new, or not at all."""
    fields = json.loads(table.document)["fields"]
    types = {field["name"].lower(): field["type"] for field in fields}
    ways = {}
    for field in json.loads(batch.document)["fields"]:
        name, kind = field["name"].lower(), types.get(field["name"].lower())
        if field["metadata"].get(MARK):
            ways[name] = NOT_AT_ALL
        elif kind is None:
            ways[name] = NEW
        elif type_text(kind) != type_text(field["type"]) and not isinstance(kind, str):
            ways[name] = AS_JSON  # Spark compares no unlike structs
        elif needs_form(kind):
            ways[name] = f"{AS_FORM}{json.dumps(kind)}"
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
    target, source = f"target.{column}", f"source.{column}"
    if way.startswith(AS_FORM):
        kind = json.loads(way.removeprefix(AS_FORM))
        return f"NOT ({form(target, kind)} <=> {form(source, kind)})"
    return f"NOT ({target} <=> {source})"


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


def outline_sql(upsert: Upsert, *, location: str) -> str:
    """The statement before anybody knows the batch: what depends on it is said in comments."""
    updated = updated_columns(upsert, upsert.update_columns)
    changes, settings = "/* a column differs */", "/* all columns of the batch but the keys */"
    if updated:
        changes, settings = differs(updated, {}), _settings(updated)
    if upsert.update_condition:
        changes = f"({upsert.update_condition}\n) AND ({changes})"
    update = f"WHEN MATCHED AND ({changes}) THEN UPDATE SET {settings}"
    inserts = "/* all columns of the batch */"
    if upsert.insert_columns:
        inserts = _values(_once(*upsert.keys, *upsert.insert_columns))
    within = "" if upsert.delete_missing else " /* and within the range of the batch's keys */"
    return _statement(
        upsert,
        table=f"delta.{quoted(location)}",
        source="batch",
        matched=f"{key_match(upsert.keys)}{within}",
        update=update if updated or not upsert.update_columns else "",
        inserts=inserts,
    )


def _once(*names: str) -> list[str]:
    return list({name.lower(): name for name in reversed(names)}.values())[::-1]


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
    update = ""
    if updated := updated_columns(upsert, batch):
        changes = update_when(upsert, batch, ways)
        update = f"WHEN MATCHED AND ({changes}) THEN UPDATE SET {_settings(updated)}"
    bounded = [condition(found, qualifier="target.") for found in ranges]
    return _statement(
        upsert,
        table=table,
        source=source,
        matched="\n  AND ".join([key_match(upsert.keys), *bounded]),
        update=update,
        inserts=_values(inserted_columns(upsert, batch)),
    )


def _statement(
    upsert: Upsert, *, table: str, source: str, matched: str, update: str, inserts: str
) -> str:
    evolution = " WITH SCHEMA EVOLUTION" if upsert.merge_schema else ""
    parts = [
        f"MERGE{evolution} INTO {table} AS target",
        f"USING {source} AS source",
        f"ON {matched}",
    ]
    if upsert.delete_condition:
        parts.append(f"WHEN MATCHED AND ({upsert.delete_condition}\n) THEN DELETE")
    if update:
        parts.append(update)
    unmatched = "WHEN NOT MATCHED"
    if upsert.delete_condition:
        unmatched += f" AND NOT coalesce({without_target(upsert.delete_condition)}, false)"
    parts.append(f"{unmatched} THEN INSERT {inserts}")
    if upsert.delete_missing:
        parts.append("WHEN NOT MATCHED BY SOURCE THEN DELETE")
    return "\n".join(parts)


def _settings(columns: Sequence[str]) -> str:
    return ", ".join(f"{quoted(name)} = source.{quoted(name)}" for name in columns)


def _values(columns: Sequence[str]) -> str:
    names = ", ".join(quoted(name) for name in columns)
    values = ", ".join(f"source.{quoted(name)}" for name in columns)
    return f"({names}) VALUES ({values})"


def without_deletes(frame: DataFrame, write: Upsert) -> DataFrame:
    """The rows a first batch inserts: those that would only delete a match are left out."""
    if not write.delete_condition:
        return frame
    condition = without_target(write.delete_condition)
    return frame.alias("source").filter(f"NOT coalesce({condition}, false)")


def first_rows(frame: DataFrame, write: Upsert) -> DataFrame:
    """A table's first rows: the columns it is to have, with values where an insert gives them."""
    from pyspark.sql import functions as F

    write = written_too(frame, write)
    rows = without_deletes(frame, write)
    filled = inserted_columns(write, frame.columns)
    types = {field.name: field.dataType for field in frame.schema.fields}
    return rows.select(
        *[
            F.col(quoted(name)) if name in filled else F.lit(None).cast(types[name]).alias(name)
            for name in written_columns(write, frame.columns)
        ]
    )
