"""100,000 orders merged by Spark into 5,000,000: keys that lie together."""

from __future__ import annotations

from typing import Any, ClassVar

from bench.orders import clustered_ids
from bench.upserts import BATCH, ROWS, UpsertCase


class UpsertClusteredSpark(UpsertCase):
    """Most files are left alone."""

    name = "upsert_clustered_spark"
    bar = "plain / ours >= 1.15"
    most_ratio = 1 / 1.15
    options: ClassVar[dict[str, Any]] = {"writer": "spark"}

    def ids(self) -> Any:
        return clustered_ids(ROWS, BATCH)
