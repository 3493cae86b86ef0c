"""The same 100,000 orders into tables of 1, 4 and 10 million."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.case import Case, Parts, scaled
from bench.orders import (
    clustered_ids,
    copy_table,
    make_batch,
    make_table,
    plain_merge,
    table_fingerprint,
    timed,
    upsert,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

MILLIONS = (1, 4, 10)
BATCH = scaled(100_000)


class UpsertGrowing(Case):
    """The price of a batch follows the batch, not the table."""

    name = "upsert_growing"
    bar = "ours: 10 million / 1 million <= 1.5"
    most_ratio = 1.5
    warm_up = 3

    def prepare(self, folder: Path) -> None:
        for size in MILLIONS:
            rows = scaled(size * 1_000_000)
            make_table(folder / f"base_{size}", rows, files=4 * size)
            make_batch(folder / f"batch_{size}.parquet", clustered_ids(rows, BATCH))

    def stage(self, folder: Path, round_: int, side: str) -> None:
        for size in MILLIONS:
            copy_table(folder / f"base_{size}", folder / f"{side}_{round_}_{size}")

    def ours(self, project: Project, folder: Path, round_: int) -> Parts:
        def merge(batch: Path, table: Path) -> None:
            upsert(project, batch, table, name=table.name, writer="auto")

        return _each(folder, f"ours_{round_}", merge)

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> Parts:
        return _each(folder, f"plain_{round_}", lambda b, t: plain_merge(spark, b, t))

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        tables = (folder / f"{side}_{round_}_{size}" for size in MILLIONS)
        return "; ".join(table_fingerprint(spark, table) for table in tables)

    def ratio(self, medians: Mapping[str, Parts]) -> float:
        return medians["ours"]["10m"] / medians["ours"]["1m"]


def _each(folder: Path, prefix: str, merge: Callable[[Path, Path], None]) -> Parts:
    return {
        f"{size}m": timed(
            lambda size=size: merge(folder / f"batch_{size}.parquet", folder / f"{prefix}_{size}")  # type: ignore[misc]
        )
        for size in MILLIONS
    }
