"""What all cases that merge 100,000 orders into 5,000,000 have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bench.case import Case, Parts, scaled
from bench.orders import copy_table, make_batch, make_table, plain_merge, table_fingerprint, upsert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

ROWS = scaled(5_000_000)
BATCH = scaled(100_000)


class UpsertCase(Case):
    """One batch into a fresh copy of one table."""

    options: ClassVar[dict[str, Any]] = {}
    """What our sink is told besides the key."""

    def ids(self) -> Any:
        """The numbers of the batch's orders."""
        raise NotImplementedError

    def prepare(self, folder: Path) -> None:
        make_table(folder / "base", ROWS)
        make_batch(folder / "batch.parquet", self.ids())

    def stage(self, folder: Path, round_: int, side: str) -> None:
        copy_table(folder / "base", folder / f"{side}_{round_}")

    def ours(self, project: Project, folder: Path, round_: int) -> Parts | None:
        table = folder / f"ours_{round_}"
        upsert(project, folder / "batch.parquet", table, name=f"up_{round_}", **self.options)
        return None

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> Parts | None:
        plain_merge(spark, folder / "batch.parquet", folder / f"plain_{round_}")
        return None

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        return table_fingerprint(spark, folder / f"{side}_{round_}")
