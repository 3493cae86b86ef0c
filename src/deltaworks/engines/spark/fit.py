"""Make the rows of a batch fit the table they go to, or show why they do not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deltaworks.engines.spark.columns import quoted
from deltaworks.errors import SchemaMismatch
from deltaworks.model.schema import (
    ADDED,
    CAST,
    CHANGED,
    WIDENED,
    Schema,
    SchemaChange,
    compare,
    diff_text,
)
from deltaworks.model.table_info import TableInfo

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def frame_schema(frame: DataFrame) -> Schema:
    """The schema of a frame as a value."""
    return Schema.from_json(frame.schema.json())


def fit(
    frame: DataFrame, table: TableInfo, *, merge_schema: bool
) -> tuple[DataFrame, tuple[SchemaChange, ...]]:
    """The rows with the table's types, and what the write would change in its schema."""
    widening = table.properties.get("delta.enableTypeWidening") == "true"
    changes = compare(table.schema, frame_schema(frame), may_widen=widening and merge_schema)
    refuse(changes, table.location, merge_schema=merge_schema)
    return _with_table_types(frame, table, changes), changes


def refuse(changes: tuple[SchemaChange, ...], location: str, *, merge_schema: bool) -> None:
    """Raise with the difference when it is more than the pipeline allows."""
    added = [change for change in changes if change.kind == ADDED and not merge_schema]
    changed = [change for change in changes if change.kind == CHANGED]
    wrong = (*changed, *added)
    if not wrong:
        return
    hint = (
        "cast the columns, or say `overwrite_schema: true` with mode overwrite"
        if changed
        else "say `merge_schema: true` to add columns, or leave them out with a select step"
    )
    raise SchemaMismatch(
        f'the rows do not fit table "{location}":\n{diff_text(wrong, most=3)}', hint=hint
    )


def _with_table_types(
    frame: DataFrame, table: TableInfo, changes: tuple[SchemaChange, ...]
) -> DataFrame:
    """Cast top-level columns whose values all fit the table's type."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    grows = {_top(change.column) for change in changes if change.kind in (ADDED, WIDENED)}
    to_cast = {_top(change.column) for change in changes if change.kind == CAST} - grows
    if not to_cast:
        return frame
    struct = StructType.fromJson(json.loads(table.schema.document))
    types = {field.name.lower(): field.dataType for field in struct.fields}
    return frame.withColumns(
        {
            name: F.col(quoted(name)).cast(types[name.lower()])
            for name in frame.columns
            if name.lower() in to_cast
        }
    )


def _top(path: str) -> str:
    return path.partition(".")[0].lower()
