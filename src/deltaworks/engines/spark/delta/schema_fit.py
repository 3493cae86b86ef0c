"""Make the rows of a batch fit the table they go to, or show why they do not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deltaworks.engines.spark.frames.audit_columns import marks
from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.engines.spark.frames.json_rows import sample_rows
from deltaworks.engines.spark.frames.reshape import shaped
from deltaworks.engines.spark.frames.temp_views import aside
from deltaworks.errors import ConstraintViolated, SchemaMismatch, UnsupportedOperation
from deltaworks.model.schema import (
    ADDED,
    CHANGED,
    WIDENED,
    Schema,
    SchemaChange,
    compare,
    diff_text,
)
from deltaworks.model.table_info import TableInfo
from deltaworks.model.table_properties import APPEND_ONLY, WIDENING, is_on

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def frame_schema(frame: DataFrame) -> Schema:
    """The schema of a frame as a value."""
    return Schema.from_json(frame.schema.json())


def fit(
    frame: DataFrame,
    table: TableInfo,
    *,
    merge_schema: bool,
    columns: Sequence[str] | None = None,
) -> tuple[DataFrame, tuple[SchemaChange, ...]]:
    """The rows with the table's types, and what writing the columns would change in its schema."""
    widening = is_on(table.properties, WIDENING)
    written = frame if columns is None else frame.select(*[quoted(name) for name in columns])
    changes = compare(table.schema, frame_schema(written), may_widen=widening and merge_schema)
    asked = [c for c in changes if c.kind != ADDED or c.column not in marks(frame)]
    refuse(tuple(asked), table.location, merge_schema=merge_schema)
    return _with_table_types(frame, table), changes


def with_folders(frame: DataFrame, table: TableInfo) -> DataFrame:
    """The rows with NULL in columns they lack that make the table's folders: Spark takes no fewer.

    Only for rows that are added; a merge leaves alone what the rows do not have.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    have = {name.lower() for name in frame.columns}
    types = StructType.fromJson(json.loads(table.schema.document))
    lacking = [name for name in table.partition_columns if name.lower() not in have]
    nothing = {name: F.lit(None).cast(types[name].dataType) for name in lacking}
    return frame.withColumns(nothing) if nothing else frame


def grows(changes: tuple[SchemaChange, ...]) -> bool:
    """Whether the write would change the table's schema."""
    return any(change.kind in (ADDED, WIDENED) for change in changes)


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


def refuse_append_only(table: TableInfo) -> None:
    """Raise where rows would go from a table that only takes more of them."""
    if is_on(table.properties, APPEND_ONLY):
        raise UnsupportedOperation(
            f'table "{table.location}" is append-only, and rows of it would be changed or removed',
            hint=f"append to it, or set its property {APPEND_ONLY} to false",
        )


def refuse_outside(frame: DataFrame, condition: str) -> None:
    """A table is made by rows that its own replace_where covers."""
    if not condition:
        return
    with aside(frame) as rows:
        outside = sample_rows(rows.filter(f"NOT coalesce(({condition}\n), false)"), most=1)
    if outside:
        raise ConstraintViolated(
            f"a row lies outside replace_where ({condition}): {outside[0]}",
            hint="filter the rows first, or widen replace_where",
        )


def _with_table_types(frame: DataFrame, table: TableInfo) -> DataFrame:
    """The columns that differ from the table's, with its types; nested fields go by name."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    struct = StructType.fromJson(json.loads(table.schema.document))
    wanted = {field.name.lower(): field.dataType for field in struct.fields}
    differing = {
        field.name: shaped(F.col(quoted(field.name)), field.dataType, wanted[field.name.lower()])
        for field in frame.schema.fields
        if field.name.lower() in wanted
        and field.dataType.simpleString() != wanted[field.name.lower()].simpleString()
    }
    return frame.withColumns(differing) if differing else frame
