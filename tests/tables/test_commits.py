"""P1, P2, P3: every commit carries its batch, and the first version of a table holds data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaworks.errors import CommitConflict, CommitUnknown
from tests.tables.loader import APP, Loader
from tests.workbench import Workbench

MODES: dict[str, dict[str, Any]] = {
    "append": {},
    "overwrite": {"mode": "overwrite"},
    "overwrite_schema": {"mode": "overwrite", "overwrite_schema": True},
    "replace_where": {"mode": "overwrite", "replace_where": "id > 0"},
    "upsert": {"mode": "upsert", "merge_keys": "id"},
}


def carried(actions: list[dict[str, Any]]) -> tuple[tuple[str, int], Any]:
    txn = next(action["txn"] for action in actions if "txn" in action)
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    return (txn["appId"], txn["version"]), json.loads(info["userMetadata"])


@pytest.mark.parametrize("mode", MODES)
def test_the_batch_is_in_the_commit_that_makes_a_table_and_in_the_next(
    loader: Loader, mode: str
) -> None:
    loader.load("(1, 'a') AS t(id, v)", **MODES[mode])
    loader.load("(1, 'b'), (2, 'b') AS t(id, v)", **MODES[mode])
    commits = loader.commits()
    assert list(commits) == [0, 1]
    assert carried(commits[0]) == ((APP, 1), {"batch": 1})
    assert carried(commits[1]) == ((APP, 2), {"batch": 2})
    assert any("add" in action for action in commits[0])
    for setting in ("write.txnAppId", "write.txnVersion", "commitInfo.userMetadata"):
        assert loader.spark.conf.get(f"spark.databricks.delta.{setting}", None) is None


def test_a_run_puts_its_id_pipeline_and_batch_into_the_commit(bench: Workbench) -> None:
    bench.write("in.csv", "id\n1\n")
    bench.pipeline("p", "extract: {type: csv, path: in.csv}\nload: {type: delta, table: t}\n")
    run = bench.run("p")
    log = (bench.table("t") / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    (app_id, version), note = carried([json.loads(line) for line in log])
    assert app_id.startswith("deltaworks:")
    assert version == note["batch"] == run["batches"][0]["n"]
    assert (note["run_id"], note["pipeline"]) == (run["run_id"], "p")


def test_files_a_dead_run_left_behind_do_not_stop_the_table_from_being_made(
    loader: Loader,
) -> None:
    (loader.path / "_delta_log").mkdir(parents=True)
    (loader.path / "part-0.parquet").write_bytes(b"half")
    assert loader.load("(1) AS t(id)").version == 0
    assert loader.rows() == [(1,)]


def test_a_commit_that_cannot_be_found_again_is_unknown_not_done(loader: Loader) -> None:
    from deltaworks.engines.spark.delta.writer import TableWriter
    from deltaworks.model.commit import Txn
    from deltaworks.model.merge_facts import BatchFacts
    from deltaworks.model.write import Append, Layout, MergeStrategy, Stamp, Upsert

    # this writer's batch 5 is in the table, so Delta skips its batch 4 without a word
    stamps = [Stamp(txn=Txn("w", n), user_metadata=json.dumps({"batch": n})) for n in (5, 4)]
    frame = loader.spark.range(2).toDF("id")
    first, second = (
        TableWriter(loader.spark, str(loader.path), layout=Layout(), stamp=stamp)
        for stamp in stamps
    )
    assert first.append(frame, Append()).committed
    with pytest.raises(CommitConflict, match="is not the batch 4"):
        second.append(frame, Append())
    grown = loader.spark.range(5).toDF("id")
    table, facts = second.log.info(str(loader.path)), BatchFacts(rows=5)
    wishes: tuple[MergeStrategy, ...] = ("auto", "merge")
    for strategy in wishes:
        write = Upsert(keys=("id",), strategy=strategy)
        with pytest.raises(CommitConflict, match="is not the batch 4"):
            second.upsert(grown, write, facts=facts, table=table)
    assert len(loader.rows()) == 2
    stamp = Stamp(txn=Txn("w", 6), user_metadata="{}")
    third = TableWriter(loader.spark, str(loader.path), layout=Layout(), stamp=stamp)
    assert third._landed(table).committed is False
    with pytest.raises(CommitUnknown, match="its commit cannot be found"):
        third._landed(None)
