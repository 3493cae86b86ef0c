"""How a batch goes into a table: chosen from what was measured, shown by `plan`, and forceable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from deltaworks.engines.spark.frames.sizing import (
    BROADCAST,
    FEW_BYTES,
    MEBIBYTE,
    SMALL_BYTES,
    shuffle_settings,
)
from deltaworks.model.merge_facts import BatchFacts, DiffFacts
from deltaworks.model.table_info import TableInfo
from deltaworks.model.table_properties import VECTORS, is_on
from deltaworks.model.write import MergeStrategy, Upsert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Write = Literal["nothing", "append", "merge"]
_MAX_BROADCAST_BYTES = 128 * MEBIBYTE
_VECTORS = "spark.databricks.delta.merge.deletionVectors.persistent"
_REWRITE_FROM_SHARE = 0.1
"""From so many changed rows in a file on it is cheaper to write it anew than to mark them."""
_SWITCH_ON = '`properties: {delta.enableDeletionVectors: "true"}`'
_ADVISE_FROM_BYTES = 64 * MEBIBYTE


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """What is written, how the batch meets the table, and how changed rows are replaced."""

    write: Write
    broadcast: bool = False
    vectors: bool = False
    """Whether changed rows are marked in deletion vectors instead of writing their files anew."""
    whole: bool = False
    """Whether the whole batch goes into the MERGE, and not only the rows with work to do."""
    plain: bool = False
    """Whether the MERGE goes without ranges of keys."""
    advice: str = ""

    def text(self) -> str:
        """In a few words."""
        if self.write == "nothing":
            return "no commit: nothing changes"
        if self.write == "append":
            return "append: all rows are new"
        rows = "of the whole batch" if self.whole else "of the changed rows"
        meets = "broadcast" if self.broadcast else "shuffle"
        replaced = "deletion vectors" if self.vectors else "copy on write"
        return f"merge {rows}, {meets}, {replaced}"


def choose(
    write: Upsert, facts: BatchFacts, diff: DiffFacts, table: TableInfo, *, grows: bool
) -> Strategy:
    """The strategy for a batch; `grows` says that the table's schema would change."""
    if not diff.changes and not grows:
        return Strategy(write="nothing")
    wish = write.strategy
    # a row that joins twice, a new column and rows to be deleted by their absence
    # each need the whole batch in the MERGE; otherwise only rows with work to do go in
    needs_all = diff.rows != facts.rows or grows or write.delete_missing
    may_append = wish == "auto" and not grows and not _fills_columns(table)
    if diff.only_inserts and may_append:
        return Strategy(write="append")
    return Strategy(
        write="merge",
        broadcast=_broadcasts(facts, diff, wish),
        vectors=_marks(diff, table, wish),
        whole=needs_all or wish == "plain",
        plain=wish == "plain",
        advice=_advice(diff, table, wish),
    )


def merge_settings(
    spark: SparkSession, strategy: Strategy, facts: BatchFacts, diff: DiffFacts
) -> dict[str, str]:
    """What Spark is told for one MERGE."""
    if strategy.plain:
        return {}
    found = shuffle_settings(spark, shuffled_bytes(strategy, facts, diff))
    found[_VECTORS] = str(strategy.vectors).lower()
    found[BROADCAST] = str(max(2 * facts.bytes, SMALL_BYTES)) if strategy.broadcast else "-1"
    return found


def shuffled_bytes(strategy: Strategy, facts: BatchFacts, diff: DiffFacts) -> int:
    """About how much a MERGE has to shuffle: the batch, and the rows of the files it rewrites."""
    unpacked = 3  # a row in memory beside one in Parquet
    rewritten = diff.bytes_matched if strategy.whole else diff.bytes_touched
    sorted_too = 0 if strategy.broadcast else diff.scope.bytes
    return facts.bytes + unpacked * max(rewritten, sorted_too)


def _broadcasts(facts: BatchFacts, diff: DiffFacts, wish: MergeStrategy) -> bool:
    if wish in ("broadcast", "shuffle"):
        return wish == "broadcast"
    return diff.scope.bytes > FEW_BYTES and facts.bytes <= _MAX_BROADCAST_BYTES


def _marks(diff: DiffFacts, table: TableInfo, wish: MergeStrategy) -> bool:
    if not has_vectors(table) or wish == "copy_on_write":
        return False
    return wish == "deletion_vectors" or _changed_share(diff) < _REWRITE_FROM_SHARE


def has_vectors(table: TableInfo) -> bool:
    """Whether the table may mark deleted rows instead of writing files anew."""
    return is_on(table.properties, VECTORS)


def _changed_share(diff: DiffFacts) -> float:
    """About which share of the rows in the touched files changes."""
    scope = diff.scope
    if not scope.rows_total or not diff.bytes_touched:
        return 0.0
    rows = scope.rows_total * diff.bytes_touched / scope.bytes_total
    return (diff.update + diff.delete) / rows


def _fills_columns(table: TableInfo) -> bool:
    """Whether Delta itself fills columns, which a MERGE and an append may do differently."""
    return bool({"allowColumnDefaults", "identityColumns"} & set(table.features))


def _advice(diff: DiffFacts, table: TableInfo, wish: MergeStrategy) -> str:
    if wish == "deletion_vectors" and not has_vectors(table):
        return f"the table has no deletion vectors; {_SWITCH_ON} gives it some"
    wasted = diff.bytes_touched >= _ADVISE_FROM_BYTES and _changed_share(diff) < _REWRITE_FROM_SHARE
    if has_vectors(table) or not wasted:
        return ""
    return (
        f"{diff.update + diff.delete:,} changed rows make {diff.files_touched:,} files "
        f"({diff.bytes_touched / MEBIBYTE:,.0f} MiB) be rewritten; "
        f"{_SWITCH_ON} spares that, but readers without "
        "deletion vectors can no longer read the table, and delta-rs reads it and writes it no more"
    )
