"""Change records into a table: messages about them, and what they are held to."""

from __future__ import annotations

from typing import Any

import pytest

from deltaworks.errors import BatchKeyError, DeltaworksError, SchemaMismatch
from tests.tables.loader import Loader

FEED: dict[str, Any] = {"mode": "changelog", "merge_keys": "id"}
COLUMNS = "t(id, v, _change_type, _commit_version, _commit_timestamp)"
RECORDS = "AS t(id, v, at, op)"
PLAIN: dict[str, Any] = {**FEED, "op_column": "op", "sequence_by": "at"}


def feed(*records: tuple[str, str, str, int]) -> str:
    listed = [
        f"({key}, {value}, '{kind}', {version}L, now())" for key, value, kind, version in records
    ]
    return f"{', '.join(listed)} AS {COLUMNS}"


def test_within_a_version_what_goes_comes_before_what_stays(loader: Loader) -> None:
    options = {**FEED, "writer": "auto"}
    loader.load(feed(("1", "'a'", "insert", 0), ("2", "'a'", "insert", 0)), **options)
    batch = feed(
        ("1", "'b'", "insert", 3),
        ("1", "'a'", "delete", 3),
        ("2", "'a'", "update_preimage", 3),
        ("3", "'a'", "update_postimage", 3),
    )
    planned = loader.plan(batch, **options)
    assert (planned.rows_to_insert, planned.rows_to_update, planned.rows_to_delete) == (1, 1, 1)
    done = loader.load(batch, **options)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 1, 1)
    assert loader.rows() == [(1, "b"), (3, "a")]


def test_messages_about_change_records_name_no_column_of_ours(loader: Loader) -> None:
    loader.load(f"(1, 'a', 1, 'c') {RECORDS}", **PLAIN)
    bad = {
        "NULL in merge key": f"(CAST(NULL AS INT), 'b', 2, 'c') {RECORDS}",
        'different rows with the same "at"': f"(1, 'b', 2, 'c'), (1, 'x', 2, 'u') {RECORDS}",
        'names column "id"': "(1, 'b', 2, 'c') AS t(key, v, at, op)",
    }
    for words, batch in bad.items():
        with pytest.raises(DeltaworksError) as caught:
            loader.load(batch, **PLAIN)
        told = f"{caught.value.message} {caught.value.hint} {caught.value.context}"
        assert words.lower() in told.lower()
        assert "__deltaworks" not in told
    with pytest.raises(SchemaMismatch, match="a change feed is the newer one"):
        loader.load(feed(("1", "'a'", "insert", 0)), **FEED, sequence_by="v")


def test_a_record_that_only_deletes_breaks_no_rule_of_the_table(loader: Loader) -> None:
    """Its other columns are as they were, or not there at all."""
    loader.load(f"(1, 'a', 1, 'c'), (2, 'b', 1, 'c') {RECORDS}", **PLAIN)
    loader.sql("ALTER TABLE THIS ADD CONSTRAINT named CHECK (v IS NOT NULL)")
    gone = f"(1, CAST(NULL AS STRING), 2, 'd') {RECORDS}"
    sink = loader.sink(**PLAIN)
    assert sink.violations(loader.context, loader._frame(gone)) == ()
    loader.load(gone, **PLAIN)
    assert [row[0] for row in loader.rows()] == [2]


def test_an_upsert_of_a_feed_is_told_of_the_mode_that_knows_its_order(loader: Loader) -> None:
    options: dict[str, Any] = {
        "delete_condition": "source._change_type = 'delete'",
        "duplicates": {"keep": "newest", "by": "_commit_version"},
    }
    with pytest.raises(BatchKeyError) as caught:
        loader.upsert(feed(("1", "'a'", "delete", 3), ("1", "'b'", "insert", 3)), **options)
    assert "mode: changelog" in caught.value.hint
