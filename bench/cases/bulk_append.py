"""5,000,000 orders of Parquet into a new Delta table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.case import Case, Parts, scaled
from bench.orders import make_batch, run, table_fingerprint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

ROWS = scaled(5_000_000)


class BulkAppend(Case):
    """Bulk load: the ledger, the counts and the record may cost next to nothing."""

    name = "bulk_append"
    bar = "ours / plain <= 1.05"
    most_ratio = 1.05
    rows = ROWS
    mode: Literal["append", "overwrite"] = "append"

    def prepare(self, folder: Path) -> None:
        import numpy as np

        parts = np.array_split(np.arange(self.rows), 8)
        for number, ids in enumerate(parts):
            make_batch(folder / "in" / f"{number}.parquet", ids, status="open")

    def ours(self, project: Project, folder: Path, round_: int) -> Parts | None:
        from deltaworks.pipeline.spec import Pipeline
        from deltaworks.sinks.delta import DeltaSink
        from deltaworks.sources.parquet import ParquetSource

        pipeline = Pipeline.build(
            f"bulk_{round_}",
            extract=ParquetSource(path=str(folder / "in")),
            load=DeltaSink(path=str(folder / f"ours_{round_}"), mode=self.mode),
        )
        run(project, pipeline)
        return None

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> Parts | None:
        rows = spark.read.parquet(str(folder / "in"))
        rows.write.format("delta").mode(self.mode).save(str(folder / f"plain_{round_}"))
        return None

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        return table_fingerprint(spark, folder / f"{side}_{round_}")
