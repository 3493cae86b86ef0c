"""`deltaworks stream run`: the files of a folder become epochs, each file once (S3)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from deltaworks.engines.arrow.ddl import declared_schema
from deltaworks.engines.arrow.parquet_orc import ParquetFiles
from deltaworks.engines.deltars.event_table.table import EventTable
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


def test_a_stream_knows_its_files_in_a_project_that_moved(tmp_path: Path) -> None:
    desk = Workbench(tmp_path / "shop")
    desk.pipeline("p", PIPELINE)
    put(desk, 1)
    streamed(desk)
    desk.pipeline("p", PIPELINE.replace("path: inbox", 'path: "./inbox/*.parquet"'))
    assert streamed(desk)["files"] == 0
    desk.root.rename(tmp_path / "elsewhere")
    moved = Workbench(tmp_path / "elsewhere")
    put(moved, 2)
    assert streamed(moved)["files"] == 1
    assert ids(moved) == [1, 2]


def test_a_file_that_is_exchanged_while_a_stream_reads_it_is_not_committed(
    desk: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.pipeline("p", PIPELINE)
    path = put(desk, 1)
    read = ParquetFiles.batches

    def exchanged(files: ParquetFiles, place: str, into: pa.Schema) -> Any:
        pq.write_table(pa.table({"id": [7], "s": ["y"]}, schema=SCHEMA), path)
        return read(files, place, into=into)

    monkeypatch.setattr(ParquetFiles, "batches", exchanged)
    answer = desk.cli("stream", "run", "p")
    assert answer.code != 0
    assert "changed while it was read" in answer.stderr
    monkeypatch.undo()
    streamed(desk)
    assert ids(desk) == [7]


def test_new_files_become_epochs_in_order(desk: Workbench) -> None:
    desk.pipeline("p", PIPELINE)
    for number in (3, 1, 2):
        put(desk, number)
    assert streamed(desk)["epochs"] == [{"epoch": n, "version": n} for n in (1, 2, 3)]
    assert streamed(desk) == {
        "pipeline": "p",
        "table": "events",
        "status": "succeeded",
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


SLOW = "import time; from deltaworks.streams.sink import EpochSink; "
SLOW += "write = EpochSink.write; "
SLOW += "EpochSink.write = lambda *given: (time.sleep(0.2), write(*given))[1]; "


@pytest.mark.parametrize("as_json", [True, False])
def test_ctrl_c_ends_a_stream_and_does_not_fail_it(desk: Workbench, *, as_json: bool) -> None:
    desk.pipeline("p", PIPELINE)
    for number in range(100):
        put(desk, number)
    code = f"{SLOW}import sys; from deltaworks.cli.app import main; sys.exit(main())"
    words = ["stream", "run", "p", *(["--json"] if as_json else []), "--project", str(desk.root)]
    child = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while (desk.version("events") or 0) < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    landed = ids(desk)
    assert landed == list(range(len(landed)))
    if as_json:
        told = json.loads(out)
        assert told["status"] == "stopped"
        assert len(landed) - told["files"] in (0, 1)  # the last commit may not have been answered
    else:
        assert "stopped by Ctrl-C" in out
    assert streamed(desk)["files"] == 100 - len(landed)
    assert ids(desk) == list(range(100))


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
        assert desk.cli("stream", "run", "p").code == 0
    put(desk, 0)  # older than what was planned, and not in the table: it comes first now
    streamed(desk)
    assert ids(desk) == [0, 1, 2, 3]


def test_an_epoch_that_another_project_made_is_not_taken_for_the_one_that_was_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, other = Workbench(tmp_path / "shop"), Workbench(tmp_path / "other")
    place = f"{tmp_path}/events"
    for number, desk in enumerate((shop, other)):
        desk.pipeline("p", PIPELINE.replace("table: events", f'path: "{place}"'))
        put(desk, number)

    def cut(*_: object) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(EpochSink, "commit_epoch", cut)
        assert shop.cli("stream", "run", "p").code == 0
    streamed(other)
    refused = shop.cli("stream", "run", "p")
    assert "no record of what it read" in refused.stderr
    streamed(shop, "--writer-id", "shop")
    assert streamed(other)["files"] == 0
    found = DeltaTable(place).to_pyarrow_table().column("id").to_pylist()
    assert sorted(found) == [0, 1]


def test_after_a_restore_the_lost_files_are_streamed_again(desk: Workbench) -> None:
    desk.pipeline("p", PIPELINE)
    for number in (1, 2, 3):
        put(desk, number)
    streamed(desk)
    desk.open().restore("events", version=1, apply=True)
    assert ids(desk) == [1]
    assert streamed(desk)["last_epoch"] == 3
    assert ids(desk) == [1, 2, 3]


def test_what_was_read_is_known_from_the_books_of_earlier_versions_or_the_stream_stops(
    desk: Workbench,
) -> None:
    desk.pipeline("p", PIPELINE)
    put(desk, 1)
    streamed(desk)
    place = f"{desk.root}/warehouse/_deltaworks/streams"
    schema = pa.schema(DeltaTable(place).schema().to_arrow())
    (page,) = EventTable(place, schema).read()
    shutil.rmtree(place)
    put(desk, 2)
    refused = desk.cli("stream", "run", "p")
    assert refused.code == 5
    assert "this project has no record of what it read" in refused.stderr
    begins, rest = page["writer"].split(":", 1)
    EventTable(place, schema).append({**page, "writer": f"{begins}:b1946ac9:events:{rest}"})
    assert streamed(desk)["files"] == 1
    assert ids(desk) == [1, 2]


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
        (PIPELINE.replace("type: parquet", "type: avro"), "not avro into delta"),
        (PIPELINE.replace("inbox}", "inbox, source_file: true}"), '"source_file"'),
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


SCHEMA_TEXT = "id bigint not null, s string"
FORMATS = {
    "csv": "id,s\n1,x\n2,\n",
    "json": '{"id": 1, "s": "x"}\n{"id": 2}\n',
}


def put_text(desk: Workbench, name: str, text: str, number: int = 1) -> Path:
    path = desk.root / "inbox" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(number * 10**9, number * 10**9))
    return path


def source(kind: str, words: str = "") -> str:
    return PIPELINE.replace("type: parquet", f"type: {kind}{words}")


@pytest.mark.parametrize("kind", FORMATS)
def test_text_gets_the_types_of_the_schema_or_of_the_table(desk: Workbench, kind: str) -> None:
    put_text(desk, f"1.{kind}", FORMATS[kind])
    desk.pipeline("p", source(kind, f", schema: '{SCHEMA_TEXT}'"))
    assert streamed(desk)["rows"] == 2
    desk.pipeline("p", source(kind))
    put_text(desk, f"2.{kind}", FORMATS[kind].replace("1", "3", 1), 2)
    put_text(desk, f"3.{kind}", "", 3)
    assert streamed(desk)["files"] == 2
    found = sorted((row["id"], row["s"]) for row in desk.rows("events"))
    assert found == [(1, "x"), (2, None), (2, None), (3, "x")]


def test_orc_files_and_lines_of_text_are_streamed(desk: Workbench) -> None:
    from pyarrow import orc

    (desk.root / "inbox").mkdir()
    orc.write_table(pa.table({"id": [1], "s": ["x"]}, schema=SCHEMA), desk.root / "inbox" / "1.orc")
    desk.pipeline("p", source("orc"))
    assert streamed(desk)["rows"] == 1
    assert ids(desk) == [1]
    desk.pipeline("p", source("text").replace("inbox", "lines").replace("events", "notes"))
    (desk.root / "lines").mkdir()
    (desk.root / "lines" / "1.txt").write_text("one\n\ntwo", encoding="utf-8")
    assert streamed(desk)["rows"] == 3
    assert sorted(row["value"] for row in desk.rows("notes")) == ["", "one", "two"]


def test_csv_is_read_as_its_source_says(desk: Workbench) -> None:
    words = ", header: false, delimiter: ';', quote: \"'\", escape: '\\', null_value: NA"
    desk.pipeline("p", source("csv", f", schema: '{SCHEMA_TEXT}'{words}"))
    put_text(desk, "1.csv", "1;'a;\\'b'\n2;NA\n3;''\n")
    streamed(desk)
    found = sorted((row["id"], row["s"]) for row in desk.rows("events"))
    assert found == [(1, "a;'b"), (2, None), (3, "")]


def test_csv_that_makes_its_table_is_text(desk: Workbench) -> None:
    desk.pipeline("p", source("csv"))
    put_text(desk, "1.csv", FORMATS["csv"])
    streamed(desk)
    assert [row["id"] for row in desk.rows("events")] == ["1", "2"]


@pytest.mark.parametrize(
    ("kind", "words", "text", "message"),
    [
        ("csv", f", schema: '{SCHEMA_TEXT}'", "id,s\nx,1\n", "is not a CSV file, or not as"),
        ("csv", f", schema: '{SCHEMA_TEXT}'", "id,s\n1,2,3\n", "is not a CSV file, or not as"),
        ("csv", f", schema: '{SCHEMA_TEXT}'", "id,other\n1,2\n", '+ "other" (not in the schema)'),
        ("csv", f", schema: '{SCHEMA_TEXT}'", "id,id\n1,2\n", 'names column "id" 2 times'),
        ("csv", f", header: false, schema: '{SCHEMA_TEXT}'", "1,2,3\n", "has 3 columns"),
        ("csv", ", schema: 'id wrong'", "id\n1\n", 'column "id": there is no type "wrong"'),
        ("csv", ", schema: 'id variant'", "id\n1\n", 'does not know type "variant"'),
        ("csv", ", schema: 'id'", "id\n1\n", 'column "id" has no type'),
        ("csv", "", "", "is not a Delta table"),
        ("json", "", '{"id": 1}\n', "is not a Delta table"),
        ("json", f", schema: '{SCHEMA_TEXT}'", '{"id": 1, "more": 2}\n', "is not a JSON file"),
        ("json", f", schema: '{SCHEMA_TEXT}'", "no json\n", "is not a JSON file"),
    ],
)
def test_text_that_does_not_fit_is_an_error_that_names_it(
    desk: Workbench, kind: str, words: str, text: str, message: str
) -> None:
    desk.pipeline("p", source(kind, words))
    put_text(desk, f"1.{kind}", text)
    answer = desk.cli("stream", "run", "p")
    assert answer.code in (1, 2), answer.stderr
    assert message in answer.stderr
    assert len(answer.stderr.splitlines()) <= 4


def test_every_type_can_be_declared() -> None:
    text = (
        "a tinyint, b smallint, c int, d bigint, e float, f double, g boolean, h string, i binary,"
        " j date, k timestamp, l timestamp_ntz, m decimal(10,2), n decimal(5), o decimal,"
        " p struct<x: int, y: array<string>>, q map<string, double>, r varchar(3)"
    )
    found = {field.name: str(field.type) for field in declared_schema(text)}
    assert list(found.values()) == [
        *("int8", "int16", "int32", "int64", "float", "double", "bool", "string", "binary"),
        *("date32[day]", "timestamp[us, tz=UTC]", "timestamp[us]", "decimal128(10, 2)"),
        *("decimal128(5, 0)", "decimal128(10, 0)", "struct<x: int32, y: list<item: string>>"),
        *("map<string, double>", "string"),
    ]


def test_columns_that_only_folders_tell_of_are_refused(desk: Workbench) -> None:
    desk.pipeline("p", PIPELINE)
    put(desk, 1).rename(_folder(desk, "day=1") / "1.parquet")
    answer = desk.cli("stream", "run", "p")
    assert answer.code == 4
    assert 'does not read "day" from the names of folders' in answer.stderr


def _folder(desk: Workbench, name: str) -> Path:
    path = desk.root / "inbox" / name
    path.mkdir()
    return path


def test_a_file_that_is_gone_is_named() -> None:
    with pytest.raises(StorageError, match=r'"gone\.parquet" cannot be read'):
        ParquetFiles().columns("gone.parquet")
