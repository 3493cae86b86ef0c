"""A million orders, then 100,000 changes, then the same file again: three commands."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.order_lines import as_csv, order_line

ROWS = 1_000_000
CHANGES = 100_000
STALE = 100
TWICE = 10
PIPELINE = """\
pipeline: orders
extract: {type: csv, path: "../orders_${var:day}.csv"}
transform:
  - name: typed
    type: cast
    columns: {order_id: bigint, customer_id: bigint, amount: double, updated_at: timestamp}
    on_error: quarantine
checks:
  - {type: expression, rule: "amount >= 0", on_fail: quarantine}
load:
  type: delta
  table: orders
  mode: upsert
  merge_keys: [order_id]
  update_condition: source.updated_at > target.updated_at
  duplicates: {keep: newest, by: updated_at}
  partition_by: [country]
"""


def changes() -> Iterator[str]:
    """Half updates and half new, some of them stale, wrong or twice."""
    for i in range(ROWS - CHANGES // 2, ROWS + CHANGES // 2):
        yield order_line(i, day=2, amount=-1 if i % 5000 == 0 else None)
    for i in range(STALE):
        yield order_line(i, day=1, amount=1).replace("2026-01-01", "2025-12-31")
    for i in range(ROWS, ROWS + TWICE):
        yield order_line(i, day=3)


class OrdersJob:
    """What a day's work costs, start-up included; the third command must change nothing."""

    name = "orders_job"
    bar = "plain / ours >= 2.5"
    most_ratio = 1 / 2.5

    def prepare(self, folder: Path) -> None:
        wrong = (order_line(i, amount=-1 if i % 50_000 == 0 else None) for i in range(ROWS))
        (folder / "orders_1.csv").write_text(as_csv(wrong))
        (folder / "orders_2.csv").write_text(as_csv(changes()))
        (folder / "project" / "pipelines").mkdir(parents=True)
        (folder / "project" / "deltaworks.yaml").write_text("project: bench\nwarehouse: ./w\n")
        (folder / "project" / "pipelines" / "orders.yaml").write_text(PIPELINE)

    def commands(self, side: str, folder: Path) -> Sequence[Sequence[str]]:
        for place in (folder / "project" / "w", folder / "plain", folder / "aside"):
            shutil.rmtree(place, ignore_errors=True)
        return [[sys.executable, *self._command(side, folder, day)] for day in (1, 2, 2)]

    def _command(self, side: str, folder: Path, day: int) -> list[str]:
        if side == "ours":
            project = ["--project", str(folder / "project"), "--var", f"day={day}"]
            return ["-m", "deltaworks", "run", "orders", *project]
        script = Path(__file__).parents[1] / "scripts" / "orders_job.py"
        places = (folder / f"orders_{day}.csv", folder / "plain", folder / "aside")
        return [str(script), *map(str, places)]

    def check(self, side: str, folder: Path) -> str:
        from deltalake import DeltaTable, QueryBuilder

        place = folder / "project" / "w" / "orders" if side == "ours" else folder / "plain"
        query = "SELECT count(*), sum(order_id), round(sum(amount), 2), max(updated_at) FROM t"
        table = DeltaTable(str(place))
        row = QueryBuilder().register("t", table).execute(query).read_all()
        return ", ".join(str(column[0]) for column in row.columns)
