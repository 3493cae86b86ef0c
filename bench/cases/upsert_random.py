"""100,000 orders into 5,000,000, keys all over it: the writer is chosen by us."""

from __future__ import annotations

from typing import Any, ClassVar

from bench.orders import random_ids
from bench.upserts import BATCH, ROWS, UpsertCase


class UpsertRandom(UpsertCase):
    """Every file is touched, and delta-rs writes them."""

    name = "upsert_random"
    bar = "plain / ours >= 3"
    most_ratio = 1 / 3
    options: ClassVar[dict[str, Any]] = {"writer": "auto"}

    def ids(self) -> Any:
        return random_ids(ROWS, BATCH)
