"""Batches that delta-rs commits: what a merge by key does, against a model in plain Python."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltaworks.engines.deltars.schemas import arrow_table, delta_schema
from deltaworks.engines.deltars.write.batches import (
    GONE,
    BatchTable,
    Change,
    KeyedChange,
    create_table,
)
from deltaworks.engines.deltars.write.epoch_table import EpochTable, TableLocation
from deltaworks.engines.deltars.write.spark_parity import column_problem, key_problem
from deltaworks.engines.deltars.write.write_support import refuse_unwritable
from deltaworks.errors import CommitConflict, UnsupportedOperation
from deltaworks.model.commit import Txn
from deltaworks.model.schema import Schema
from deltaworks.model.write import Stamp

KINDS = {
    "number": pa.int64(),
    "text": pa.string(),
    "day": pa.date32(),
    "price": pa.decimal128(9, 2),
}
KEYS: dict[str, Any] = {
    "number": st.integers(-3, 3),
    "text": st.sampled_from(["", "a", "it's", "ß", "\U0001f600", 'say "x"', "a" * 70]),
    "day": st.sampled_from([date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
    "price": st.sampled_from([Decimal("-1.10"), Decimal("0.00"), Decimal("1.10")]),
}
VALUES = st.sampled_from([None, 0.0, 1.5, float("nan"), float("-inf")])


def batches(kind: str) -> Any:
    row = st.tuples(KEYS[kind], st.sampled_from([None, "x", "y"]), VALUES, st.booleans())
    return st.lists(row, min_size=1, max_size=6, unique_by=lambda one: one[0])


def stamp(n: int) -> Stamp:
    return Stamp(txn=Txn("writer", n), user_metadata=f'{{"batch": {n}}}')


def table(rows: list[tuple[Any, ...]], kind: str, *, flags: bool = False) -> pa.Table:
    keys, names, values, gone = zip(*rows, strict=True)
    columns = {
        "k": pa.array(keys, KINDS[kind]),
        "Name": pa.array(names, pa.string()),
        "v": pa.array(values, pa.float64()),
    }
    return pa.table({**columns, GONE: pa.array(gone)} if flags else columns)


def stands(place: str) -> dict[Any, str]:
    query = QueryBuilder().register("t", DeltaTable(place)).execute("SELECT * FROM t")
    rows = arrow_table(query).to_pylist()
    found = {row["k"]: repr((row["Name"], row["v"])) for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_merge_does_what_the_model_does(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    first, second = data.draw(batches(kind)), data.draw(batches(kind))
    deletes = data.draw(st.booleans())
    place = str(tmp_path_factory.mktemp("merge") / "t")
    create_table(place, table(first, kind), stamp(1), partition_by=())
    change = KeyedChange(
        keys=("k",),
        updated=("Name", "v"),
        compared=("Name", "v"),
        inserted=("k", "Name", "v"),
        deletes=deletes,
    )
    done = BatchTable(place).merge(table(second, kind, flags=deletes), change, stamp(2))
    model = {key: repr((name, value)) for key, name, value, _ in first}
    expected = {"inserted": 0, "updated": 0, "deleted": 0, "ignored": 0}
    for key, name, value, gone in second:
        new = repr((name, value))
        if deletes and gone:
            expected["deleted" if key in model else "ignored"] += 1
            model.pop(key, None)
        elif key not in model or model[key] != new:
            expected["updated" if key in model else "inserted"] += 1
            model[key] = new
    moved = expected["inserted"] + expected["updated"] + expected["deleted"]
    counted = replace(done, files=None)
    assert counted == Change(version=1 if moved else None, rows=len(second), **expected)  # type: ignore[arg-type]
    assert stands(place) == model
    assert DeltaTable(place).transaction_version("writer") == (2 if moved else 1)


def test_only_files_that_may_hold_a_key_are_touched(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    create_table(place, table([(1, "x", 1.0, False)], "number"), stamp(1), partition_by=())
    BatchTable(place).add(table([(9, "x", 1.0, False)], "number"), stamp(2))
    adds = arrow_table(DeltaTable(place).get_add_actions(flatten=True)).to_pylist()
    sizes = {add["max.k"]: add["size_bytes"] for add in adds}
    found = BatchTable(place)
    for key, expected in ((9, sizes[9]), (5, 0), (0, 0), (1, sizes[1])):
        assert found.touched_bytes(table([(key, "y", 1.0, False)], "number"), ["k"]) == expected
    other = table([(9, "y", 1.0, False)], "number")
    assert found.touched_bytes(other, ["v"]) == sum(sizes.values())  # no statistics of it


def test_a_table_gets_its_checkpoints(tmp_path: Path) -> None:
    place = tmp_path / "t"
    create_table(str(place), table([(0, "x", 1.0, False)], "number"), stamp(0), partition_by=())
    for n in range(1, 11):
        BatchTable(str(place)).add(table([(n, "x", 1.0, False)], "number"), stamp(n))
    assert (place / "_delta_log" / f"{10:020d}.checkpoint.parquet").exists()


def test_commits_carry_the_batch(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    create_table(place, table([(1, "x", 1.0, False)], "number"), stamp(7), partition_by=["Name"])
    assert DeltaTable(place).transaction_version("writer") == 7
    assert DeltaTable(place).history()[0]["userMetadata"] == '{"batch": 7}'
    assert DeltaTable(place).version() == 0
    found = BatchTable(place)
    for n in (6, 7):
        with pytest.raises(CommitConflict, match="another run landed batch 7"):
            found.refuse_landed(stamp(n))
    found.refuse_landed(stamp(8))


def test_rows_without_some_of_the_columns_are_added_with_null_there(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    create_table(place, table([(1, "x", 1.0, False)], "number"), stamp(1), partition_by=["Name"])
    few = pa.table({"v": pa.array([2], pa.int32()), "k": pa.array([2], pa.int32())})
    assert BatchTable(place).add(few, stamp(2)).inserted == 1
    assert stands(place) == {1: repr(("x", 1.0)), 2: repr((None, 2.0))}


def test_doubtful_statistics_are_left_out(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    rows = table([(1, "x", 1.0, False)], "number").append_column(
        "d", pa.array([Decimal("123456789012345678.99")], pa.decimal128(20, 2))
    )
    create_table(place, rows, stamp(1), partition_by=())
    adds = arrow_table(DeltaTable(place).get_add_actions(flatten=True))
    assert {"min.k", "max.Name"} <= set(adds.column_names)
    for name in ("min.v", "max.d"):
        assert name not in adds.column_names or adds.column(name).to_pylist() == [None]


@pytest.mark.parametrize(
    ("properties", "merges", "reason"),
    [
        ({"delta.enableChangeDataFeed": "true"}, True, "ChangeDataFeed"),
        ({"delta.enableChangeDataFeed": "true"}, False, ""),
        ({"delta.appendOnly": "true"}, True, "appendOnly"),
        ({"delta.enableChangeDataFeed": "True"}, True, "ChangeDataFeed"),
        ({"delta.appendOnly": "TRUE"}, True, "appendOnly"),
        ({"delta.setTransactionRetentionDuration": "interval 1 days"}, False, "Retention"),
    ],
)
def test_tables_that_are_not_for_delta_rs_are_known(
    tmp_path: Path, properties: dict[str, str], merges: bool, reason: str
) -> None:
    table_with(tmp_path, properties)
    problem = BatchTable(str(tmp_path)).problem(merges=merges)
    assert reason in problem
    assert bool(problem) == bool(reason)


def table_with(place: Path, properties: dict[str, str]) -> DeltaTable:
    """A table with properties that another engine set, and spelled as it liked."""
    DeltaTable.create(str(place), pa.schema([("k", pa.int64())]))
    commit = place / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] = properties
    commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    return DeltaTable(str(place))


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"delta.appendOnly": "True"}, "append-only"),
        ({"delta.enableChangeDataFeed": "True"}, '"True", which delta-rs does not read'),
    ],
)
def test_a_stream_does_not_change_rows_against_a_flag_in_capitals(
    tmp_path: Path, properties: dict[str, str], reason: str
) -> None:
    found = table_with(tmp_path, properties)
    with pytest.raises(UnsupportedOperation, match=reason):
        refuse_unwritable(found, label="t", only_adds=False)
    refuse_unwritable(found, label="t", only_adds=True)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (pa.decimal128(10, 2), Decimal("7.25")),
        (pa.timestamp("us", "UTC"), datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)),
        (pa.string(), "''"),
        (pa.string(), "\\'"),
        (pa.int64(), 7),
    ],
)
def test_of_two_writers_that_insert_one_key_the_later_is_told(
    tmp_path: Path, kind: pa.DataType, key: object
) -> None:
    """delta-rs itself misreads its own text of such keys, and would let both insert it."""

    def row(name: str) -> pa.Table:
        return pa.table({"k": pa.array([key], kind), "Name": [name]})

    place = str(tmp_path / "t")
    create_table(place, row("first").slice(0, 0), stamp(1), partition_by=())
    late = BatchTable(place)
    BatchTable(place).add(row("another"), stamp(2))
    names = ("k", "Name")
    change = KeyedChange(keys=("k",), updated=("Name",), compared=("Name",), inserted=names)
    with pytest.raises(CommitConflict):
        late.merge(row("late"), change, stamp(3))
    done = BatchTable(place).merge(row("late"), change, stamp(3))
    assert (done.inserted, done.updated) == (0, 1)


@pytest.mark.parametrize(
    ("kept", "is_forgotten"), [("interval 30 days", True), ("INTERVAL 365 DAYS", False)]
)
def test_a_checkpoint_forgets_no_commit_that_the_table_keeps(
    tmp_path: Path, kept: str, is_forgotten: bool
) -> None:
    table_with(tmp_path, {"delta.logRetentionDuration": kept})
    first = tmp_path / "_delta_log" / f"{0:020d}.json"
    BatchTable(str(tmp_path)).add(pa.table({"k": [1]}), stamp(1))
    long_ago = time.time() - timedelta(days=40).total_seconds()
    os.utime(first, (long_ago, long_ago))
    place = TableLocation(str(tmp_path), {})
    EpochTable(place, place.open()).checkpoint()
    assert first.exists() is not is_forgotten


def test_a_column_that_must_not_be_null_is_for_spark(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False)])
    DeltaTable.create(str(tmp_path), schema)
    assert "NULL" in BatchTable(str(tmp_path)).problem(merges=True)


def test_types_are_judged_by_name() -> None:
    nested = delta_schema(pa.schema([("s", pa.struct([("a", pa.string())]))]))
    assert "type" in column_problem(nested)
    simple = delta_schema(pa.schema([("a", pa.float64()), ("b", pa.string())]))
    assert column_problem(simple) == ""
    assert "compare" in key_problem(simple, ["A"])
    assert key_problem(simple, ["B"]) == ""
    noted = simple.document.replace('"metadata":{}', '"metadata":{"comment":"x"}')
    assert column_problem(Schema.from_json(noted)) == ""
    assert "note" in column_problem(Schema.from_json(noted), new=True)
