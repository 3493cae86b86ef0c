"""Partition replacement, upsert and changelog: one commit for each epoch (S4, S5)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaworks.engines.deltars.write.epoch_table import EpochTable, TableLocation
from deltaworks.errors import BatchKeyError, CommitConflict, InputError, SchemaMismatch
from deltaworks.model.epochs import Limits
from deltaworks.streams.changelog import GONE, SEQUENCE, changes, newest
from deltaworks.streams.commit_rows import Spool, partitions_condition
from tests.streams.tables import SCHEMA, batch, ids, opened, rows, table

PLACED = pa.schema([("id", pa.int64()), ("c", pa.string())])


def placed(**partitions: list[int]) -> pa.Table:
    found = [{"id": i, "c": c} for c, listed in partitions.items() for i in listed]
    return pa.Table.from_pylist(found, PLACED)


def test_an_epoch_replaces_the_partitions_it_has_rows_for(tmp_path: Path) -> None:
    made: dict[str, Any] = {"schema": PLACED, "partition_by": ("c",)}
    with opened(tmp_path, mode="overwrite_partitions", **made) as sink:
        sink.write(placed(nl=[1, 2], de=[3]))
        sink.commit_epoch(1)
        sink.write(placed(nl=[9], fr=[4]))
        assert sink.commit_epoch(2).version == 2
        sink.write(placed(de=[]))
        assert sink.commit_epoch(3).version == 3
        sink.write(placed(nl=[7]))
        assert sink.commit_epoch(2).skipped
    assert {(row["id"], row["c"]) for row in rows(tmp_path)} == {(9, "nl"), (3, "de"), (4, "fr")}
    with opened(tmp_path, mode="overwrite_partitions") as sink:
        assert sink.last_committed_epoch == 3


def test_an_upsert_keeps_the_last_row_of_each_key(tmp_path: Path) -> None:
    with opened(tmp_path, mode="upsert", keys=["id"]) as sink:
        sink.write(batch(1, 2, s="a"))
        sink.write(batch(2, s="b"))
        first = sink.commit_epoch(1)
        sink.write(batch(2, 3, s="c"))
        second = sink.commit_epoch(2)
        assert (first.rows_updated, second.rows_updated, second.version) == (0, 1, 2)
    assert [(row["id"], row["s"]) for row in rows(tmp_path)] == [(1, "a"), (2, "c"), (3, "c")]


def test_names_that_need_quotes_are_quoted(tmp_path: Path) -> None:
    schema = pa.schema([("Order No", pa.int64()), ('a"b', pa.string()), ("select", pa.string())])
    data = {"Order No": [1], 'a"b': ["x"], "select": ["y"]}
    with opened(tmp_path, schema=schema, mode="upsert", keys=["Order No"]) as sink:
        for n in (1, 2):
            sink.write(pa.table(data, schema=schema))
            sink.commit_epoch(n)
    assert rows(tmp_path) == pa.table(data).to_pylist()


def test_a_row_from_the_past_changes_nothing(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.int64())])
    options: dict[str, Any] = {"mode": "upsert", "keys": ["id"], "sequence_by": "at"}
    with opened(tmp_path, schema=schema, **options) as sink:
        sink.write(pa.table({"id": [1, 1, 2], "at": [20, 10, 5]}))
        sink.commit_epoch(1)
        sink.write(pa.table({"id": [1, 2], "at": [15, 6]}))
        assert sink.commit_epoch(2).rows_updated == 1
    assert rows(tmp_path) == [{"id": 1, "at": 20}, {"id": 2, "at": 6}]


def test_a_key_that_is_null_is_refused_at_once(tmp_path: Path) -> None:
    with (
        opened(tmp_path, mode="upsert", keys=["id"]) as sink,
        pytest.raises(BatchKeyError, match='key "id" is NULL in 1 of 2 rows'),
    ):
        sink.write(pa.table({"id": [1, None], "s": ["a", "b"]}))


def test_an_epoch_that_changes_nothing_still_lands(tmp_path: Path) -> None:
    with opened(tmp_path, mode="changelog", keys=["id"], op_column="op") as sink:
        sink.write(pa.table({"id": [5], "s": ["x"], "op": ["d"]}))
        done = sink.commit_epoch(1)
        assert (done.version, done.rows_deleted) == (1, 0)
    with opened(tmp_path, mode="changelog", keys=["id"], op_column="op") as sink:
        assert sink.last_committed_epoch == 1


def test_a_changelog_applies_the_newest_change_of_each_key(tmp_path: Path) -> None:
    def changed(*records: tuple[int, str, str]) -> pa.Table:
        names = ("id", "s", "op")
        return pa.Table.from_pylist([dict(zip(names, one, strict=True)) for one in records])

    with opened(tmp_path, mode="changelog", keys=["id"], op_column="op") as sink:
        sink.write(changed((1, "a", "insert"), (2, "a", "I"), (3, "a", "c")))
        sink.commit_epoch(1)
        sink.write(changed((1, "b", "update"), (1, "old", "update_preimage"), (2, "", "DELETE")))
        sink.write(changed((4, "n", "r"), (4, "", "d"), (3, "", "d"), (3, "again", "c")))
        done = sink.commit_epoch(2)
        assert (done.rows_updated, done.rows_deleted, done.version) == (2, 1, 2)
    assert [(row["id"], row["s"]) for row in rows(tmp_path)] == [(1, "b"), (3, "again")]


ROW = pa.struct([("id", pa.int64()), ("s", pa.string())])


def envelope(*records: tuple[str, Any, Any, int]) -> pa.Table:
    schema = pa.schema(
        [("op", pa.string()), ("before", ROW), ("after", ROW), ("ts_ms", pa.int64())]
    )
    names = ("op", "before", "after", "ts_ms")
    return pa.Table.from_pylist([dict(zip(names, one, strict=True)) for one in records], schema)


def test_debezium_envelopes_are_opened_and_ordered(tmp_path: Path) -> None:
    options: dict[str, Any] = {"mode": "changelog", "keys": ["id"], "sequence_by": "ts_ms"}
    one, two = {"id": 1, "s": "a"}, {"id": 1, "s": "b"}
    with opened(tmp_path, **options) as sink:
        sink.write(envelope(("u", one, two, 20), ("c", None, one, 10), ("c", None, {"id": 2}, 1)))
        sink.commit_epoch(1)
        assert rows(tmp_path) == [{"id": 1, "s": "b"}, {"id": 2, "s": None}]
        gone = envelope(("d", two, None, 30))
        sink.write(gone.set_column(2, "after", pa.array([None], ROW)))
        sink.commit_epoch(2)
    assert ids(tmp_path) == [2]


def test_an_envelope_may_lack_what_was_before() -> None:
    rows_ = envelope(("c", None, {"id": 1, "s": "a"}, 1))
    blank = rows_.set_column(1, "before", pa.nulls(1))
    opened_up = changes(blank, op_column="", sequence_by="ts_ms").to_pylist()
    assert opened_up == [{"id": 1, "s": "a", GONE: False, SEQUENCE: 1}]


@pytest.mark.parametrize(
    ("table_", "error", "message"),
    [
        (pa.table({"id": [1], "s": ["a"], "op": ["x"]}), InputError, "says 'x'"),
        (pa.table({"id": [1], "s": ["a"]}), SchemaMismatch, 'lack "op"'),
    ],
)
def test_a_record_that_cannot_be_understood_is_refused(
    tmp_path: Path, table_: pa.Table, error: type[Exception], message: str
) -> None:
    with (
        opened(tmp_path, mode="changelog", keys=["id"], op_column="op") as sink,
        pytest.raises(error, match=message),
    ):
        sink.write(table_)


def test_rows_that_are_no_change_records_are_refused(tmp_path: Path) -> None:
    with (
        opened(tmp_path, mode="changelog", keys=["id"]) as sink,
        pytest.raises(SchemaMismatch, match="no change records"),
    ):
        sink.write(batch(1))


def test_a_merge_that_meets_a_faster_writer_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = EpochTable.merge
    words: dict[str, Any] = {"mode": "upsert", "keys": ["id"], "limits": Limits(retry_seconds=30)}
    with opened(tmp_path, **words) as sink, opened(tmp_path, "other") as other:

        def overtaken(self: EpochTable, *arguments: Any) -> Any:
            monkeypatch.setattr(EpochTable, "merge", merge)
            other.write(batch(1, s="theirs"))
            other.commit_epoch(1)
            return merge(self, *arguments)

        monkeypatch.setattr(EpochTable, "merge", overtaken)
        sink.write(batch(1, 2, s="ours"))
        done = sink.commit_epoch(1)
        assert (done.version, done.rows_updated) == (2, 1)
    assert [(row["id"], row["s"]) for row in rows(tmp_path)] == [(1, "ours"), (2, "ours")]


def test_a_compaction_at_the_same_time_neither_doubles_nor_loses_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = EpochTable.replace
    made: dict[str, Any] = {"schema": PLACED, "partition_by": ("c",)}
    with opened(tmp_path, **made) as sink:
        for n in range(3):
            sink.write(placed(nl=[n]))
            sink.commit_epoch(n)

    def overtaken(self: EpochTable, *arguments: Any) -> int:
        monkeypatch.setattr(EpochTable, "replace", replace)
        table(tmp_path).optimize.compact()
        return replace(self, *arguments)

    monkeypatch.setattr(EpochTable, "replace", overtaken)
    with opened(tmp_path, "r", mode="overwrite_partitions") as sink:
        sink.write(placed(nl=[9]))
        sink.commit_epoch(1)
    assert ids(tmp_path) == [9]


@pytest.mark.parametrize("place", ["nl", "it's", "it''s"])
def test_what_another_writer_put_into_a_partition_meanwhile_is_not_passed_over(
    tmp_path: Path, place: str
) -> None:
    """delta-rs judges by the text of the condition, and misreads one with two quotes in it."""
    with opened(tmp_path, schema=PLACED, partition_by=("c",)) as sink:
        sink.write(placed(de=[1]))
        sink.commit_epoch(1)
    seen = EpochTable(TableLocation(f"{tmp_path}/t", {}), table(tmp_path))
    write_deltalake(f"{tmp_path}/t", placed(**{place: [2]}), mode="append")
    ours = placed(**{place: [3]})
    with pytest.raises(CommitConflict):
        seen.replace(ours, partitions_condition(ours, ["c"]), (), {})
    assert ids(tmp_path) == [1, 2]


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
@pytest.mark.parametrize("mode", ["append", "overwrite_partitions", "upsert", "changelog"])
def test_a_text_that_spark_would_read_as_null_makes_no_partition(
    tmp_path: Path, mode: str, text: str
) -> None:
    words: dict[str, Any] = {"keys": ["id"]} if mode in ("upsert", "changelog") else {}
    data = placed(**{text: [1]})
    if mode == "changelog":
        words["op_column"], data = "op", data.append_column("op", pa.array(["c"]))
    with (
        opened(tmp_path, schema=PLACED, partition_by=("c",), mode=mode, **words) as sink,
        pytest.raises(InputError, match=r'partition column "c" has .*keep as NULL'),
    ):
        sink.write(data)


CHANGE = st.tuples(st.integers(0, 4), st.sampled_from("abc"), st.sampled_from("cud"))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(epochs=st.lists(st.lists(CHANGE, max_size=6), min_size=1, max_size=4))
def test_a_changelog_ends_where_a_dictionary_ends(
    tmp_path_factory: pytest.TempPathFactory, epochs: list[list[tuple[int, str, str]]]
) -> None:
    folder = tmp_path_factory.mktemp("changes")
    model: dict[int, str] = {}
    schema = SCHEMA.append(pa.field("op", pa.string()))
    with opened(folder, mode="changelog", keys=["id"], op_column="op") as sink:
        for n, records in enumerate(epochs):
            for key, value, op in records:
                model.pop(key, None) if op == "d" else model.update({key: value})
            listed = [{"id": key, "s": value, "op": op} for key, value, op in records]
            sink.write(pa.Table.from_pylist(listed, schema))
            sink.commit_epoch(n)
    assert {row["id"]: row["s"] for row in rows(folder)} == model
    assert DeltaTable(f"{folder}/t").version() == len(epochs)


def test_of_equal_places_in_time_the_later_arrival_wins() -> None:
    found = newest(
        pa.table({"k": [1, 1, 1, 2], "at": [5, 7, 7, None], "v": ["a", "b", "c", "d"]}),
        ["k"],
        sequence="at",
    )
    assert sorted(found.column("v").to_pylist()) == ["c", "d"]


def test_the_spool_of_a_crash_is_removed_and_that_of_a_living_process_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for pid in (gone.pid, os.getpid()):
        (tmp_path / f"deltaworks-spool-k.{pid}.0123").mkdir()
    Spool("k").close()
    assert [path.name for path in tmp_path.iterdir()] == [f"deltaworks-spool-k.{os.getpid()}.0123"]
