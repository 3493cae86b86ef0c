"""A batch on its way into a table by its keys: in memory where it is small, by Spark otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from deltaworks.engines.spark.delta.merge.batch_rows import keyed
from deltaworks.engines.spark.delta.merge.keys import require_named
from deltaworks.engines.spark.delta.stored_values import as_stored, refuse_padded_keys, unpadded
from deltaworks.engines.spark.delta.writer import TableWriter
from deltaworks.model.commit import CommitInfo
from deltaworks.model.table_info import TableInfo
from deltaworks.model.write import Scd2, Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Keep = Callable[[DataFrame], DataFrame]
    """Has rows evaluated once, for whoever reads them more than once."""


def land_by_key(
    writer: TableWriter, frame: DataFrame, asked: Upsert | Scd2, *, now: datetime, keep: Keep
) -> CommitInfo:
    """Merge a batch into the table as it stands, or make it."""
    table = writer.log.info(writer.location)
    frame = as_stored(frame, writer.folders(table))
    if table is not None:
        refuse_padded_keys(table, asked.keys)
    if table is not None and isinstance(asked, Upsert):
        require_named(frame, asked)
        small = writer.upsert_small(frame, asked, table)
        if small is not None:
            return small
    with unpadded(writer.spark, table):
        return _land(writer, keep(frame), asked, table, now=now)


def replace_by_key(
    writer: TableWriter, frame: DataFrame, asked: Upsert | Scd2, *, now: datetime, keep: Keep
) -> CommitInfo:
    """Put a batch in the place of all that the table holds."""
    frame = as_stored(frame, writer.folders(writer.log.info(writer.location)))
    return _land(writer, keep(frame), asked, None, now=now, replacing=True)


def _land(
    writer: TableWriter,
    frame: DataFrame,
    asked: Upsert | Scd2,
    table: TableInfo | None,
    *,
    now: datetime,
    replacing: bool = False,
) -> CommitInfo:
    with keyed(writer.spark, frame, table, asked, now) as batch:
        if replacing:
            info = writer.replace_all(batch.frame, batch.write, rows=batch.facts.rows)
        else:
            info = writer.upsert(batch.frame, batch.write, facts=batch.facts, table=table)
        return replace(
            info,
            rows_dropped={**info.rows_dropped, **batch.named_dropped()},
            rows_unchanged=batch.rows_unchanged(info.rows_unchanged),
        )
