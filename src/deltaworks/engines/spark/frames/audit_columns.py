"""Columns that say which run and batch wrote a row.

They are marked in the frame, so that a write adds them to a table unasked and never takes a row
for changed because of them. The mark does not reach the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deltaworks.model.write import Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RUN_ID, BATCH = "_run_id", "_batch"
MARK = "deltaworks.audit"


def stamped(frame: DataFrame, *, run_id: str, n: int) -> DataFrame:
    """The rows with the run and the batch that write them, in place of older ones."""
    from pyspark.sql import functions as F

    always = F.lit(col=True)  # a column that could be NULL, as it is for older rows of the table
    columns = {
        RUN_ID: F.when(always, F.lit(run_id)),
        BATCH: F.when(always, F.lit(n).cast("bigint")),
    }
    return marked(frame.withColumns(columns), tuple(columns))


def marked(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The frame with these columns marked."""
    for name in names:
        frame = frame.withMetadata(name, {MARK: True})
    return frame


def marks(frame: DataFrame) -> tuple[str, ...]:
    """The marked columns."""
    return tuple(field.name for field in frame.schema.fields if field.metadata.get(MARK))


def unmarked(frame: DataFrame) -> DataFrame:
    """The frame as a table is to have it."""
    for name in marks(frame):
        frame = frame.withMetadata(name, {})
    return frame


def written_too(frame: DataFrame, write: Upsert) -> Upsert:
    """The merge with the marked columns among those it sets, where it names them at all."""
    names = marks(frame)
    updated = {*write.update_columns, *names} if write.update_columns else ()
    inserted = {*write.insert_columns, *names} if write.insert_columns else ()
    return replace(write, update_columns=tuple(updated), insert_columns=tuple(inserted))
