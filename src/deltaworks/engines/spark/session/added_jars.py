"""Jars for a Spark that already runs."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from deltaworks.engines.spark.session.connect import require_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_jars(spark: SparkSession, files: Collection[Path]) -> None:
    """Let a Spark that runs already load classes from jars, its executors included."""
    if files:
        require_jvm(
            spark,
            "a connector's jar",
            instead="start the server with the jar, or use a master that is not sc://",
        )
    for file in files:
        place = str(file).replace("\\", "\\\\").replace("'", "\\'")
        spark.sql(f"ADD JAR '{place}'")
