"""A batch that is merged once more and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.case import Parts
from bench.orders import plain_merge, random_ids, timed, upsert
from bench.upserts import BATCH, ROWS, UpsertCase

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project


class Rerun(UpsertCase):
    """The second time costs a look at the table, and makes no commit."""

    name = "rerun"
    bar = "ours: again / first <= 0.3, without a commit"
    most_ratio = 0.3
    warm_up = 3

    def ids(self) -> Any:
        return random_ids(ROWS, BATCH)

    def ours(self, project: Project, folder: Path, round_: int) -> Parts:
        batch, table = folder / "batch.parquet", folder / f"ours_{round_}"

        def merge() -> None:
            upsert(project, batch, table, name=f"up_{round_}")

        first, before = timed(merge), _versions(table)
        again = timed(merge)
        if _versions(table) != before:
            raise SystemExit("bench: a batch that changes nothing made a commit")
        return {"first": first, "again": again}

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> Parts:
        batch, table = folder / "batch.parquet", folder / f"plain_{round_}"
        first, again = (timed(lambda: plain_merge(spark, batch, table)) for _ in range(2))
        return {"first": first, "again": again}

    def ratio(self, medians: Mapping[str, Parts]) -> float:
        return medians["ours"]["again"] / medians["ours"]["first"]


def _versions(table: Path) -> int:
    return len(list((table / "_delta_log").glob("*.json")))
