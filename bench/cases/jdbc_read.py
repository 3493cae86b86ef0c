"""1,000,000 rows of PostgreSQL into a Delta table: in parts we find, or by plain `read.jdbc`."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from bench.case import Case
from bench.orders import fingerprint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

ROWS = 1_000_000
FILL = (
    "CREATE TABLE orders AS SELECT i AS order_id, i * 31 % 50000 AS customer_id, "
    "(ARRAY['NL', 'DE', 'FR', 'BE'])[i % 4 + 1] AS country, (i % 9973) / 100.0::float8 AS amount, "
    "timestamptz '2026-01-01' + i * interval '1 second' AS updated_at, "
    "'order number ' || i AS note "
    f"FROM generate_series(1, {ROWS}) i"
)


class JdbcRead(Case):
    """Reading side by side must pay on as few as two cores."""

    name = "jdbc_read"
    bar = "plain / ours >= 1.5"
    most_ratio = 1 / 1.5
    connectors = ("postgres",)

    def __init__(self) -> None:
        self._running = ExitStack()

    def prepare(self, folder: Path) -> None:
        """Start a server and fill it."""
        from tests.services.postgres_server import postgres_server

        server = self._running.enter_context(postgres_server(folder))
        server.sql(FILL, "ANALYZE orders")
        os.environ["DELTAWORKS_CREDENTIAL__SHOP"] = json.dumps(server.record())

    def finish(self) -> None:
        """Stop the server."""
        self._running.close()

    def ours(self, project: Project, folder: Path, round_: int) -> None:
        from deltaworks.pipeline.spec import Pipeline
        from deltaworks.sinks.delta import DeltaSink
        from deltaworks.sources.postgres import PostgresSource

        pipeline = Pipeline.build(
            f"orders_{round_}",
            extract=PostgresSource(credential="shop", table="orders"),
            load=DeltaSink(path=str(folder / f"ours_{round_}")),
        )
        result = project.run(pipeline)
        if result.error is not None:
            raise result.error

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> None:
        record = json.loads(os.environ["DELTAWORKS_CREDENTIAL__SHOP"])
        url = f"jdbc:postgresql://{record['host']}:{record['port']}/{record['database']}"
        orders = spark.read.jdbc(
            url,
            "orders",
            properties={
                "user": record["user"],
                "password": record["password"],
                "driver": "org.postgresql.Driver",
            },
        )
        orders.write.format("delta").mode("append").save(str(folder / f"plain_{round_}"))

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        return fingerprint(spark.read.format("delta").load(str(folder / f"{side}_{round_}")))
