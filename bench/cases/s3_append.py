"""5,000,000 orders of Parquet into a new Delta table on an S3 server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.case import Parts, scaled
from bench.lakes import LakeCase, reach
from bench.orders import make_batch, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

ROWS = scaled(5_000_000)


class S3Append(LakeCase):
    """Books on the same store may cost next to nothing."""

    name = "s3_append"
    bar = "ours / plain <= 1.05"
    most_ratio = 1.05

    def prepare(self, folder: Path) -> None:
        import numpy as np

        super().prepare(folder)
        for number, ids in enumerate(np.array_split(np.arange(ROWS), 8)):
            make_batch(folder / "in" / f"{number}.parquet", ids, status="open")

    def ours(self, project: Project, folder: Path, round_: int) -> Parts | None:
        from deltaworks.pipeline.spec import Pipeline
        from deltaworks.sinks.delta import DeltaSink
        from deltaworks.sources.parquet import ParquetSource

        pipeline = Pipeline.build(
            f"bulk_{round_}",
            extract=ParquetSource(path=str(folder / "in")),
            load=DeltaSink(path=f"s3://lake/ours_{round_}"),
        )
        run(project, pipeline)
        return None

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> Parts | None:
        reach(spark)
        rows = spark.read.parquet(str(folder / "in"))
        rows.write.format("delta").mode("append").save(f"s3a://lake/plain_{round_}")
        return None
