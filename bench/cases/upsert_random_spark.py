"""100,000 orders merged by Spark into 5,000,000: keys all over it, deletion vectors allowed."""

from __future__ import annotations

from typing import Any, ClassVar

from bench.orders import random_ids
from bench.upserts import BATCH, ROWS, UpsertCase


class UpsertRandomSpark(UpsertCase):
    """Every file is touched; changed rows are marked instead of writing it anew."""

    name = "upsert_random_spark"
    bar = "plain / ours >= 1.6"
    most_ratio = 1 / 1.6
    options: ClassVar[dict[str, Any]] = {"properties": {"delta.enableDeletionVectors": "true"}}

    def ids(self) -> Any:
        return random_ids(ROWS, BATCH)
