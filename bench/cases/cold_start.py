"""One command from nothing to its first commit: 1,000 orders of CSV into a new table."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.order_lines import as_csv, order_line

ROWS = 1000
PIPELINE = """\
pipeline: orders
extract:
  type: csv
  path: ../orders.csv
  schema: >-
    order_id bigint, customer_id bigint, country string, amount double,
    status string, updated_at timestamp, note string
load: {type: delta, table: orders}
"""


class ColdStart:
    """Start-up: Python, Java, the first job and the bookkeeping."""

    name = "cold_start"
    bar = "plain / ours >= 2.2"
    most_ratio = 1 / 2.2

    def prepare(self, folder: Path) -> None:
        (folder / "orders.csv").write_text(as_csv(order_line(i) for i in range(ROWS)))
        (folder / "project" / "pipelines").mkdir(parents=True)
        (folder / "project" / "deltaworks.yaml").write_text("project: bench\nwarehouse: ./w\n")
        (folder / "project" / "pipelines" / "orders.yaml").write_text(PIPELINE)

    def commands(self, side: str, folder: Path) -> Sequence[Sequence[str]]:
        for place in (folder / "project" / "w", folder / "plain"):
            shutil.rmtree(place, ignore_errors=True)
        if side == "ours":
            command = ["-m", "deltaworks", "run", "orders", "--project", str(folder / "project")]
        else:
            script = Path(__file__).parents[1] / "scripts" / "cold_start.py"
            command = [str(script), str(folder / "orders.csv"), str(folder / "plain")]
        return [[sys.executable, *command]]

    def check(self, side: str, folder: Path) -> str:
        from deltalake import DeltaTable

        place = folder / "project" / "w" / "orders" if side == "ours" else folder / "plain"
        return f"{DeltaTable(str(place)).count()} rows"
