"""An upsert goes in as cheaply as what was measured allows, and another writer is never missed."""

from __future__ import annotations

from typing import Any

import pytest

from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.spark.delta.merge import diff as comparison
from deltaworks.engines.spark.delta.merge.diff import diffed, still_new
from deltaworks.engines.spark.delta.merge.keys import measured_keys
from deltaworks.engines.spark.delta.writer import TableWriter
from deltaworks.engines.spark.errors.translate import translate
from deltaworks.errors import CommitConflict
from deltaworks.model.commit import Txn
from deltaworks.model.table_info import TableInfo
from deltaworks.model.write import Layout, Stamp, Upsert
from tests.tables.loader import Loader

TWO = "(1, 'a'), (2, 'b') AS t(id, v)"
NEW = "(3, 'c'), (4, 'd') AS t(id, v)"


def last_commit(loader: Loader) -> dict[str, Any]:
    found: dict[str, Any] = next(
        action["commitInfo"]
        for action in loader.commits()[loader.version()]
        if "commitInfo" in action
    )
    return found


def table_of(loader: Loader) -> TableInfo:
    found = DeltaRsEngine().info(str(loader.path))
    assert found is not None
    return found


def test_new_rows_alone_are_appended_in_a_commit_that_depends_on_what_it_read(
    loader: Loader,
) -> None:
    loader.upsert(TWO)
    planned = loader.plan(NEW, mode="upsert", merge_keys="id")
    info = loader.upsert("(2, 'b'), (3, 'c'), (4, 'd') AS t(id, v)", insert_columns="v")
    assert loader.rows() == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert (info.rows_inserted, info.rows_updated, info.rows_unchanged) == (2, 0, 1)
    assert planned.strategy == info.strategy == "append: all rows are new"
    assert planned.sql == ""
    commit = last_commit(loader)
    assert commit["operation"] == "WRITE"
    assert commit["isBlindAppend"] is False  # so Delta looks at what others committed meanwhile


def test_a_key_that_another_writer_inserts_after_the_comparison_is_a_conflict_not_a_duplicate(
    loader: Loader,
) -> None:
    loader.upsert(TWO)
    table, write = table_of(loader), Upsert(keys=("id",))
    frame = loader.spark.sql(f"SELECT * FROM VALUES {NEW}")
    facts = measured_keys(frame, write.keys)
    with diffed(loader.spark, frame, table, write, facts) as (classified, diff):
        assert diff.only_inserts
        loader.load("(4, 'theirs') AS t(id, v)")
        rows = still_new(classified, table, write, facts, diff.scope)
        with pytest.raises(Exception, match="another writer") as caught:
            rows.write.format("delta").mode("append").save(str(loader.path))
    assert isinstance(translate(caught.value), CommitConflict)
    assert loader.rows() == [(1, "a"), (2, "b"), (4, "theirs")]


def test_a_table_that_moves_between_look_and_comparison_is_a_conflict(loader: Loader) -> None:
    loader.upsert(TWO)
    table = table_of(loader)
    loader.load(NEW)
    frame = loader.spark.sql("SELECT * FROM VALUES (1, 'x') AS t(id, v)")
    stamp = Stamp(txn=Txn("other", 1), user_metadata="{}")
    writer = TableWriter(loader.spark, str(loader.path), layout=Layout(), stamp=stamp)
    facts = measured_keys(frame, ["id"])
    with pytest.raises(CommitConflict, match="another writer changed"):
        writer.upsert(frame, Upsert(keys=("id",)), facts=facts, table=table)
    assert loader.version() == 1


@pytest.mark.parametrize("strategy", ["plain", "merge", "broadcast", "shuffle"])
def test_a_forced_strategy_leaves_the_same_rows(loader: Loader, strategy: str) -> None:
    loader.upsert(TWO)
    info = loader.upsert("(2, 'B'), (3, 'c') AS t(id, v)", strategy=strategy)
    assert loader.rows() == [(1, "a"), (2, "B"), (3, "c")]
    assert last_commit(loader)["operation"] == "MERGE"
    whole = strategy == "plain"
    assert f"merge of the {'whole batch' if whole else 'changed rows'}" in info.strategy
    assert loader.upsert("(3, 'c') AS t(id, v)", strategy=strategy).committed is False


def test_changed_rows_are_marked_in_deletion_vectors_where_the_table_has_them(
    loader: Loader,
) -> None:
    vectors = {"properties": {"delta.enableDeletionVectors": "true"}}
    loader.upsert("SELECT id, 'a' AS v FROM range(100)", **vectors)
    info = loader.upsert("(7L, 'b') AS t(id, v)", **vectors)
    assert info.strategy.endswith("deletion vectors")
    adds = [action["add"] for action in loader.commits()[1] if "add" in action]
    assert any("deletionVector" in add for add in adds)
    loader.upsert("(8L, 'b') AS t(id, v)", strategy="copy_on_write", **vectors)
    adds = [action["add"] for action in loader.commits()[2] if "add" in action]
    assert not any(add.get("deletionVector") for add in adds)
    assert [row[1] for row in loader.rows()].count("b") == 2


def test_of_a_large_table_only_the_rows_that_meet_the_batch_are_kept(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "FEW_BYTES", 0)
    loader.upsert(TWO)
    info = loader.upsert("(2, 'x'), (3, 'c') AS t(id, v)")
    assert (info.rows_inserted, info.rows_updated) == (1, 1)
    assert loader.upsert("(4, 'd') AS t(id, v)").strategy == "append: all rows are new"
    assert loader.rows() == [(1, "a"), (2, "x"), (3, "c"), (4, "d")]
