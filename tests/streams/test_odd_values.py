"""Rows that other programs hand over, of any type and with any bytes: taken, or refused (S5)."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.errors import ConfigError, InputError, SchemaMismatch, UnsupportedOperation
from tests.streams.tables import opened, rows

NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
)
NEGATIVE = pa.array([Decimal(100)], pa.decimal128(5, -2))
SECONDS = pa.array([{"at": 1_577_836_800}], pa.struct([("at", pa.timestamp("s"))]))
REPEATED = pa.StructArray.from_arrays([pa.array(["x"]).dictionary_encode()], ["word"])


@pytest.mark.parametrize("how", [{}, {"mode": "upsert", "keys": ["s"]}])
@pytest.mark.parametrize("text", [NOT_UTF8, pa.StructArray.from_arrays([NOT_UTF8], ["t"])])
def test_text_that_is_not_utf8_is_refused_before_delta_rs_sees_it(
    tmp_path: Path, how: dict[str, Any], text: pa.Array
) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("s", pa.string()), ("deep", pa.struct([("t", pa.string())]))]
    )
    deep = pa.types.is_struct(text.type)
    batch = {"id": [1], "s": ["x"], "deep": text} if deep else {"id": [1], "s": text}
    with opened(tmp_path, schema=schema, **how) as sink:
        with pytest.raises(InputError, match="not UTF-8"):
            sink.write(pa.table(batch))
        sink.write(pa.table({"id": [2], "s": ["fine"]}))
        sink.commit_epoch(1)
    assert [row["id"] for row in rows(tmp_path)] == [2]


@pytest.mark.parametrize(
    "column", [NEGATIVE, pa.array([{}], pa.struct([])), pa.nulls(1), pa.array([[None]])]
)
def test_a_new_column_of_a_type_that_delta_lacks_is_refused_and_the_stream_goes_on(
    tmp_path: Path, column: pa.Array
) -> None:
    with opened(tmp_path, evolution="add_columns") as sink:
        with pytest.raises(SchemaMismatch, match="type"):
            sink.write(pa.table({"id": [1], "s": ["x"], "new": column}))
        sink.write(pa.table({"id": [1], "s": pa.nulls(1)}))
        sink.commit_epoch(1)
    assert rows(tmp_path) == [{"id": 1, "s": None}]


@pytest.mark.parametrize("column", [SECONDS, REPEATED])
def test_a_new_column_is_kept_as_delta_has_it_at_any_depth(
    tmp_path: Path, column: pa.Array
) -> None:
    with opened(tmp_path, evolution="add_columns") as sink:
        sink.write(pa.table({"id": [1], "s": ["x"], "new": column}))
        sink.commit_epoch(1)
    assert rows(tmp_path)[0]["new"] == column.to_pylist()[0]


@pytest.mark.parametrize(
    ("schema", "partition_by", "kind"),
    [
        (pa.schema([]), (), SchemaMismatch),
        (pa.schema([("a", pa.null())]), (), SchemaMismatch),
        (pa.schema([("a", pa.decimal128(5, -2))]), (), SchemaMismatch),
        (pa.schema([("a", pa.float64())]), ("a",), UnsupportedOperation),
        (pa.schema([("a", pa.int64())]), ("b",), ConfigError),
    ],
)
def test_a_table_that_a_stream_could_not_write_is_not_made(
    tmp_path: Path, schema: pa.Schema, partition_by: tuple[str, ...], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        opened(tmp_path / "t", schema=schema, partition_by=partition_by)
    assert not DeltaTable.is_deltatable(str(tmp_path / "t"))


@pytest.mark.parametrize("kind", [pa.struct([("a", pa.int8())]), pa.list_(pa.int8())])
def test_keys_that_cannot_be_compared_are_refused_at_once(
    tmp_path: Path, kind: pa.DataType
) -> None:
    with pytest.raises(ConfigError, match="cannot be compared"):
        opened(tmp_path, schema=pa.schema([("k", kind)]), mode="upsert", keys=["k"])


def test_a_text_that_no_folder_can_be_named_after_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    how: dict[str, Any] = {"mode": "overwrite_partitions", "partition_by": ("p",)}
    with opened(tmp_path, schema=schema, **how) as sink:
        with pytest.raises(InputError, match="too long"):
            sink.write(pa.table({"id": [1], "p": ["ä" * 50]}))
        sink.write(pa.table({"id": [1, 2], "p": ["ä" * 40, None]}))
        sink.commit_epoch(1)
    assert len(rows(tmp_path)) == 2


@pytest.mark.parametrize(
    ("kind", "key", "said"),
    [
        (pa.decimal128(18, 3), Decimal("123456789012345.679"), "123456789012345.67"),
        (pa.decimal128(38, 0), Decimal(12345678901234567891), "12345678901234567000"),
        (pa.float64(), 0.1 + 0.2, "0.3"),
        (pa.timestamp("us", "UTC"), 1577836800123999, '"2020-01-01T00:00:00.123Z"'),
    ],
)
def test_a_key_is_found_where_others_rounded_their_statistics(
    tmp_path: Path, kind: pa.DataType, key: Any, said: str
) -> None:
    def batch(text: str) -> pa.Table:
        return pa.table({"k": pa.array([key], kind), "s": [text]})

    write_deltalake(str(tmp_path / "t"), batch("old"))
    first = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    ends = f'"minValues": {{"k": {said}}}, "maxValues": {{"k": {said}}}'
    for add in (action["add"] for action in actions if "add" in action):
        add["stats"] = f'{{"numRecords": 1, {ends}, "nullCount": {{"k": 0}}}}'
    first.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    with opened(tmp_path, mode="upsert", keys=["k"]) as sink:
        sink.write(batch("new"))
        sink.commit_epoch(1)
    assert [row["s"] for row in rows(tmp_path)] == ["new"]


@pytest.mark.parametrize("word", ["D", "delete", "DELETE"])
def test_an_envelope_says_that_a_row_goes_in_any_word_for_it(tmp_path: Path, word: str) -> None:
    row = pa.struct([("id", pa.int64()), ("s", pa.string())])

    def record(op: str, before: Any, after: Any) -> pa.Table:
        return pa.table(
            {"before": pa.array([before], row), "after": pa.array([after], row), "op": [op]}
        )

    with opened(tmp_path, mode="changelog", keys=["id"]) as sink:
        sink.write(record("c", None, {"id": 1, "s": "x"}))
        sink.commit_epoch(1)
        sink.write(record(word, {"id": 1, "s": "x"}, None))
        sink.commit_epoch(2)
    assert rows(tmp_path) == []


def test_a_word_for_what_happened_that_is_no_word_is_refused(tmp_path: Path) -> None:
    row = pa.array([{"id": 1, "s": "x"}])
    with opened(tmp_path, mode="changelog", keys=["id"]) as sink, pytest.raises(InputError):
        sink.write(pa.table({"before": row, "after": row, "op": [4]}))
