"""What seldom happens to a table, done once each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaworks.engines.spark.delta.upsert import land_by_key
from deltaworks.errors import CommitConflict, UnsupportedOperation
from deltaworks.model.commit import Txn
from deltaworks.model.write import Layout, Stamp, Upsert
from tests.tables.loader import APP, Loader

pytestmark = pytest.mark.spark


def test_changes_of_one_time_are_ordered_by_their_offset(loader: Loader) -> None:
    asked: dict[str, Any] = {"mode": "changelog", "merge_keys": "id", "op_column": "op"}
    records = (
        "(1, 'b', 7, 'u', 6L), (1, 'a', 7, 'c', 5L), (1, 'z', 3, 'u', 9L), (2, 'x', 1, 'c', 1L)"
    )
    loader.load(f"{records} AS t(id, v, at, op, _offset)", **asked, sequence_by="at")
    assert [row[:2] for row in loader.rows()] == [(1, "b"), (2, "x")]


def test_a_first_load_by_delta_rs_sets_no_properties(loader: Loader) -> None:
    rows, asked = "(1, 'a') AS t(id, v)", {"properties": {"delta.appendOnly": "true"}}
    for answer in (loader.plan, loader.load):
        with pytest.raises(UnsupportedOperation, match="the table is to have properties"):
            answer(rows, writer="deltars", **asked)
    loader.load(rows, writer="auto", **asked)
    assert loader.detail()["properties"]["delta.appendOnly"] == "true"


def test_a_char_column_that_is_no_key_is_merged(loader: Loader) -> None:
    loader.path.parent.mkdir(parents=True)
    loader.sql("CREATE TABLE THIS (id INT, code CHAR(5)) USING delta")
    first = loader.upsert("SELECT 1 AS id, 'NL' AS code")
    again = loader.upsert("SELECT 1 AS id, 'NL' AS code")
    other = loader.upsert("SELECT 1 AS id, 'BE' AS code")
    assert (first.rows_inserted, again.committed, other.rows_updated) == (1, False, 1)
    assert loader.rows() == [(1, "BE   ")]


def test_a_merge_that_delta_skips_is_not_taken_for_a_commit(loader: Loader) -> None:
    """Another driver may have committed a transaction of that number since it was looked for."""
    loader.upsert("(1, 'a') AS t(id, v)")
    stamp = Stamp(txn=Txn(APP, 1), user_metadata=json.dumps({"batch": 1}))
    writer = loader.sink()._writer(loader.context, stamp, Layout())
    rows = loader.spark.sql("SELECT 1 AS id, 'b' AS v")
    asked = Upsert(keys=("id",))
    with pytest.raises(CommitConflict, match="it is not the batch 1 that was to be written"):
        land_by_key(writer, rows, asked, now=loader.context.now, keep=lambda frame: frame)
    assert loader.version() == 0
    assert loader.rows() == [(1, "a")]
