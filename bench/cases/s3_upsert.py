"""100,000 orders merged into 1,000,000 on an S3 server: keys that lie together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.case import Parts, scaled
from bench.lakes import LakeCase, delta_options, files, reach
from bench.orders import clustered_ids, make_batch, make_table, plain_merge, upsert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

ROWS = scaled(1_000_000)
BATCH = scaled(100_000)


class S3Upsert(LakeCase):
    """Files that are left alone are not fetched."""

    name = "s3_upsert"
    bar = "ours / plain <= 1.05"
    most_ratio = 1.05

    def prepare(self, folder: Path) -> None:
        from deltalake import DeltaTable

        super().prepare(folder)
        place, options = "s3://lake/base", delta_options()
        make_table(place, ROWS, storage_options=options)
        table = DeltaTable(place, storage_options=options)  # Spark may go on where delta-rs began
        table.alter.set_table_properties({"deltaworks.commits": "spark"}, raise_if_not_exists=False)
        make_batch(folder / "batch.parquet", clustered_ids(ROWS, BATCH))

    def stage(self, folder: Path, round_: int, side: str) -> None:
        from pyarrow.fs import FileSelector, FileType

        bucket = files()
        for found in bucket.get_file_info(FileSelector("lake/base", recursive=True)):
            if found.type == FileType.File:
                place = found.path.replace("lake/base", f"lake/{side}_{round_}", 1)
                bucket.copy_file(found.path, place)

    def ours(self, project: Project, folder: Path, round_: int) -> Parts | None:
        table = f"s3://lake/ours_{round_}"
        upsert(project, folder / "batch.parquet", table, name=f"up_{round_}")
        return None

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> Parts | None:
        reach(spark)
        plain_merge(spark, folder / "batch.parquet", f"s3a://lake/plain_{round_}")
        return None
