"""200 small batches, one after the other, into one table."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.case import Case, Parts
from bench.orders import make_batch, plain_merge, table_fingerprint, timed, upsert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

BATCHES, ROWS, COMPARED = 200, 1_000, 20
_FIRST, _LAST = range(COMPARED), range(BATCHES - COMPARED, BATCHES)


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
        between = np.arange(_FIRST.stop * ROWS // 2, (_LAST.start + 1) * ROWS // 2)
        make_batch(folder / "between.parquet", between)

    def stage(self, folder: Path, round_: int, side: str) -> None:
        import numpy as np
        from deltalake import write_deltalake

        from bench.orders import orders

        start = orders(np.arange(10), status="open")
        write_deltalake(str(folder / f"{side}_{round_}"), start)

    def ours(self, project: Project, folder: Path, round_: int) -> Parts:
        table = folder / f"ours_{round_}"

        def merge(batch: Path) -> None:
            upsert(project, batch, table, name=f"up_{round_}")

        times = [timed(partial(merge, batch)) for batch in _batches(folder, range(BATCHES))]
        first, last = times[:COMPARED], times[-COMPARED:]
        return {"first": statistics.fmean(first), "last": statistics.fmean(last)}

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> Parts:
        """What lies between the batches that are compared is one merge, to save an hour."""
        table = folder / f"plain_{round_}"

        def merge(batch: Path) -> None:
            plain_merge(spark, batch, table)

        first = [timed(partial(merge, batch)) for batch in _batches(folder, _FIRST)]
        merge(folder / "between.parquet")
        last = [timed(partial(merge, batch)) for batch in _batches(folder, _LAST)]
        return {"first": statistics.fmean(first), "last": statistics.fmean(last)}

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        return table_fingerprint(spark, folder / f"{side}_{round_}")

    def ratio(self, medians: Mapping[str, Parts]) -> float:
        return medians["ours"]["last"] / medians["ours"]["first"]


def _batches(folder: Path, numbers: range) -> list[Path]:
    return [folder / f"batch_{number}.parquet" for number in numbers]
