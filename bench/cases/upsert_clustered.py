"""100,000 orders into 5,000,000, keys that lie together: the writer is chosen by us."""

from __future__ import annotations

from typing import Any, ClassVar

from bench.orders import clustered_ids
from bench.upserts import BATCH, ROWS, UpsertCase


class UpsertClustered(UpsertCase):
    """Few files are touched, and delta-rs writes them."""

    name = "upsert_clustered"
    bar = "plain / ours >= 5"
    most_ratio = 1 / 5
    options: ClassVar[dict[str, Any]] = {"writer": "auto"}

    def ids(self) -> Any:
        return clustered_ids(ROWS, BATCH)
