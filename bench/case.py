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

    def prepare(self, folder: Path) -> None:
        """Put the input on disk; not timed."""

    def ours(self, project: Project, folder: Path, round_: int) -> None:
        """Our way."""

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> None:
        """The hand-written way, with Spark's defaults."""

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        """A fingerprint of the result; both sides must give the same. Not timed."""
