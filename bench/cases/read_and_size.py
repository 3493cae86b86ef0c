"""A freshly loaded table read as a whole, beside the same rows as plain Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.case import Parts
from bench.cases.bulk_append import ROWS, BulkAppend
from bench.orders import fingerprint, timed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.api import Project

_READ, _BYTES = "read", "bytes"


class ReadAndSize(BulkAppend):
    """What a table costs its readers; plain writes and reads Parquet by Spark.

    Of two looks the second counts. Delta in Spark takes half a second for the first query of any
    table and a tenth for every other, whoever wrote it and however large it is; so that this does
    not hide what the files are like, there are more of them than in other cases.
    """

    name = "read_and_size"
    bar = "ours / Parquet: read <= 1.1, size <= 1.10"
    most_ratio = 1.1
    warm_up = 3
    rows = 4 * ROWS

    def ours(self, project: Project, folder: Path, round_: int) -> Parts:
        super().ours(project, folder, round_)
        place = folder / f"ours_{round_}"
        return {_READ: _second_look(project.spark, "delta", place), _BYTES: _size(place)}

    def plain(self, spark: SparkSession, folder: Path, round_: int) -> Parts:
        place = folder / f"plain_{round_}"
        spark.read.parquet(str(folder / "in")).write.parquet(str(place))
        return {_READ: _second_look(spark, "parquet", place), _BYTES: _size(place)}

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        form = "delta" if side == "ours" else "parquet"
        return fingerprint(spark.read.format(form).load(str(folder / f"{side}_{round_}")))

    def ratio(self, medians: Mapping[str, Parts]) -> float:
        ours, plain = medians["ours"], medians["plain"]
        return max(ours[_READ] / plain[_READ], ours[_BYTES] / plain[_BYTES])


def _second_look(spark: SparkSession, form: str, place: Path) -> float:
    def look() -> str:
        return fingerprint(spark.read.format(form).load(str(place)))

    return [timed(look) for _ in range(2)][1]


def _size(place: Path) -> int:
    """Bytes of the data files and of the log."""
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
