"""What a batch would do to a table, row by row: the one computation of `plan` and `run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaworks.engines.spark.columns import quoted
from deltaworks.engines.spark.merge import key_match, update_when, updated_columns
from deltaworks.model.write import Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ACTION = "__deltaworks_action"
INSERT, UPDATE, DELETE, UNCHANGED, IGNORED = "insert", "update", "delete", "unchanged", "ignored"


@dataclass(frozen=True, kw_only=True)
class DiffCounts:
    """How many rows of the batch do what; `missing` rows of the table are not in the batch."""

    insert: int = 0
    update: int = 0
    delete: int = 0
    unchanged: int = 0
    ignored: int = 0
    missing: int = 0

    @property
    def changes(self) -> int:
        """Rows of the table that would be different afterwards."""
        return self.insert + self.update + self.delete + self.missing

    @property
    def rows(self) -> int:
        """Rows of the batch."""
        return self.insert + self.update + self.delete + self.unchanged + self.ignored


def classify(
    frame: DataFrame, target: DataFrame, upsert: Upsert, ways: Mapping[str, str]
) -> DataFrame:
    """The batch with what each of its rows would do."""
    from pyspark.sql import functions as F

    source, stands = frame.alias("source"), target.alias("target")
    matched = f"target.{quoted(upsert.keys[0])} IS NOT NULL"
    branches = []
    if upsert.delete_condition:
        condition = f"({upsert.delete_condition}\n)"
        branches.append(f"WHEN {matched} AND {condition} THEN '{DELETE}'")
        branches.append(f"WHEN NOT ({matched}) AND {condition} THEN '{IGNORED}'")
    branches.append(f"WHEN NOT ({matched}) THEN '{INSERT}'")
    if updated_columns(upsert, frame.columns):
        condition = update_when(upsert, frame.columns, ways)
        branches.append(f"WHEN {condition} THEN '{UPDATE}'")
    action = F.expr(f"CASE {' '.join(branches)} ELSE '{UNCHANGED}' END").alias(ACTION)
    joined = source.join(stands, F.expr(key_match(upsert.keys)), "left")
    return joined.select("source.*", action)


def count_actions(
    classified: DataFrame, frame: DataFrame, target: DataFrame, upsert: Upsert
) -> DiffCounts:
    """The figures of a classified batch."""
    from pyspark.sql import functions as F

    counts = {row[0]: int(row[1]) for row in classified.groupBy(ACTION).count().collect()}
    missing = 0
    if upsert.delete_missing:
        anti = target.alias("target").join(
            frame.alias("source"), F.expr(key_match(upsert.keys)), "left_anti"
        )
        missing = anti.count()
    return DiffCounts(**counts, missing=missing)


def changed_rows(classified: DataFrame) -> DataFrame:
    """Only the rows a MERGE has work for."""
    from pyspark.sql import functions as F

    return classified.filter(F.col(ACTION).isin(INSERT, UPDATE, DELETE)).drop(ACTION)
