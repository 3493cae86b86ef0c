"""How a stream ends, and what stands in its way: failed commits, NULLs, growth, limits (S3, S7)."""

from __future__ import annotations

import asyncio
import math
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltaworks.engines.deltars.log.actions import DataFile
from deltaworks.engines.deltars.write.data_files import DataFolder
from deltaworks.engines.deltars.write.epoch_table import EpochTable
from deltaworks.errors import (
    CommitUnknown,
    ConstraintViolated,
    EngineError,
    GuardError,
    StorageError,
)
from deltaworks.model.epochs import Limits
from deltaworks.model.events import Event, Warned
from deltaworks.model.table_ref import TableRef
from deltaworks.storage.locks.file_lock import locked, table_lock
from deltaworks.streams.async_sink import AsyncEpochSink
from deltaworks.streams.opening import NewTable, StreamOptions, open_stream
from deltaworks.streams.rows import Fitting
from deltaworks.streams.sink import EpochSink
from tests.streams.tables import QUICK, SCHEMA, batch, ids, opened, own_files, rows, table


def told(folder: Path, heard: list[Event]) -> EpochSink[Any]:
    return open_stream(
        TableRef("t", f"{folder}/t"),
        StreamOptions(writer_id="w", limits=QUICK),
        new_table=NewTable(schema=SCHEMA),
        tell=heard.append,
    )


def warnings(heard: list[Event]) -> list[str]:
    return [event.message for event in heard if isinstance(event, Warned)]


def test_close_tells_of_the_rows_of_a_commit_that_failed(tmp_path: Path) -> None:
    heard: list[Event] = []
    sink = told(tmp_path, heard)
    sink.write(batch(1, 2, 3))
    table(tmp_path).alter.set_table_properties({"delta.logRetentionDuration": "interval 40 days"})
    with pytest.raises(GuardError, match="columns or properties changed"):
        sink.commit_epoch(1)
    sink.write(batch(4))
    assert sink.close() == 4
    assert warnings(heard) == [
        "4 rows were never committed and are given up, those of epoch 1 among them"
    ]
    assert ids(tmp_path) == []


def test_close_looks_whether_a_commit_of_unknown_outcome_landed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = EpochTable.append

    def torn(self: EpochTable, *arguments: Any) -> int:
        append(self, *arguments)
        raise EngineError("torn")

    def gone(_: EpochTable, version: int | None = None) -> EpochTable:
        raise StorageError(f"away {version}")

    heard: list[Event] = []
    sink = told(tmp_path, heard)
    sink.write(batch(1))
    with monkeypatch.context() as outage:
        outage.setattr(EpochTable, "append", torn)
        outage.setattr(EpochTable, "reopened", gone)
        with pytest.raises(CommitUnknown):
            sink.commit_epoch(1)
    assert sink.close() == 0
    assert warnings(heard) == []
    assert ids(tmp_path) == [1]


