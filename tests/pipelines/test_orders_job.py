"""The job every tool is judged by: typed, checked, deduplicated, newest wins, rerun is free."""

from __future__ import annotations

from tests.workbench import Workbench

ORDERS = """
extract: {type: csv, path: "data/orders_${var:day}.csv"}
transform:
  - name: typed
    type: cast
    columns: {order_id: bigint, amount: double, updated_at: timestamp}
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
HEADER = "order_id,country,amount,updated_at\n"
DAY_1 = HEADER + (
    "1,NL,10.5,2026-01-01 10:00:00\n"
    "2,DE,-3,2026-01-01 10:00:00\n"
    "3,DE,oops,2026-01-01 10:00:00\n"
    "4,DE,7,2026-01-01 10:00:00\n"
    "4,DE,8,2026-01-01 11:00:00\n"
)
DAY_2 = HEADER + (
    "1,DE,11,2026-01-02 10:00:00\n4,DE,7,2026-01-01 10:00:00\n5,NL,1,2026-01-02 10:00:00\n"
)


def two_days(bench: Workbench) -> Workbench:
    bench.write("data/orders_1.csv", DAY_1)
    bench.write("data/orders_2.csv", DAY_2)
    bench.pipeline("orders", ORDERS)
    return bench


def test_every_row_read_is_written_quarantined_or_dropped_by_name(bench: Workbench) -> None:
    batch = two_days(bench).run("orders", "--var", "day=1")["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"], batch["rows_dropped"]) == (5, 2, 1)
    output = batch["outputs"][0]
    assert (output["rows_inserted"], output["version"], output["committed"]) == (2, 0, True)
    quarantined = bench.rows("orders__quarantine")
    assert sorted(row["reason"] for row in quarantined) == [
        "amount: 'oops' is not double",
        "check expression failed",
    ]
    assert '"amount":"oops"' in "".join(row["row"] for row in quarantined)


def test_newest_wins_and_stale_rows_change_nothing(bench: Workbench) -> None:
    two_days(bench).run("orders", "--var", "day=1")
    output = bench.run("orders", "--var", "day=2")["batches"][0]["outputs"][0]
    assert (output["rows_inserted"], output["rows_updated"], output["rows_unchanged"]) == (1, 1, 1)
    assert {row["order_id"]: (row["country"], row["amount"]) for row in bench.rows("orders")} == {
        1: ("DE", 11.0),  # moved to another partition, and found there
        4: ("DE", 8.0),
        5: ("NL", 1.0),
    }


def test_a_rerun_that_changes_nothing_makes_no_commit_and_says_so(bench: Workbench) -> None:
    two_days(bench).run("orders", "--var", "day=1")
    before = bench.version("orders")
    output = bench.run("orders", "--var", "day=1")["batches"][0]["outputs"][0]
    assert output["committed"] is False
    assert len(bench.rows("orders__quarantine")) == 2
    assert "no commit" in output["note"]
    assert bench.version("orders") == before
