"""What a benchmark case is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

SCALE = "DELTAWORKS_BENCH_SCALE"
TOTAL = "total"
Parts = Mapping[str, float]
"""Seconds by part of the work, where a case times parts of it."""


def scaled(rows: int) -> int:
    """A number of rows, or a share of it when the harness is only tried out."""
    return max(100, int(rows * float(os.environ.get(SCALE, "1"))))


class Case(Protocol):
    """The same work twice, and how to tell that it was the same."""

    name: str
    bar: str
    """What the figures must show, in words."""
    most_ratio: float
    """The highest allowed ratio, ours / plain unless the case compares something else."""
    warm_up: int = 6
    """Rounds before those that count: the JVM still compiles hot code in the first ones."""
    connectors: Sequence[str] = ()
    """Whose jars the plain side needs as well."""

    def prepare(self, folder: Path) -> None:
        """Put the input on disk; not timed."""

    def finish(self) -> None:
        """End what `prepare` has started."""

    def stage(self, folder: Path, round_: int, side: str) -> None:
        """Put what a round starts from on disk; not timed."""

    def ours(self, project: Project, folder: Path, round_: int) -> Parts | None:
        """Our way."""

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> Parts | None:
        """The hand-written way, with Spark's defaults."""

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        """A fingerprint of the result; both sides must give the same. Not timed."""
        ...

    def ratio(self, medians: Mapping[str, Parts]) -> float:
        """The figure that the bar is about, from the median seconds of each side's parts."""
        return medians["ours"][TOTAL] / medians["plain"][TOTAL]
