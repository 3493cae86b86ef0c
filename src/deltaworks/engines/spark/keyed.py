"""A batch as it is merged by key: one row per key, or one per version of a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from deltaworks.engines.spark import keys
from deltaworks.engines.spark.columns import require_columns
from deltaworks.engines.spark.history import versions
from deltaworks.model.table_info import TableInfo
from deltaworks.model.write import Scd2, Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Keyed:
    """A batch with one row per key, and the merge that takes it."""

    frame: DataFrame
    rows: int
    write: Upsert
    dropped: int = 0
    rows_new: int | None = None
    """Rows of the batch that become versions, where the table keeps them all."""

    def rows_unchanged(self, batch: DataFrame, counted: int | None) -> int | None:
        """Rows of the batch that the table has already, when a merge counted so many."""
        return counted if self.rows_new is None else batch.count() - self.rows_new


@contextmanager
def keyed(
    spark: SparkSession,
    frame: DataFrame,
    table: TableInfo | None,
    write: Upsert | Scd2,
    now: datetime,
) -> Iterator[Keyed]:
    """The batch as it is merged into the table, kept while it is used."""
    if isinstance(write, Upsert):
        with _one_row_per_key(frame, write) as found:
            yield found
        return
    with versions(spark, frame, table, write, now) as history:
        yield Keyed(history.frame, history.rows, history.merge, rows_new=history.rows_new)


@contextmanager
def _one_row_per_key(frame: DataFrame, write: Upsert) -> Iterator[Keyed]:
    """The batch with one row per key, or the error that says which keys are wrong."""
    named = {
        "merge_keys": write.keys,
        "update_columns": write.update_columns,
        "insert_columns": write.insert_columns,
    }
    for option, columns in named.items():
        require_columns(frame, columns, where=option, nested=False)
    keys.refuse_null_keys(frame, write.keys)
    if write.duplicates is None:
        yield Keyed(frame, keys.refuse_duplicate_keys(frame, write.keys), write)
        return
    keep, by = write.duplicates.keep, write.duplicates.by
    require_columns(frame, [by], where="duplicates.by")
    ranked = keys.keep_one(frame, write.keys, keep=keep, by=by).persist()
    try:
        kept, rows = keys.refuse_ties(ranked, write.keys, by)
        yield Keyed(kept, rows, write, dropped=frame.count() - rows)
    finally:
        ranked.unpersist()
