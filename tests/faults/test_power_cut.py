"""What a run calls done is on the disk: a power cut right after it takes nothing away."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaworks.engines.deltars.event_table.table import EventTable, event_schema
from deltaworks.engines.deltars.query import delete_rows
from deltaworks.engines.deltars.write.restore import restore
from deltaworks.engines.spark.delta.restore import restore as restore_by_spark
from deltaworks.model.commit import Txn
from deltaworks.storage.paths import write_text
from tests.faults.platter import Platter
from tests.streams.tables import batch, opened
from tests.streams.tables import rows as stream_rows
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = event_schema((("name", "text"), ("n", "number")))
EVERY_SINK = """
extract: {type: csv, path: in.csv, schema: "id int, country string, name string"}
checks: [{type: not_null, columns: [name], on_fail: quarantine}]
load:
  - {type: delta, table: added, writer: spark, partition_by: [country]}
  - {type: delta, table: merged, mode: upsert, merge_keys: [id], writer: spark}
  - {type: delta, table: replaced, mode: overwrite}
  - {type: delta, table: small, writer: auto, partition_by: [country]}
  - {type: parquet, path: out/kept, mode: append, partition_by: [country]}
  - {type: csv, path: out/export, mode: overwrite}
"""
NOT_PROMISED = re.compile(
    r"_deltaworks/(logs|runs)|\.lock$|_last_checkpoint|\.deltaworks-|\.draft$"
)
"""Logs, run records and locks: nothing of them is a row, or is needed to find one."""


def not_kept(lost: list[str]) -> list[str]:
    """What was promised, and lost."""
    return [path for path in lost if not NOT_PROMISED.search(path)]


def test_the_platter_forgets_what_nobody_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tmp_path / "before.txt"
    before.write_text("old")
    platter = Platter(tmp_path, monkeypatch)
    (tmp_path / "loose.txt").write_text("gone")
    write_text(str(tmp_path / "safe.txt"), "kept")
    (tmp_path / "late").mkdir()
    write_text(str(tmp_path / "late" / "inner.txt"), "its folder is not known")
    before.write_text("changed")
    assert platter.cut() == ["before.txt", "late", "loose.txt"]
    left = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert left == {"before.txt": "", "loose.txt": "", "safe.txt": "kept"}


def test_events_restores_and_removed_rows_of_tables_without_a_jvm_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platter = Platter(tmp_path, monkeypatch)
    place = str(tmp_path / "warehouse" / "books" / "events")
    books = EventTable(place, SCHEMA)
    for n in range(1, 4):
        books.append({"name": "a" if n < 3 else "b", "n": n}, txn=Txn("w", n))
    assert delete_rows(place, "name = 'b'", note={}) == 1
    restore(place, 2, base=4, note={})
    EventTable(place, SCHEMA).append({"name": "c", "n": 9})
    expected = sorted((row["name"], row["n"]) for row in EventTable(place, SCHEMA).read())
    assert expected == [("a", 1), ("a", 2), ("c", 9)]
    assert not_kept(platter.cut()) == []
    found = sorted((row["name"], row["n"]) for row in EventTable(place, SCHEMA).read())
    assert found == expected


def test_many_events_are_joined_and_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "events")
    monkeypatch.setattr("deltaworks.engines.deltars.event_table.table._MAX_FILES", 2)
    books = EventTable(place, SCHEMA)
    for n in range(1, 4):
        books.append({"name": "a", "n": n})
    platter = Platter(tmp_path, monkeypatch)
    books.compact()
    assert not_kept(platter.cut()) == []
    assert sorted(row["n"] for row in EventTable(place, SCHEMA).read()) == [1, 2, 3]


def test_epochs_of_a_stream_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    platter = Platter(tmp_path, monkeypatch)
    with opened(tmp_path) as sink:
        for n in (1, 2):
            sink.write(batch(n))
            sink.commit_epoch(n)
        platter.cut()
    assert [row["id"] for row in stream_rows(tmp_path)] == [1, 2]


@pytest.mark.spark
def test_a_batch_that_is_done_stays_in_every_kind_of_sink(
    bench: Workbench, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.pipeline("p", EVERY_SINK)
    platter = Platter(bench.root, monkeypatch)
    for day, ids in enumerate(((1, 2), (2, 3))):
        rows = "".join(f"{n},{'nl' if n % 2 else 'de'},row {n} of {day}\n" for n in ids)
        bench.write("in.csv", f"id,country,name\n{rows}9,nl,\n")
        bench.run("p")
    assert last_commit(bench, "added") == ("WRITE", "Spark")
    assert last_commit(bench, "merged") == ("MERGE", "Spark")
    assert last_commit(bench, "replaced") == ("WRITE", "Spark")
    assert last_commit(bench, "small") == ("WRITE", "delta-rs")
    restore_by_spark(spark, str(bench.table("replaced")), 0, note={})
    assert last_commit(bench, "replaced") == ("RESTORE", "Spark")
    before = contents(bench)
    assert before["quarantine"] == 2
    assert before["merged"] == [1, 2, 3]
    assert before["replaced"] == [1, 2]
    lost = platter.cut()
    assert [path for path in not_kept(lost) if path != "in.csv"] == []
    assert contents(bench) == before
    assert done_batches(bench) == [1, 2]


def contents(bench: Workbench) -> dict[str, Any]:
    """What every reader finds, asked of delta-rs and Arrow."""
    import pyarrow.dataset as ds

    tables = {name: ids_of(bench, name) for name in ("added", "merged", "replaced", "small")}
    kept = ds.dataset(str(bench.root / "out/kept"), partitioning="hive").to_table()
    exported = ds.dataset(str(bench.root / "out/export"), format="csv").to_table()
    return {
        **tables,
        "quarantine": len(bench.rows("p__quarantine")),
        "kept": sorted(kept.column("id").to_pylist()),
        "export": sorted(exported.column("id").to_pylist()),
        "manifest": json.loads((bench.root / "out/kept/_deltaworks.json").read_text()),
    }


def last_commit(bench: Workbench, table: str) -> tuple[str, str]:
    """What the last commit did, and whose it is."""
    log = sorted((bench.table(table) / "_delta_log").glob("*.json"))
    actions = (json.loads(line) for line in log[-1].read_text().splitlines())
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    by_spark = "Spark" in str(info.get("engineInfo"))
    return info["operation"], "Spark" if by_spark else "delta-rs"


def ids_of(bench: Workbench, table: str) -> list[int]:
    return sorted(row["id"] for row in bench.rows(table))


def done_batches(bench: Workbench) -> list[int]:
    events = bench.rows("_deltaworks/batches")
    return sorted(event["batch"] for event in events if event["kind"] == "done")
