"""1,000,000 orders of CSV, typed, into a partitioned Delta table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.case import Case, scaled
from bench.order_lines import as_csv, order_line
from bench.orders import fingerprint, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

ROWS = scaled(1_000_000)
SCHEMA = (
    "order_id bigint, customer_id bigint, country string, amount double, "
    "status string, updated_at timestamp, note string"
)


class CsvBulk(Case):
    """Bulk load by append: no extra pass over the rows may be paid for the bookkeeping."""

    name = "csv_bulk"
    bar = "ours / plain <= 1.10"
    most_ratio = 1.10

    def prepare(self, folder: Path) -> None:
        lines = (order_line(i, day=i % 28 + 1) for i in range(ROWS))
        (folder / "orders.csv").write_text(as_csv(lines), encoding="utf-8")

    def ours(self, project: Project, folder: Path, round_: int) -> None:
        from deltaworks.pipeline.spec import Pipeline
        from deltaworks.sinks.delta import DeltaSink
        from deltaworks.sources.csv import CsvSource

        pipeline = Pipeline.build(
            f"orders_{round_}",
            extract=CsvSource(path=str(folder / "orders.csv"), schema_=SCHEMA),
            load=DeltaSink(path=str(folder / f"ours_{round_}"), partition_by=("country",)),
        )
        run(project, pipeline)

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> None:
        orders = spark.read.csv(
            str(folder / "orders.csv"), schema=SCHEMA, header=True, mode="FAILFAST"
        )
        target = str(folder / f"plain_{round_}")
        orders.write.format("delta").mode("append").partitionBy("country").save(target)

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        return fingerprint(spark.read.format("delta").load(str(folder / f"{side}_{round_}")))
