"""5,000,000 orders of Parquet in place of those that a Delta table has."""

from __future__ import annotations

from pathlib import Path

from bench.cases.bulk_append import ROWS, BulkAppend
from bench.orders import copy_table, make_table


class Overwrite(BulkAppend):
    """A table loaded anew, as a whole."""

    name = "overwrite"
    mode = "overwrite"

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        make_table(folder / "base", ROWS)

    def stage(self, folder: Path, round_: int, side: str) -> None:
        copy_table(folder / "base", folder / f"{side}_{round_}")
