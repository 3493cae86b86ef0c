"""A few rows as JSON, for messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.engines.spark.rejects import row_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_SAMPLES = 3


def sample_rows(frame: DataFrame, *, most: int = MOST_SAMPLES) -> tuple[str, ...]:
    """The first rows of a frame, each as JSON."""
    return tuple(str(row[0]) for row in frame.limit(most).select(row_json(frame)).collect())
