"""Which tables a stream opens or makes, and which batches it takes (S1, S5)."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from deltaworks.errors import (
    ConfigError,
    ConstraintViolated,
    DeltaworksError,
    InputError,
    SchemaMismatch,
    TableNotFound,
    UnsupportedOperation,
)
from deltaworks.model.table_ref import TableRef
from deltaworks.streams.epochs import table_epochs
from tests.streams.tables import SCHEMA, batch, ids, opened, own_files, rows, table


def test_a_table_that_is_not_there_is_made_as_asked(tmp_path: Path) -> None:
    properties = {"delta.appendOnly": "true", "team": "shop"}
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    opened(tmp_path, schema=schema, partition_by=("day",), properties=properties).close()
    metadata = table(tmp_path).metadata()
    assert metadata.partition_columns == ["day"]
    assert metadata.configuration == properties


def test_without_a_schema_no_table_is_made(tmp_path: Path) -> None:
    with pytest.raises(TableNotFound, match="not a Delta table"):
        opened(tmp_path, schema=None)


@pytest.mark.parametrize(
    ("rows", "fields"),
    [
        (pa.table({"id": [1], "s": ["a"], "extra": [1]}), ["extra"]),
        (pa.table({"id": ["one"], "s": ["a"]}), ["id"]),
        (pa.table({"id": [1.5], "s": [3]}), ["id", "s"]),
    ],
)
def test_a_batch_that_does_not_fit_is_refused_naming_the_fields(
    tmp_path: Path, rows: pa.Table, fields: list[str]
) -> None:
    with opened(tmp_path) as sink:
        with pytest.raises(SchemaMismatch) as caught:
            sink.write(rows)
        assert caught.value.context["fields"] == fields
        assert all(f'"{name}"' in str(caught.value) for name in fields)
        sink.write(batch(1))
        assert sink.commit_epoch(1).rows == 1


def test_rows_are_fitted_by_name_with_smaller_types_and_missing_columns(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.write(pa.table({"S": ["a"], "ID": pa.array([1], pa.int16())}))
        sink.write(pa.table({"id": [2]}))
        sink.commit_epoch(1)
    assert rows(tmp_path) == [{"id": 1, "s": "a"}, {"id": 2, "s": None}]


def test_rows_of_any_arrow_library_are_taken_and_others_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.write(table(tmp_path).scan())  # an Arrow stream of delta-rs' own kind
        with pytest.raises(InputError, match="not as list"):
            sink.write([{"id": 1}])
        lists = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.duration("s")))]))
        for kind in (pa.duration("s"), pa.uint64(), lists):
            with pytest.raises(SchemaMismatch, match='no type for "id"'):
                sink.write(pa.table({"id": pa.array([None], kind)}))
        words = pa.array(["a", "a"]).dictionary_encode()
        sink.write(pa.table({"id": pa.array([None, 1], pa.int64()), "s": words}))
        assert sink.commit_epoch(1).rows == 2


def test_a_required_column_must_be_there_and_full(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())])
    with opened(tmp_path, schema=schema) as sink:
        with pytest.raises(SchemaMismatch, match='"id"'):
            sink.write(pa.table({"s": ["a"]}))
        with pytest.raises(ConstraintViolated, match="may not be NULL"):
            sink.write(pa.table({"id": pa.array([None], pa.int64()), "s": ["a"]}))


def test_a_value_that_would_lose_digits_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC"))])
    with opened(tmp_path, schema=schema) as sink:
        nanos = pa.array([1], pa.timestamp("ns", tz="UTC"))
        with pytest.raises(SchemaMismatch, match='"at" does not fit'):
            sink.write(pa.table({"at": nanos}))
        sink.write(pa.table({"at": pa.array([1000], pa.timestamp("ns", tz="Europe/Amsterdam"))}))
        sink.commit_epoch(1)
    assert rows(tmp_path)[0]["at"].microsecond == 1


@pytest.mark.parametrize(
    "name",
    [
        "delta.enableRowTracking",
        "delta.enableInCommitTimestamps",
        "delta.enableDeletionVectors",
        "delta.columnMapping.mode",
        "delta.setTransactionRetentionDuration",
    ],
)
def test_a_property_that_would_lock_delta_rs_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsupportedOperation, match=name):
        opened(tmp_path, properties={name: "true"})
    assert not DeltaTable.is_deltatable(f"{tmp_path}/t")


def constrained(path: str) -> None:
    DeltaTable.create(path, SCHEMA).alter.add_constraint({"positive": "id > 0"})


def deletion_vectors(path: str) -> None:
    DeltaTable.create(path, SCHEMA, configuration={"delta.enableDeletionVectors": "true"})


def column_mapped(path: str) -> None:
    DeltaTable.create(path, SCHEMA)
    log = Path(path, "_delta_log", f"{0:020d}.json")
    text = log.read_text(encoding="utf-8")
    mapped = text.replace(
        '"configuration":{}', '"configuration":{"delta.columnMapping.mode":"name"}'
    )
    log.write_text(mapped, encoding="utf-8")


def forgetful(path: str) -> None:
    settings = {"delta.setTransactionRetentionDuration": "interval 1 day"}
    DeltaTable.create(path, SCHEMA, configuration=settings)


def generated(path: str) -> None:
    note = {"delta.generationExpression": "id + 1"}
    plain = Field("id", PrimitiveType("long"))
    from deltalake import Schema
    from deltalake.schema import StructType

    inner = StructType([Field("x", PrimitiveType("long"), metadata={"delta.invariants": "{}"})])
    fields = [plain, Field("n", inner), Field("g", PrimitiveType("long"), metadata=note)]
    DeltaTable.create(path, Schema(fields))
    log = Path(path, "_delta_log", f"{0:020d}.json")
    assert "delta.invariants" in log.read_text(encoding="utf-8")


def by_time(path: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
    DeltaTable.create(path, schema, partition_by=["at"])


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (constrained, "constraint positive"),
        (deletion_vectors, "deletionVectors"),
        (column_mapped, "column mapping"),
        (forgetful, "setTransactionRetentionDuration"),
        (generated, "a rule for column"),
        (by_time, 'partition column "at" of type timestamp'),
    ],
)
def test_a_table_that_delta_rs_would_damage_is_refused(
    tmp_path: Path, make: Any, what: str
) -> None:
    make(f"{tmp_path}/t")
    with pytest.raises(DeltaworksError, match=what) as caught:
        opened(tmp_path)
    assert isinstance(caught.value, UnsupportedOperation)
    assert "Spark can" in caught.value.hint


def test_an_append_only_table_takes_no_other_mode(tmp_path: Path) -> None:
    opened(tmp_path, properties={"delta.appendOnly": "true"}).close()
    with pytest.raises(UnsupportedOperation, match="append-only"):
        opened(tmp_path, mode="upsert", keys=["id"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "apend"}, 'no mode "apend"'),
        ({"mode": "upsert"}, "needs keys"),
        ({"keys": ["id"]}, "has no keys"),
        ({"op_column": "op"}, "op_column is for changelogs"),
        ({"mode": "upsert", "keys": ["idd"]}, 'no column "idd"'),
        ({"mode": "upsert", "keys": ["id"], "sequence_by": "x"}, 'no column "x"'),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        opened(tmp_path, **options)
    opened(tmp_path).close()  # and no lock was left behind


PARTITIONED = pa.schema([("id", pa.int64()), ("c", pa.string()), ("d", pa.date32())])


def placed(*values: tuple[int, str | None, date | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(("id", "c", "d"), value, strict=True)) for value in values], PARTITIONED
    )


def test_partitions_are_files_of_their_own_and_read_back_as_they_were(tmp_path: Path) -> None:
    written = placed(
        (1, "NL", date(2026, 1, 1)), (2, "a/b=c %'\"", date(2026, 1, 1)), (3, None, None)
    )
    with opened(tmp_path, schema=PARTITIONED, partition_by=("c", "d")) as sink:
        sink.write(written)
        assert sink.commit_epoch(1).files == 3
        with pytest.raises(InputError, match='"c" has an empty text'):
            sink.write(placed((4, "", None)))
    assert rows(tmp_path) == written.to_pylist()
    assert ids(tmp_path, "c = 'NL'") == [1]
    assert ids(tmp_path, "d IS NULL") == [3]
    assert ids(tmp_path, "c LIKE 'a/b%'") == [2]


@pytest.mark.parametrize(
    ("kind", "values"),
    [(pa.bool_(), [True, False, None]), (pa.int32(), [-1, 0, None]), (pa.string(), ["it's", "b"])],
)
def test_partitions_of_other_types(tmp_path: Path, kind: pa.DataType, values: list[Any]) -> None:
    schema = pa.schema([("id", pa.int64()), ("p", kind)])
    data = pa.table({"id": list(range(len(values))), "p": values}, schema=schema)
    with opened(tmp_path, schema=schema, partition_by=("p",)) as sink:
        sink.write(data)
        sink.commit_epoch(1)
    assert rows(tmp_path) == data.to_pylist()
    with opened(tmp_path, "other", mode="overwrite_partitions") as sink:
        sink.write(pa.table({"id": [9], "p": values[:1]}, schema=schema))
        sink.commit_epoch(1)
    assert [row["id"] for row in rows(tmp_path)] == [*range(1, len(values)), 9]


def test_values_with_breaks_of_lines_leave_the_log_readable(tmp_path: Path) -> None:
    texts = ["a\u2028b", "c\x85d", "e\nf", "g\x0bh"]
    data = pa.table({"id": [1, 2, 3, 4], "s": texts}, schema=SCHEMA)
    with opened(tmp_path, partition_by=("s",)) as sink, opened(tmp_path, "other") as other:
        for n in (1, 2):
            sink.write(data)
            sink.commit_epoch(n)
            other.write(data)
            other.commit_epoch(n)
    (tmp_path / "t" / "stream.w.0123.0.parquet").write_bytes(b"left")  # the log is read for it
    with opened(tmp_path, mode="overwrite_partitions") as sink:
        assert sink.last_committed_epoch == 2
        sink.write(data)
        sink.commit_epoch(3)
    assert [row["s"] for row in rows(tmp_path)] == sorted(texts, key=json.dumps)
    records = table_epochs(TableRef("t", f"{tmp_path}/t"))
    assert [(one.writer_id, one.epoch) for one in records][-1] == ("w", 3)


def test_what_a_crash_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        for n in range(3):
            sink.write(batch(n))
            sink.commit_epoch(n)
    folder = tmp_path / "t"
    for name in ("stream.w.0123.7.parquet", "stream.w-2.0123.7.parquet", "part-1.parquet"):
        (folder / name).write_bytes(b"left")
    compacted = table(tmp_path)
    compacted.optimize.compact()
    compacted.create_checkpoint()
    for version in range(4):
        (folder / "_delta_log" / f"{version:020d}.json").unlink()
    opened(tmp_path).close()
    assert "stream.w.0123.7.parquet" not in own_files(tmp_path)
    assert len(own_files(tmp_path)) == 3  # an older version may still be asked for
    assert (folder / "stream.w-2.0123.7.parquet").exists()
    assert (folder / "part-1.parquet").exists()
    assert ids(tmp_path) == [0, 1, 2]


def test_a_stream_goes_to_an_address_as_to_a_folder(tmp_path: Path) -> None:
    where = f"file://{tmp_path}"
    (tmp_path / "t").mkdir()
    with opened(where) as sink:
        sink.write(batch(1))
        sink.commit_epoch(1)
    (tmp_path / "t" / "stream.w.0123.7.parquet").write_bytes(b"left")
    with opened(where) as zombie:
        zombie.write(batch(2))
        (tmp_path / "t" / "stream.w.4567.7.parquet").write_bytes(b"left")
        with opened(where) as sink:  # no lock there: whoever comes later takes the name over
            assert own_files(tmp_path) == [f for f in own_files(tmp_path) if ".7." not in f]
            with pytest.raises(DeltaworksError, match="another process writes"):
                zombie.commit_epoch(2)
            sink.write(batch(2))
            sink.commit_epoch(2)
    assert ids(tmp_path) == [1, 2]


def test_a_foreign_writer_beside_the_stream_is_no_trouble(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.commit_epoch(1)
        write_deltalake(f"{tmp_path}/t", batch(7), mode="append")
        sink.write(batch(8))
        assert sink.commit_epoch(2).version == 3
    assert ids(tmp_path) == [7, 8]


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_table_grows_where_the_stream_is_told_so(tmp_path: Path, mode: str) -> None:
    keys = {"keys": ["id"]} if mode == "upsert" else {}
    words: dict[str, Any] = {"mode": mode, "evolution": "add_columns", **keys}
    at = pa.array([1000], pa.timestamp("ns", tz="UTC"))
    with opened(tmp_path, **words) as sink:
        sink.write(batch(1))
        sink.write(pa.table({"id": [2], "at": at, "n": [{"x": 1}]}))
        sink.commit_epoch(1)
        sink.write(batch(3))
        sink.commit_epoch(2)
        with pytest.raises(SchemaMismatch, match='"id"'):
            sink.write(pa.table({"id": ["text"], "more": [1]}))
        with pytest.raises(SchemaMismatch, match=r'"n\.x"'):
            sink.write(pa.table({"id": [4], "n": [{"x": "text", "y": 2}]}))
        table(tmp_path).alter.set_table_properties({"delta.appendOnly": "false"})
        with pytest.raises(DeltaworksError, match="columns or properties changed"):
            sink.write(pa.table({"id": [4], "late": [1]}))
    assert [(row["id"], row["n"]) for row in rows(tmp_path)] == [
        (1, None),
        (2, {"x": 1}),
        (3, None),
    ]
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 2


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.struct([("x", pa.int64())])),
        ("many", pa.list_(pa.struct([("x", pa.int64())]))),
        ("by", pa.map_(pa.string(), pa.struct([("x", pa.int64())]))),
    ]
)


def nested(number: int, **more: Any) -> pa.Table:
    one = {"x": number, **more}
    by = pa.array([[("k", one)]], pa.map_(pa.string(), pa.array([one]).type))
    return pa.table({"id": [number], "n": [one], "many": [[one]], "by": by})


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_table_grows_within_its_columns_too(tmp_path: Path, mode: str) -> None:
    keys = {"keys": ["id"]} if mode == "upsert" else {}
    words: dict[str, Any] = {"mode": mode, "evolution": "add_columns", **keys}
    with opened(tmp_path, schema=NESTED, **words) as sink:
        sink.write(nested(1))
        sink.write(nested(2, y="new", deep={"z": 1.5}))  # in the same epoch
        sink.commit_epoch(1)
        sink.write(nested(3))  # who does not know the new fields goes on
        sink.commit_epoch(2)
        before = {"x": 3, "y": None, "deep": None}
        after = {"x": 2, "y": "new", "deep": {"z": 1.5}}
    found = {row["id"]: row for row in rows(tmp_path)}
    assert found[2] == {"id": 2, "n": after, "many": [after], "by": [("k", after)]}
    assert found[3] == {"id": 3, "n": before, "many": [before], "by": [("k", before)]}
    assert found[1]["n"] == {**before, "x": 1}


def test_without_that_policy_a_new_field_within_a_column_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, schema=NESTED) as sink:
        with pytest.raises(SchemaMismatch, match=r'"n\.y"'):
            sink.write(nested(1, y=1))
        sink.write(pa.table({"id": [1], "n": pa.array([{}], pa.struct([]))}))
        sink.commit_epoch(1)
    assert rows(tmp_path)[0]["n"] == {"x": None}


@pytest.mark.parametrize("column", ["n", "many", "by"])
def test_a_field_within_a_column_that_is_spelt_otherwise_is_refused(
    tmp_path: Path, column: str
) -> None:
    values = {"n": [{"X": 1}], "many": [[{"X": 1}]], "by": [[("k", {"X": 1})]]}[column]
    inner = pa.struct([("X", pa.int64())])
    kinds = {"n": inner, "many": pa.list_(inner), "by": pa.map_(pa.string(), inner)}
    batch = pa.table({"id": [1], column: pa.array(values, kinds[column])})
    with (
        opened(tmp_path, schema=NESTED) as sink,
        pytest.raises(SchemaMismatch, match="spelt otherwise"),
    ):
        sink.write(batch)
