"""Looking back: what a commit did, what cannot be taken back, and where increments start."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.engines.deltars.log import commit_files, file_changes
from deltaworks.engines.spark.restore import restore
from deltaworks.engines.spark.revert import revert_files, revert_merge
from deltaworks.errors import ConstraintViolated, GuardError, VersionNotFound
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
    found = source.start_at(loader.context.site, moment)
    assert found is not None
    assert found.position == {"version": 1}