def test_close_keeps_the_files_of_a_commit_that_may_still_land(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def torn(*_: Any) -> int:
        raise EngineError("torn")

    sink = opened(tmp_path)
    sink.write(batch(1))
    with monkeypatch.context() as outage:
        outage.setattr(EpochTable, "append", torn)
        with pytest.raises(EngineError, match="torn"):
            sink.commit_epoch(1)
    assert sink.close() == 1
    assert len(own_files(tmp_path)) == 1
    opened(tmp_path).close()
    assert own_files(tmp_path) == []


ELEMENT = pa.field("element", pa.int64(), nullable=False)
VALUE = pa.field("value", pa.int64(), nullable=False)


@pytest.mark.parametrize(
    ("kind", "good", "bad", "path"),
    [
        (pa.list_(ELEMENT), [[1], None, []], [1, None], "c.element"),
        (pa.struct([ELEMENT]), [{"element": 1}, None], {"element": None}, "c.element"),
        (pa.map_(pa.string(), VALUE), [[("a", 1)], None], [("a", None)], "c.value"),
        (
            pa.list_(pa.struct([ELEMENT])),
            [[{"element": 1}], [None]],
            [{"element": None}],
            "c.element.element",
        ),
    ],
)
@pytest.mark.parametrize(
    "mode",
    [{"mode": "append"}, {"mode": "upsert", "keys": ["id"]}, {"mode": "overwrite_partitions"}],
)
def test_a_null_where_none_may_be_is_refused_and_stops_nothing(
    tmp_path: Path, kind: pa.DataType, good: list[Any], bad: Any, path: str, mode: dict[str, Any]
) -> None:
    schema = pa.schema([("id", pa.int64()), ("c", kind)])
    loose = pa.schema([("id", pa.int64()), ("c", free(kind))])
    partition_by = ("id",) if mode["mode"] == "overwrite_partitions" else ()
    with opened(tmp_path, schema=schema, partition_by=partition_by, **mode) as sink:
        for n, value in enumerate(good):
            sink.write(pa.Table.from_pylist([{"id": n, "c": value}], loose if n else schema))
        with pytest.raises(ConstraintViolated, match=f'"{path}" of ".*t" may not be NULL'):
            sink.write(pa.Table.from_pylist([{"id": 9, "c": bad}], loose))
        sink.commit_epoch(1)
    assert ids(tmp_path) == list(range(len(good)))


def free(kind: pa.DataType) -> pa.DataType:
    """A type that promises nothing about NULL."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, free(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, free(kind.item_type))
    return pa.list_(free(kind.value_type)) if pa.types.is_list(kind) else kind


def test_two_threads_that_bring_new_columns_lose_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One stops between the growth of the table and its own cast, while the other grows it too."""
    cast, first_grew, second_grew = Fitting._cast, threading.Event(), threading.Event()
    grow = EpochSink.grow

    def slow_grow(self: EpochSink[Any], columns: pa.Schema) -> Any:
        answer = grow(self, columns)
        if "x" in columns.names:
            first_grew.set()
            second_grew.wait(0.5)  # never comes as long as only one grows at a time
        else:
            second_grew.set()
        return answer

    def slow_cast(self: Fitting, batch_: pa.Table, *shape: Any) -> pa.Table:
        if "x" in batch_.column_names:
            second_grew.wait(2)
        return cast(self, batch_, *shape)

    monkeypatch.setattr(EpochSink, "grow", slow_grow)
    monkeypatch.setattr(Fitting, "_cast", slow_cast)
    with opened(tmp_path, schema=SCHEMA, evolution="add_columns") as sink:

        def second() -> None:
            first_grew.wait(5)
            sink.write(pa.table({"id": [2], "y": [22]}))

        thread = threading.Thread(target=second)
        thread.start()
        sink.write(pa.table({"id": [1], "x": [11]}))
        thread.join()
        sink.write(pa.table({"id": [3], "y": [33]}))
        sink.commit_epoch(1)
    found = {row["id"]: (row["x"], row["y"]) for row in rows(tmp_path)}
    assert found == {1: (11, None), 2: (None, 22), 3: (None, 33)}


def test_a_cancelled_write_takes_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go, write = threading.Event(), DataFolder.write

    def slow(self: DataFolder, *arguments: Any, **options: Any) -> DataFile:
        let_go.wait(10)
        return write(self, *arguments, **options)

    monkeypatch.setattr(DataFolder, "write", slow)

    async def work() -> None:
        limits = Limits(flush_bytes=1, buffer_bytes=10)
        async with AsyncEpochSink(opened(tmp_path, limits=limits)) as sink:
            await sink.write(batch(1))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(sink.write(batch(7)), 0.1)
            let_go.set()
            await sink.write(batch(7))
            await sink.commit_epoch(1)

    asyncio.run(work())
    assert ids(tmp_path) == [1, 7]


def test_the_loop_goes_on_while_the_table_gets_a_column(tmp_path: Path) -> None:
    async def work() -> None:
        async with AsyncEpochSink(opened(tmp_path, evolution="add_columns")) as sink:
            await sink.write(batch(1))
            await sink.commit_epoch(1)
            with locked([table_lock(f"{tmp_path}/t")], wait_seconds=0, notify=lambda _: None):
                growing = asyncio.create_task(sink.write(pa.table({"id": [2], "new": ["x"]})))
                for _ in range(10):
                    await asyncio.sleep(0.01)
                assert not growing.done()
            await growing
            await sink.commit_epoch(2)

    asyncio.run(work())
    assert [(row["id"], row["new"]) for row in rows(tmp_path)] == [(1, None), (2, "x")]


@pytest.mark.parametrize("width", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("mode", ["upsert", "changelog"])
def test_zeros_are_one_key_and_so_are_nans(tmp_path: Path, width: pa.DataType, mode: str) -> None:
    schema = pa.schema([("k", width), ("v", pa.string())])
    options: dict[str, Any] = {"mode": mode, "keys": ["k"]}
    if mode == "changelog":
        options["op_column"] = "op"

    def write(sink: EpochSink[Any], *listed: tuple[float, str]) -> None:
        keys, values = zip(*listed, strict=True)
        data = pa.table({"k": pa.array(keys, width), "v": list(values)})
        sink.write(
            data.append_column("op", pa.array(["u"] * len(keys))) if mode != "upsert" else data
        )

    with opened(tmp_path, schema=schema, **options) as sink:
        write(sink, (0.0, "a"), (-0.0, "b"), (math.nan, "c"), (-math.nan, "d"), (5.5, "e"))
        sink.commit_epoch(1)
        assert sorted(row["v"] for row in rows(tmp_path)) == ["b", "d", "e"]
        write(sink, (0.0, "f"), (math.nan, "g"), (5.5, "h"))
        assert sink.commit_epoch(2).rows_updated == 3
        write(sink, (-0.0, "i"), (-math.nan, "j"))
        assert sink.commit_epoch(3).rows_updated == 2
    assert sorted(row["v"] for row in rows(tmp_path)) == ["h", "i", "j"]


@contextmanager
def few_files() -> Iterator[None]:
    """No further file can be opened meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("mode", [{"mode": "append"}, {"mode": "upsert", "keys": ["id"]}])
def test_a_process_with_too_many_open_files_is_told_so(
    tmp_path: Path, mode: dict[str, Any]
) -> None:
    with opened(tmp_path, **mode) as sink:
        sink.write(batch(1))
        sink.commit_epoch(1)
        sink.write(batch(2))
        with few_files(), pytest.raises(StorageError, match="too many open files") as caught:
            sink.commit_epoch(2)
        assert "ulimit -n" in caught.value.hint
        assert sink.commit_epoch(2).rows == 1
    assert ids(tmp_path) == [1, 2]
    with few_files(), pytest.raises(StorageError, match="too many open files"):
        opened(tmp_path, **mode)
