"""400,000 messages of JSON, typed, from Kafka into a Delta table, in two micro-batches."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from bench.case import Case
from bench.orders import fingerprint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

ROWS = 400_000
AT_ONCE = 200_000
TOPIC = "orders"
SCHEMA = "order_id bigint, country string, amount double, updated_at timestamp, note string"
COUNTRIES = ("NL", "DE", "FR", "BE", "ES", "IT", "PL", "SE")


class KafkaBulk(Case):
    """Catching up with a topic: the ledger may cost no more than a checkpoint does."""

    name = "kafka_bulk"
    bar = "ours / plain <= 1.05"
    most_ratio = 1.05
    connectors = ("kafka",)

    def __init__(self) -> None:
        self._running = ExitStack()

    def prepare(self, folder: Path) -> None:
        from tests.services.kafka_broker import kafka_broker

        (folder / "kafka").mkdir()
        broker = self._running.enter_context(kafka_broker(folder / "kafka"))
        broker.topic(name=TOPIC, partitions=2)
        broker.send(TOPIC, [self._order(i) for i in range(ROWS)])
        (folder / "servers").write_text(broker.servers)

    def finish(self) -> None:
        self._running.close()

    def _order(self, i: int) -> bytes:
        order = {
            "order_id": i,
            "country": COUNTRIES[i * 7 % len(COUNTRIES)],
            "amount": i % 9973 / 100,
            "updated_at": f"2026-01-{i % 28 + 1:02d}T{i % 24:02d}:{i % 60:02d}:00Z",
            "note": f"order number {i}",
        }
        return json.dumps(order).encode()

    def ours(self, project: Project, folder: Path, round_: int) -> None:
        from deltaworks.pipeline.spec import Pipeline
        from deltaworks.sinks.delta import DeltaSink
        from deltaworks.sources.kafka import KafkaSource

        pipeline = Pipeline.build(
            f"orders_{round_}",
            extract=KafkaSource(
                topic=TOPIC,
                servers=(folder / "servers").read_text(),
                schema_=SCHEMA,
                incremental=True,
                max_offsets_per_batch=AT_ONCE,
            ),
            load=DeltaSink(path=str(folder / f"ours_{round_}")),
        )
        result = project.run(pipeline)
        if result.error is not None:
            raise result.error

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> None:
        from pyspark.sql import functions as F

        messages = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", (folder / "servers").read_text())
            .option("subscribe", TOPIC)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", str(AT_ONCE))
            .load()
        )
        text = F.col("value").cast("string")
        orders = messages.select(F.from_json(text, SCHEMA, {"mode": "FAILFAST"}).alias("o"))
        query = (
            orders.select("o.*")
            .writeStream.format("delta")
            .option("checkpointLocation", str(folder / f"plain_{round_}" / "_checkpoint"))
            .trigger(availableNow=True)
            .start(str(folder / f"plain_{round_}"))
        )
        query.awaitTermination()

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        return fingerprint(spark.read.format("delta").load(str(folder / f"{side}_{round_}")))
