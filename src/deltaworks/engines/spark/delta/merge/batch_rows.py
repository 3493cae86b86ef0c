"""A batch as it is merged by key: one row per key, or one per version of a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from deltaworks.engines.spark.delta.merge import keys
from deltaworks.engines.spark.delta.merge.scd2 import versions
from deltaworks.engines.spark.delta.merge.winners import winners
from deltaworks.model.merge_facts import DUPLICATES, BatchFacts
from deltaworks.model.table_info import TableInfo
from deltaworks.model.write import Scd2, Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Keyed:
    """A batch with one row per key, what is known of it, and the merge that takes it."""

    frame: DataFrame
    facts: BatchFacts
    write: Upsert
    rows_kept: int | None = None
    """Rows of the batch that do not become versions, where the table keeps them all."""

    @property
    def dropped(self) -> int:
        """Rows of the batch that gave way to others."""
        return self.facts.rows_dropped if self.rows_kept is None else 0

    def named_dropped(self) -> dict[str, int]:
        """The same by its name, if there are any."""
        return {DUPLICATES: self.dropped} if self.dropped else {}

    def rows_unchanged(self, counted: int | None) -> int | None:
        """Rows of the batch that the table has already, when a merge counted so many."""
        return counted if self.rows_kept is None else self.rows_kept


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
        with _one_row_per_key(frame, table, write) as found:
            yield found
        return
    with versions(spark, frame, table, write, now) as history:
        yield Keyed(
            history.frame, history.facts, history.merge, rows_kept=history.rows - history.rows_new
        )


@contextmanager
def _one_row_per_key(frame: DataFrame, table: TableInfo | None, write: Upsert) -> Iterator[Keyed]:
    """The batch with one row per key, or the error that says which keys are wrong."""
    keys.require_named(frame, write)
    folders = () if table is None else [name.lower() for name in table.partition_columns]
    if write.duplicates is None:
        yield Keyed(frame, keys.measured_keys(frame, write.keys, folders=folders), write)
        return
    with winners(frame, write.keys, write.duplicates, folders=folders) as (rows, facts):
        yield Keyed(rows, facts, write)
