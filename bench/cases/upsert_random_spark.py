"""100,000 orders merged by Spark into 5,000,000: keys all over it, deletion vectors allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from bench.orders import random_ids
from bench.upserts import BATCH, ROWS, UpsertCase

_ALLOWED = {"delta.enableDeletionVectors": "true"}


class UpsertRandomSpark(UpsertCase):
    """Every file is touched; changed rows are marked instead of writing it anew.

    Our table had the property before, as a table has that allows it; the other keeps defaults.
    """

    name = "upsert_random_spark"
    bar = "plain / ours >= 1.6"
    most_ratio = 1 / 1.6
    options: ClassVar[dict[str, Any]] = {"writer": "spark", "properties": _ALLOWED}

    def stage(self, folder: Path, round_: int, side: str) -> None:
        from deltalake import DeltaTable

        super().stage(folder, round_, side)
        if side == "ours":
            table = DeltaTable(str(folder / f"ours_{round_}"))
            table.alter.set_table_properties(_ALLOWED)

    def ids(self) -> Any:
        return random_ids(ROWS, BATCH)
