"""200 small batches, one after the other, into one table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.case import Case, Parts
from bench.orders import make_batch, plain_merge, table_fingerprint, timed, upsert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

BATCHES, ROWS, COMPARED = 200, 1_000, 20


class SmallBatches(Case):
    """The last batches cost what the first did: logs and small files do not pile up."""

    name = "small_batches"
    bar = "ours: last 20 / first 20 <= 1.5"
    most_ratio = 1.5
    warm_up = 1  # with 200 batches in it

    def prepare(self, folder: Path) -> None:
        import numpy as np

        for number in range(BATCHES):
            first = number * ROWS // 2  # half of each batch was in the one before
            make_batch(folder / f"batch_{number}.parquet", np.arange(first, first + ROWS))

    def stage(self, folder: Path, round_: int, side: str) -> None:
        import numpy as np
        from deltalake import write_deltalake

        from bench.orders import orders

        start = orders(np.arange(10), status="open")
        write_deltalake(str(folder / f"{side}_{round_}"), start)

    def ours(self, project: Project, folder: Path, round_: int) -> Parts:
        table = folder / f"ours_{round_}"
        return _all(folder, lambda batch: upsert(project, batch, table, name=f"up_{round_}"))

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> Parts:
        return _all(folder, lambda batch: plain_merge(spark, batch, folder / f"plain_{round_}"))

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        return table_fingerprint(spark, folder / f"{side}_{round_}")

    def ratio(self, medians: Mapping[str, Parts]) -> float:
        return medians["ours"]["last"] / medians["ours"]["first"]


def _all(folder: Path, merge: Callable[[Path], None]) -> Parts:
    batches = (folder / f"batch_{number}.parquet" for number in range(BATCHES))
    times = [timed(lambda batch=batch: merge(batch)) for batch in batches]  # type: ignore[misc]
    return {
        "first": statistics.fmean(times[:COMPARED]),
        "last": statistics.fmean(times[-COMPARED:]),
    }
