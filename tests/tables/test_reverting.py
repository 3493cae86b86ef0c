"""Looking back: what a commit did, what cannot be taken back, and where increments start."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from deltaworks.contracts.context import BatchWrite
from deltaworks.engines.deltars.log.commits import commit_files, file_changes
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.spark.delta import undo as revert
from deltaworks.engines.spark.delta.restore import restore
from deltaworks.engines.spark.delta.undo import revert_files, revert_merge
from deltaworks.engines.spark.delta.writer import TableWriter
from deltaworks.engines.spark.errors.translate import translate
from deltaworks.errors import CommitConflict, ConstraintViolated, GuardError, VersionNotFound
from deltaworks.model.commit import Txn, UndoInfo
from deltaworks.model.table_info import TableInfo
from deltaworks.sources.delta import DeltaSource
from tests.tables.loader import Loader


def table(loader: Loader) -> TableInfo:
    found = DeltaRsEngine().info(str(loader.path))
    assert found is not None
    return found


def test_a_commit_that_was_cleaned_up_is_not_looked_into(tmp_path: Path) -> None:
    with pytest.raises(VersionNotFound, match="no longer in its log"):
        file_changes(str(tmp_path), 3)


def test_the_commit_that_made_a_table_is_taken_back_as_a_whole(loader: Loader) -> None:
    loader.upsert("(1, 'a'), (2, 'b') AS t(id, v)")
    found = revert_merge(loader.spark, table(loader), 0, ["id"])
    assert (found.rows_removed, found.rows_put_back) == (2, 0)
    with pytest.raises(VersionNotFound):
        restore(loader.spark, str(loader.path), 9, note={})


def test_a_schema_that_was_replaced_is_not_taken_back(loader: Loader) -> None:
    loader.load("(1, 'a') AS t(id, v)")
    loader.load("(1) AS t(other)", mode="overwrite", overwrite_schema=True)
    with pytest.raises(GuardError, match="replaced the schema too"):
        revert_files(loader.spark, table(loader), 1)


def undo(loader: Loader, version: int, n: int = 9, **options: Any) -> UndoInfo:
    note = json.dumps({"undone_batch": n})
    batch = BatchWrite(n=n, txn=Txn("loader:undo", n), user_metadata=note)
    return loader.sink(**options).undo(loader.context, version, batch, apply=True)


def foreign(loader: Loader, rows: str) -> None:
    """Another writer, who takes no lock of ours, adds rows."""
    frame = loader.spark.newSession().sql(f"SELECT * FROM VALUES {rows}")
    frame.write.format("delta").mode("append").save(str(loader.path))


def before(patch: pytest.MonkeyPatch, owner: object, name: str, what: Callable[[], object]) -> None:
    """Have something happen just before a function of ours is called."""
    real = getattr(owner, name)

    def called(*arguments: Any, **options: Any) -> Any:
        patch.setattr(owner, name, real)
        what()
        return real(*arguments, **options)

    patch.setattr(owner, name, called)


def test_both_engines_read_what_an_undo_by_files_leaves(loader: Loader) -> None:
    vectors = {"properties": {"delta.enableDeletionVectors": "true"}, "partition_by": "v"}
    for n in (1, 2):
        loader.load(f"SELECT id, 'a b%' AS v FROM range({n}0, {n}5)", **vectors)
    loader.sql("DELETE FROM THIS WHERE id = 11")  # marked in a vector of the first batch's file
    with pytest.raises(GuardError, match="version 2 rewrote files"):
        undo(loader, 0)
    done = undo(loader, 1)
    assert (done.version, done.rows_removed, done.rows_put_back) == (3, 5, 0)
    assert [row[0] for row in loader.rows()] == [10, 12, 13, 14]
    assert [row[0] for row in loader.sql("DESCRIBE HISTORY THIS")] == [3, 2, 1, 0]
    assert DeltaRsEngine().count(str(loader.path)) == 4
    assert undo(loader, 1).committed is False  # it is out already
    loader.load("(7L, 'c') AS t(id, v)", mode="overwrite", **vectors)
    undo(loader, 4, 10, mode="overwrite")  # by Spark, because a vector would come back
    assert [row[0] for row in loader.rows()] == [10, 12, 13, 14]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_where_spark_takes_a_batch_out_a_foreign_commit_meanwhile_is_a_conflict(
    loader: Loader, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    stamped = {"properties": {"delta.enableInCommitTimestamps": "true"}, "mode": mode}
    loader.load("(1, 'a') AS t(id, v)", **stamped)
    loader.load("(2, 'b') AS t(id, v)", **stamped)
    with monkeypatch.context() as patch:
        before(patch, TableWriter, "_save", lambda: foreign(loader, "(1000, 'x') AS t(id, v)"))
        with pytest.raises(Exception, match="another writer changed the table") as caught:
            undo(loader, 1, mode=mode)
    assert isinstance(translate(caught.value), CommitConflict)
    assert (1000, "x") in loader.rows()
    assert loader.version() == 2
    if mode == "append":
        assert undo(loader, 1).version == 3
        assert loader.rows() == [(1, "a"), (1000, "x")]


def test_where_rows_are_merged_back_a_foreign_commit_meanwhile_stays_or_is_a_conflict(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed: dict[str, Any] = {"mode": "upsert", "merge_keys": "id"}
    loader.upsert("(1, 'a'), (2, 'a') AS t(id, v)")
    loader.upsert("(1, 'b') AS t(id, v)")
    loader.upsert("(3, 'c') AS t(id, v)")
    with monkeypatch.context() as patch:
        before(patch, revert, "merge_sql", lambda: foreign(loader, "(3, 'x') AS t(id, v)"))
        with pytest.raises(Exception, match="another writer changed the table") as caught:
            undo(loader, 2, **keyed)
    assert isinstance(translate(caught.value), CommitConflict)
    assert loader.version() == 3
    with monkeypatch.context() as patch:
        before(patch, revert, "merge_sql", lambda: foreign(loader, "(4, 'x') AS t(id, v)"))
        assert undo(loader, 1, **keyed).version == 5
    assert loader.rows() == [(1, "a"), (2, "a"), (3, "c"), (3, "x"), (4, "x")]


def test_rows_of_nothing_but_keys_are_taken_out_and_put_back(loader: Loader) -> None:
    keys: dict[str, Any] = {"mode": "upsert", "merge_keys": ["a", "b"]}
    loader.load("(1, 1), (1, 2) AS t(a, b)", **keys)
    foreign(loader, "(1, CAST(NULL AS INT)), (1, CAST(NULL AS INT)) AS t(a, b)")
    loader.load("(1, 2), (2, 2) AS t(a, b)", **keys)
    done = undo(loader, 2, **keys)
    assert (done.version, done.rows_removed, done.rows_put_back) == (3, 1, 0)
    without_key = [(1, None), (1, None)]
    assert loader.rows() == [(1, 1), (1, 2), *without_key]
    with pytest.raises(GuardError, match="a later batch was taken out before"):
        undo(loader, 0, 8, **keys)  # Delta passes over a number below one that it has
    loader.sql("ALTER TABLE THIS SET TBLPROPERTIES ('a' = 'b')")
    assert undo(loader, 4, 10, **keys).committed is False  # that changed no row
    loader.load("(1, 2) AS t(a, b)", **keys, not_matched_by_source="delete")
    with pytest.raises(GuardError, match="NULL in a key"):
        undo(loader, 5, 10, **keys)


def test_rows_that_break_a_rule_are_refused_before_any_sink_is_written(loader: Loader) -> None:
    loader.load("(1, 5) AS t(id, n)")
    loader.sql("ALTER TABLE THIS ADD CONSTRAINT positive CHECK (n > 0)")
    frame = loader.spark.sql("SELECT 2 AS id, -5 AS n")
    with pytest.raises(ConstraintViolated, match="positive: 1 row"):
        loader.sink().verify(loader.context, frame)


def test_increments_start_after_the_version_of_a_moment(loader: Loader) -> None:
    for n in range(2):
        loader.load(f"({n}) AS t(id)")
    newest = commit_files(str(loader.path))[-1].modified_ms
    source = DeltaSource.model_validate({"table": "t", "incremental": True})
    moment = datetime.fromtimestamp(newest / 1000, UTC).isoformat()
    found = source.start_at(loader.context.project_ctx, moment)
    assert found is not None
    assert found.position == {"version": 1}
