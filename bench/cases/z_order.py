"""A filter on a column that a table is z-ordered by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.case import Case, Parts, scaled
from bench.orders import copy_table, make_table, table_fingerprint, timed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

ROWS = scaled(5_000_000)
_FILE_BYTES = 8 << 20


class ZOrder(Case):
    """Rows of one customer lie together afterwards, and most files are skipped."""

    name = "z_order"
    bar = "ours: filtered read after / before <= 1/3"
    most_ratio = 1 / 3
    warm_up = 3

    def prepare(self, folder: Path) -> None:
        make_table(folder / "base", ROWS)

    def stage(self, folder: Path, round_: int, side: str) -> None:
        copy_table(folder / "base", folder / f"{side}_{round_}")

    def ours(self, project: Project, folder: Path, round_: int) -> Parts:
        from deltaworks.engines.spark.delta.maintenance import optimize

        spark, place = project.spark, folder / f"ours_{round_}"
        before = _look(spark, place)
        spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(_FILE_BYTES))
        optimize(spark, str(place), z_order=("customer_id",), user_metadata="{}")
        return {"before": before, "after": _look(spark, place)}

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> Parts:
        place = folder / f"plain_{round_}"
        before = _look(spark, place)
        spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(_FILE_BYTES))
        spark.sql(f"OPTIMIZE delta.`{place}` ZORDER BY (customer_id)")
        return {"before": before, "after": _look(spark, place)}

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        return table_fingerprint(spark, folder / f"{side}_{round_}")

    def ratio(self, medians: Mapping[str, Parts]) -> float:
        return medians["ours"]["after"] / medians["ours"]["before"]


def _look(spark: SparkSession, place: Path) -> float:
    """The second look of two, so that neither pays for reading the log."""

    def look() -> None:
        spark.read.format("delta").load(str(place)).filter("customer_id = 4711").collect()

    return [timed(look) for _ in range(2)][1]
