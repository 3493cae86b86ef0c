"""`deltaworks stream run`: the files of a folder become epochs, each file once (S3)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltaworks.engines.parquet_rows import parquet_schema
from deltaworks.errors import StorageError
from deltaworks.streams.sink import EpochSink
from tests.streams.tables import SCHEMA
from tests.workbench import Workbench

PIPELINE = "extract: {type: parquet, path: inbox}\nload: {type: delta, table: events}\n"


def put(desk: Workbench, number: int) -> Path:
    path = desk.root / "inbox" / f"{number}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": [number], "s": ["x"]}, schema=SCHEMA), path)
    os.utime(path, ns=(number * 10**9, number * 10**9))
    return path


def streamed(desk: Workbench, *options: str) -> dict[str, Any]:
    answer = desk.cli("stream", "run", "p", "--json", *options)
    assert answer.code == 0, answer.stdout
    return dict(answer.json)


def ids(desk: Workbench) -> list[int]:
    return sorted(row["id"] for row in desk.rows("events"))


def test_new_files_become_epochs_in_order(desk: Workbench) -> None:
    desk.pipeline("p", PIPELINE)
    for number in (3, 1, 2):
        put(desk, number)
    assert streamed(desk)["epochs"] == [{"epoch": n, "version": n} for n in (1, 2, 3)]
    assert streamed(desk) == {
        "pipeline": "p",
        "table": "events",
        "epochs": [],
        "rows": 0,
        "files": 0,
        "last_epoch": 3,
    }
    put(desk, 4)
    put(desk, 5)
    assert streamed(desk, "--files-per-epoch", "2")["last_epoch"] == 4
    assert ids(desk) == [1, 2, 3, 4, 5]
    shown = desk.cli("stream", "run", "p").stdout
    assert shown == "events: 0 epochs, 0 files, 0 rows; the last epoch is 4\n"


@pytest.mark.parametrize("before", [True, False])
def test_what_is_cut_off_goes_on_with_the_right_file(
    desk: Workbench, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    desk.pipeline("p", PIPELINE)
    for number in (1, 2, 3):
        put(desk, number)
    commit = EpochSink.commit_epoch

    def cut(self: EpochSink[Any], epoch: int) -> Any:
        if epoch == 2 and before:
            raise KeyboardInterrupt
        done = commit(self, epoch)
        if epoch == 2:
            raise KeyboardInterrupt
        return done

    with monkeypatch.context() as context:
        context.setattr(EpochSink, "commit_epoch", cut)
        assert desk.cli("stream", "run", "p").code == 130
    put(desk, 0)  # older than what was planned, and not in the table: it comes first now
    streamed(desk)
    assert ids(desk) == [0, 1, 2, 3]


def test_after_a_restore_the_lost_files_are_streamed_again(desk: Workbench) -> None:
    desk.pipeline("p", PIPELINE)
    for number in (1, 2, 3):
        put(desk, number)
    streamed(desk)
    desk.open().restore("events", version=1, apply=True)
    assert ids(desk) == [1]
    assert streamed(desk)["last_epoch"] == 3
    assert ids(desk) == [1, 2, 3]


def test_a_file_that_changed_after_it_was_read_is_refused(desk: Workbench) -> None:
    desk.pipeline("p", PIPELINE)
    path = put(desk, 1)
    streamed(desk)
    os.utime(path, ns=(9, 9))
    answer = desk.cli("stream", "run", "p")
    assert answer.code == 5
    assert "has changed since the stream read it" in answer.stderr


def test_a_damaged_file_stops_the_stream_and_nothing_of_it_lands(desk: Workbench) -> None:
    desk.pipeline("p", PIPELINE)
    put(desk, 1)
    bad = put(desk, 2)
    bad.write_bytes(b"PAR1 but no more")
    os.utime(bad, ns=(2 * 10**9, 2 * 10**9))
    answer = desk.cli("stream", "run", "p")
    assert answer.code == 1
    assert "is not a Parquet file" in answer.stderr
    assert ids(desk) == [1]
    bad.unlink()
    bad.mkdir()
    (desk.root / "inbox" / "1.parquet").write_bytes(b"")
    fresh = desk.cli("stream", "run", "p", "--writer-id", "other")
    assert "is not a Parquet file" in fresh.stderr


def test_upserts_are_streamed_by_key(desk: Workbench) -> None:
    upsert = "load: {type: delta, table: events, mode: upsert, merge_keys: [id]}\n"
    desk.pipeline("p", PIPELINE.partition("load")[0] + upsert)
    put(desk, 1)
    streamed(desk, "--writer-id", "a")
    streamed(desk, "--writer-id", "b")
    assert ids(desk) == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PIPELINE.replace("type: parquet", "type: csv"), "not csv into delta"),
        (PIPELINE + "transform: [{type: select, columns: [id]}]\n", "no transforms"),
        (PIPELINE.replace("events}", "events, merge_schema: true}"), '"merge_schema"'),
        (PIPELINE.replace("events}", "events, mode: overwrite}"), 'no mode "overwrite"'),
        (PIPELINE.replace("load: ", "load:\n- ") + "- {type: delta, table: u}\n", "one source"),
    ],
)
def test_what_needs_spark_is_refused_naming_it(desk: Workbench, text: str, message: str) -> None:
    desk.pipeline("p", text)
    answer = desk.cli("stream", "run", "p")
    assert answer.code == 4, answer.stderr
    assert message in answer.stderr
    assert "deltaworks run" in answer.stderr


def test_a_file_that_is_gone_is_named() -> None:
    with pytest.raises(StorageError, match=r'"gone\.parquet" cannot be read'):
        parquet_schema("gone.parquet")
