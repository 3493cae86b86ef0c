"""P14: a batch that cannot be committed is kept, and loaded once when it can be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """
extract: {type: csv, path: "in/*.csv", schema: "id int, v string", incremental: true}
load:
- {type: delta, table: safe}
- {type: delta, table: orders, mode: upsert, merge_keys: [id], on_failure: park}
"""


def feed(bench: Workbench, name: str, rows: str, *, parks: int | None = None) -> str:
    bench.write(f"in/{name}.csv", f"id,v\n{rows}\n")
    answer = bench.cli("run", "p", "--json", "--quiet")
    status = "succeeded" if parks is None else "parked"
    assert (answer.code, answer.json["status"]) == (0 if parks is None else 6, status)
    batch = answer.json["batches"][-1]
    assert [output["rows_parked"] for output in batch["outputs"]] == [None, parks]
    assert batch["rows_read"] == len(rows.splitlines())
    return str(answer.json["run_id"])


def append_only(bench: Workbench, spark: SparkSession, value: str) -> None:
    """A table that takes no updates: a commit that cannot be made, until somebody sees to it."""
    place = f"delta.`{bench.table('orders')}`"
    spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.appendOnly' = '{value}')")


def values(bench: Workbench, table: str) -> list[tuple[int, str]]:
    return sorted((row["id"], row["v"]) for row in bench.rows(table))


def test_parked_batches_are_loaded_later_in_their_order_and_once(
    bench: Workbench, spark: SparkSession
) -> None:
    bench.pipeline("p", PIPELINE)
    feed(bench, "a", "1,a")
    append_only(bench, spark, "true")
    second = feed(bench, "b", "1,b", parks=1)
    third = feed(bench, "c", "1,c\n2,c", parks=2)
    waits = bench.cli("run", "p", "--json", "--quiet")  # nothing is new, and rows still wait
    assert (waits.code, waits.json["status"]) == (6, "parked")
    listed = [run["status"] for run in bench.cli("runs", "list", "--json").json["runs"]]
    assert listed == ["parked", "parked", "parked", "succeeded"]
    assert values(bench, "safe") == [(1, "a"), (1, "b"), (1, "c"), (2, "c")]
    assert values(bench, "orders") == [(1, "a")]
    parked = sorted((bench.root / "warehouse/_deltaworks/parked/p").iterdir())
    manifest = json.loads((parked[0] / "manifest.json").read_text())
    assert [path.name for path in parked] == ["2-orders", "3-orders"]
    assert (manifest["rows"], manifest["run_id"], manifest["batch"]) == (1, second, 2)
    shown = bench.cli("runs", "show", second).stdout
    assert "parked" in shown
    still = bench.cli("runs", "replay", second, "--quiet")
    assert still.code == 4
    append_only(bench, spark, "false")
    assert bench.cli("runs", "replay", second, "--quiet").code == 0
    assert values(bench, "orders") == [(1, "b")]
    feed(bench, "d", "3,d")
    assert values(bench, "orders") == [(1, "c"), (2, "c"), (3, "d")]
    assert list((bench.root / "warehouse/_deltaworks/parked/p").iterdir()) == []
    assert bench.cli("runs", "replay", third, "--quiet").code == 5  # it is loaded already
    assert values(bench, "orders") == [(1, "c"), (2, "c"), (3, "d")]


def test_wrong_rows_are_not_parked_and_a_broken_parking_is_named(
    bench: Workbench, spark: SparkSession
) -> None:
    bench.pipeline("p", PIPELINE)
    feed(bench, "a", "1,a")
    bench.write("in/b.csv", "id,v\n2,b\n2,c\n")
    assert bench.fail("p").code == 1
    assert values(bench, "safe") == [(1, "a")]  # no sink gets what another refuses
    assert not (bench.root / "warehouse/_deltaworks/parked").exists()
    bench.write("in/b.csv", "id,v\n1,b\n")
    append_only(bench, spark, "true")
    run = bench.cli("run", "p", "--json", "--quiet").json["run_id"]
    append_only(bench, spark, "false")
    place = bench.root / "warehouse/_deltaworks/parked/p/3-orders"
    manifest = (place / "manifest.json").read_text()
    for text, words in (
        (manifest.replace('"rows": 1', '"rows": 2'), "1 rows of 2"),
        ("{", "manifest is gone or broken"),
    ):
        (place / "manifest.json").write_text(text)
        refused = bench.cli("runs", "replay", run, "--quiet")
        assert (refused.code, words in refused.stderr) == (4, True)
