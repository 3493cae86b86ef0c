"""How a batch goes in is chosen from what was measured, and a wish is obeyed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deltaworks.engines.spark.delta.merge.strategy import Strategy, choose, shuffled_bytes
from deltaworks.model.merge_facts import BatchFacts, DiffFacts, FileScope
from deltaworks.model.schema import Schema
from deltaworks.model.table_info import TableInfo
from deltaworks.model.write import MergeStrategy, Upsert

MIB = 1 << 20
LARGE = FileScope(
    files_total=20, bytes_total=400 * MIB, rows_total=5_000_000, files=20, bytes=400 * MIB
)
FACTS = BatchFacts(rows=100, bytes=5 * MIB)
MIXED = DiffFacts(
    insert=50, update=50, files_touched=20, bytes_touched=400 * MIB, scope=LARGE, files_matched=20
)
TABLE = TableInfo(
    location="t",
    table_id="id",
    version=3,
    schema=Schema((), '{"fields": []}'),
    partition_columns=(),
    properties={},
    reader_version=1,
    writer_version=2,
    features=(),
)
VECTORS = replace(TABLE, properties={"delta.enableDeletionVectors": "true"})


def chosen(
    diff: DiffFacts = MIXED,
    table: TableInfo = TABLE,
    *,
    wish: MergeStrategy = "auto",
    facts: BatchFacts = FACTS,
    grows: bool = False,
    delete_missing: bool = False,
) -> Strategy:
    write = Upsert(keys=("id",), strategy=wish, delete_missing=delete_missing)
    return choose(write, facts, diff, table, grows=grows)


def test_nothing_to_change_is_no_commit_whatever_is_wished() -> None:
    for wish in ("auto", "plain", "merge"):
        same = chosen(DiffFacts(unchanged=100), wish=wish)
        assert same.text() == "no commit: nothing changes"
    assert chosen(DiffFacts(unchanged=100), grows=True).write == "merge"


def test_new_rows_alone_are_appended_unless_delta_fills_columns_or_a_merge_is_wished() -> None:
    new = DiffFacts(insert=100)
    assert chosen(new).text() == "append: all rows are new"
    assert chosen(replace(new, unchanged=5)).write == "append"
    assert chosen(new, wish="merge").write == "merge"
    assert chosen(new, replace(TABLE, features=("identityColumns",))).write == "merge"
    assert chosen(new, grows=True).write == "merge"
    assert chosen(replace(new, missing=1), delete_missing=True).write == "merge"


def test_only_changed_rows_are_merged_unless_the_others_matter() -> None:
    assert not chosen().whole
    assert chosen(grows=True).whole
    assert chosen(delete_missing=True).whole
    assert chosen(replace(MIXED, update=60)).whole  # a row of the batch met several of the table
    assert chosen(wish="plain").text() == "merge of the whole batch, broadcast, copy on write"


@pytest.mark.parametrize(("wish", "broadcast"), [("broadcast", True), ("shuffle", False)])
def test_a_small_batch_is_sent_to_a_large_table_and_a_wish_decides(
    wish: MergeStrategy, broadcast: bool
) -> None:
    assert chosen().broadcast
    assert not chosen(facts=replace(FACTS, bytes=500 * MIB)).broadcast
    assert not chosen(replace(MIXED, scope=FileScope(files=1, bytes=MIB))).broadcast
    assert chosen(wish=wish).broadcast is broadcast


def test_deletion_vectors_are_used_where_the_table_has_them_and_few_rows_change() -> None:
    assert not chosen().vectors
    assert chosen(table=VECTORS).vectors
    many = replace(MIXED, update=2_000_000)
    assert not chosen(many, VECTORS).vectors
    assert chosen(many, VECTORS, wish="deletion_vectors").vectors
    assert not chosen(table=VECTORS, wish="copy_on_write").vectors


def test_deletion_vectors_are_advised_where_few_rows_make_large_files_be_rewritten() -> None:
    advice = chosen().advice
    assert "50 changed rows make 20 files (400 MiB)" in advice
    assert "readers without deletion vectors" in advice
    assert chosen(table=VECTORS).advice == ""
    assert "has no deletion vectors" in chosen(wish="deletion_vectors").advice
    assert chosen(replace(MIXED, bytes_touched=MIB)).advice == ""


def test_what_a_merge_shuffles_is_the_batch_and_the_files_it_rewrites() -> None:
    few = replace(MIXED, bytes_touched=MIB, bytes_matched=2 * MIB)
    assert shuffled_bytes(chosen(few), FACTS, few) == 8 * MIB
    assert shuffled_bytes(chosen(few, wish="shuffle"), FACTS, few) == 1205 * MIB
    assert shuffled_bytes(chosen(few, grows=True), FACTS, few) == 11 * MIB
