"""Rows as a table will hold them, where that is not as they come.

A batch is compared with what the table gives back. Delta keeps the value of a column that makes
folders as text, in which nothing means NULL. And Spark fills texts of type CHAR with spaces when it
reads them, though Delta stores them as they came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.engines.spark.session.conf import temporary_conf
from deltaworks.errors import UnsupportedOperation
from deltaworks.model.schema import Schema
from deltaworks.model.table_info import TableInfo

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
"""The note of a column that its texts have a length."""
_PADDED = re.compile(r"\bchar\s*\(")
_PADS = "spark.sql.readSideCharPadding"
_NO_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_EMPTY = {"string": f"('', '{_NO_FOLDER}')", "binary": "(X'')"}


def as_stored(frame: DataFrame, folders: Sequence[str]) -> DataFrame:
    """The rows with NULL where Delta will store NULL, in the columns that make folders."""
    named = {name.lower() for name in folders}
    changed = {
        field.name: _or_null(field.name, field.dataType.typeName())
        for field in frame.schema.fields
        if field.name.lower() in named and field.dataType.typeName() in _EMPTY
    }
    notes = {field.name: field.metadata for field in frame.schema.fields if field.name in changed}
    for name, value in changed.items():
        frame = frame.withColumn(name, value.alias(name, metadata=notes[name]))
    return frame


def _or_null(name: str, kind: str) -> Column:
    from pyspark.sql import functions as F

    return F.expr(f"CASE WHEN {quoted(name)} IN {_EMPTY[kind]} THEN NULL ELSE {quoted(name)} END")


def unpadded(spark: SparkSession, table: TableInfo | None) -> AbstractContextManager[None]:
    """While this lasts, texts of type CHAR are read as they are stored."""
    padded = table is not None and any(_padded(table.schema))
    return temporary_conf(spark, {_PADS: "false"}) if padded else nullcontext()


def refuse_padded_keys(table: TableInfo, keys: Sequence[str]) -> None:
    """Raise when a key is of type CHAR: some engines store it with spaces and some without."""
    wanted = {key.lower() for key in keys}
    for name in _padded(table.schema):
        if name.lower() in wanted:
            raise UnsupportedOperation(
                f'merge key "{name}" is of type CHAR in "{table.location}": engines differ in the '
                "spaces at its end, so a row may not find its match",
                hint=f'make it a STRING: copy the table with "{name}" cast to STRING',
            )


def _padded(schema: Schema) -> Iterator[str]:
    """The columns that are or hold texts of type CHAR."""
    fields: list[dict[str, Any]] = json.loads(schema.document)["fields"]
    for field in fields:
        if _PADDED.search(field["metadata"].get(LENGTH, "")):
            yield field["name"]
