"""What a benchmark case is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project


class Case(Protocol):
    """The same work twice, and how to tell that it was the same."""

    name: str
    bar: str
    """What the figures must show, in words."""
    most_ratio: float
    """The highest allowed ours / plain."""
    connectors: tuple[str, ...]
    """Whose jars the plain side needs as well."""

    def prepare(self, folder: Path) -> None:
        """Put the input on disk; not timed."""

    def finish(self) -> None:
        """End what `prepare` has started."""

    def ours(self, project: Project, folder: Path, round_: int) -> None:
        """Our way."""

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> None:
        """The hand-written way, with Spark's defaults."""

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        """A fingerprint of the result; both sides must give the same. Not timed."""


def fingerprint(spark: SparkSession, table: Path) -> str:
    """How many rows a table has, and a hash of all of them."""
    from pyspark.sql import functions as F

    frame = spark.read.format("delta").load(str(table))
    row = frame.agg(F.count(F.lit(1)), F.sum(F.hash(*frame.columns).cast("long"))).collect()[0]
    return f"{row[0]} rows, hash {row[1]}"
