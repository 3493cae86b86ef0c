"""Text files are looked at before Spark sees them, and after it stumbled over one."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import Row
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from deltaworks.engines.spark.read.csv import CsvFiles
from deltaworks.engines.spark.read.json import JsonFiles, first_fault, refuse_lines
from deltaworks.engines.spark.read.text import find_other_text, refuse_other_text
from deltaworks.errors import InputError
from deltaworks.model.batch import Bounds
from deltaworks.sources.avro import AvroSource
from deltaworks.sources.csv import CsvSource
from deltaworks.sources.json import JsonSource
from deltaworks.sources.text import TextSource
from deltaworks.storage import parquet_footers as footers
from deltaworks.storage.hive_partitions import partition_base, partition_keys
from deltaworks.storage.listing import file_bounds, refuse_other_files

LINES = JsonFiles(encoding="UTF-8", multiline=False)
INNER = StructType([StructField("n", IntegerType())])
COLUMNS = StructType(
    [StructField("id", IntegerType()), StructField("v", StringType()), StructField("s", INNER)]
)


def bounds(folder: Path) -> Bounds:
    return file_bounds(str(folder), written=folder.name)


def put(root: Path, *names: str, content: bytes = b"") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("raw", "row", "said"),
    [
        ('{"id": ', Row(id=None, v=None, s=None), "not JSON (Expecting value, at character 8)"),
        ('{"id":\n oops', Row(id=None, v=None, s=None), "at line 2, character 2"),
        ("5", Row(id=None, v=None, s=None), "expected an object such as {...}, not 5"),
        ('{"id": 1} {"id": 2}', None, "something follows the record, at character 11"),
        ('{"id": "x"}', Row(id=None, v=None, s=None), 'column "id": "x" is not int'),
        ('{"id": 1.5}', Row(id=None, v=None, s=None), 'column "id": "1.5" is not int'),
        (
            '{"id": 1, "s": {"n": [2]}}',
            Row(id=1, v=None, s=Row(n=None)),
            'column "s.n": "[2]" is not int',
        ),
        ('{"id": 1, "s": {"n": 2}}', Row(id=1, v=None, s=Row(n=2)), "does not fit its columns"),
    ],
)
def test_what_is_wrong_with_a_json_record_is_told(raw: str, row: Row, said: str) -> None:
    assert said in LINES.fault(raw, [row], COLUMNS)


@pytest.mark.parametrize(
    ("raw", "hint"),
    [("[", "multiline: true"), ('{"id": 1,', "multiline: true"), ('{"id": x}', "on_error")],
)
def test_a_record_that_goes_on_in_the_next_line_may_be_a_document(raw: str, hint: str) -> None:
    assert hint in LINES.remedy(raw)
    assert "on_error" in JsonFiles(encoding="UTF-8", multiline=True).remedy(raw)


def test_a_file_that_is_no_json_at_all_is_told_with_its_first_line(tmp_path: Path) -> None:
    put(tmp_path, "a.json", content=b"\n[]\nplain text\n")
    found = first_fault(bounds(tmp_path), LINES)
    assert found is not None
    assert "a.json:3: not JSON (Expecting value, at character 1): plain text" in found.message
    put(tmp_path, "a.json", content=b"\n[]\n")
    assert first_fault(bounds(tmp_path), LINES) is None


def test_the_wrong_one_of_several_records_is_found() -> None:
    rows = [Row(id=1, v=None, s=None), Row(id=None, v=None, s=None)]
    assert '"x" is not int' in LINES.fault('[{"id": 1}, {"id": "x"}]', rows, COLUMNS)


def test_values_of_a_json_line_are_told_by_column() -> None:
    assert LINES.values('{"id": 1, "v": "a", "w": 2}', ["id", "v", "z"]) == {"id": "1", "v": "a"}
    assert LINES.values("[1]", ["id"]) == {}
    assert LINES.values("nothing", ["id"]) == {}
    assert LINES.surely_row('{"id": 1}')
    assert not LINES.surely_row("[]")
    document = JsonFiles(encoding="UTF-8", multiline=True)
    assert list(document.records("any")) == []


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (b'{"id": 1}\n{"id": 2}\n', True),
        (b"\n[1]\n\n[2]\n", True),
        (b'{"id": 1}\n\n', False),
        (b'{\n"id": 1}\n', False),
        (b"", False),
    ],
)
def test_lines_are_not_taken_for_a_document(tmp_path: Path, text: bytes, refused: bool) -> None:
    put(tmp_path, "in.json", content=text)
    found = bounds(tmp_path)
    if not refused:
        refuse_lines(found, LINES)
        return
    with pytest.raises(InputError, match=r"in\.json.* holds more than one document") as caught:
        refuse_lines(found, LINES)
    assert "leave `multiline` out" in caught.value.hint


@pytest.mark.parametrize(
    "content", [b"not packed at all", gzip.compress(b"id\n" * 999, mtime=0)[:-9]]
)
def test_a_damaged_archive_is_named(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "in.csv.gz", content=content)
    files = CsvFiles(delimiter=",", quote='"', encoding="UTF-8", header=True, null_value="")
    with pytest.raises(InputError, match=r'in\.csv\.gz" cannot be read'):
        list(files.lines(str(tmp_path / "in.csv.gz")))


def test_the_file_that_is_not_text_is_found(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", "c.txt.zst", content=b"plain\n")
    error = InputError("a file is not UTF-8 text", hint="say it")
    assert find_other_text(error, bounds(tmp_path), "UTF-8") is error
    put(tmp_path, "b.txt", content="a\ngröße".encode("latin-1"))
    found = find_other_text(error, bounds(tmp_path), "UTF-8")
    assert found.message.endswith("b.txt:2 is not UTF-8 text")
    assert find_other_text(error, bounds(tmp_path), "ISO-8859-1") is error


LATER = b"x" * (1 << 20) + b"\n"


@pytest.mark.parametrize(
    ("name", "content", "encoding", "line"),
    [
        ("a.csv", b"id\nok\n\xff\n", "UTF-8", 3),
        ("a.csv", "é".encode() * (1 << 19) + b"\n" + LATER + b"\xe9t\xe9", "utf-8", 3),
        ("a.csv", b"id\n\xc3", "UTF-8", 2),  # the last character is cut off
        ("a.csv", b"id\n\xc3\xa9", "US-ASCII", 2),
        ("a.csv", "id\né".encode("utf-16")[:-1], "UTF-16", 2),
        ("a.csv.gz", gzip.compress(b"id\n\xff", mtime=0), "UTF-8", 2),
        ("a.csv", "größe".encode(), "UTF-8", 0),
        ("a.csv", b"\xff\xfe", "ISO-8859-1", 0),
        ("a.csv.zst", b"\xff\xfe", "UTF-8", 0),  # Spark looks at those
    ],
)
def test_bytes_that_are_not_text_are_named_with_their_line(
    tmp_path: Path, name: str, content: bytes, encoding: str, line: int
) -> None:
    put(tmp_path, name, content=content)
    if not line:
        refuse_other_text(bounds(tmp_path), encoding)
        return
    with pytest.raises(InputError, match=f"{name}:{line} is not {encoding} text") as caught:
        refuse_other_text(bounds(tmp_path), encoding)
    assert "`encoding`" in caught.value.hint


@pytest.mark.parametrize(
    "content", [b"not packed at all", gzip.compress(b"id\n" * 999, mtime=0)[:-9]]
)
def test_a_damaged_archive_is_no_other_text(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "in.csv.gz", content=content)
    with pytest.raises(InputError, match=r'in\.csv\.gz" cannot be read'):
        refuse_other_text(bounds(tmp_path), "UTF-8")


def test_folders_named_key_and_value_are_keys_below_the_path(tmp_path: Path) -> None:
    put(tmp_path, "in/x=0/day=1/c=a%2Fb/f.csv", "in/x=0/day=2/c=b/plain/f.csv")
    assert partition_keys(bounds(tmp_path / "in")) == ("x", "day", "c")
    assert partition_keys(bounds(tmp_path / "in" / "x=0")) == ("day", "c")
    assert partition_keys(bounds(tmp_path / "in/x=0/day=1/c=a%2Fb/f.csv")) == ()
    assert partition_keys(bounds(tmp_path / "in/x=0/day=*/**/*.csv")) == ("day", "c")
    glob = Bounds(kind="files", identity=str(tmp_path / "in/x=0/day=*/f.csv"))
    assert partition_base(glob) == str(tmp_path / "in/x=0")
    assert partition_keys(Bounds(kind="files", identity=str(tmp_path))) == ()
    put(tmp_path, "cut/a=1/plain/b=2/f.csv")
    assert partition_keys(bounds(tmp_path / "cut")) == ("b",)  # as Spark sees it


def test_files_whose_folders_disagree_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "day=1/a.csv", "b.csv")
    with pytest.raises(
        InputError, match=r"day=1/a\.csv lies in folders of day, and .*b\.csv in no"
    ):
        partition_keys(bounds(tmp_path))


def test_a_file_of_another_format_is_named(tmp_path: Path) -> None:
    put(tmp_path, "a.avro", content=b"Obj\x01rest")
    refuse_other_files(bounds(tmp_path), b"Obj\x01", kind="an Avro")
    put(tmp_path, "b.avro")
    with pytest.raises(InputError, match=r'b\.avro" is not an Avro file'):
        refuse_other_files(bounds(tmp_path), b"Obj\x01", kind="an Avro")


def test_footers_are_asked_only_of_so_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(_: object) -> footers.Footer:
        return footers.Footer(rows=2)

    put(tmp_path, "a.orc", "b.orc")
    assert footers.rows_in_footers(bounds(tmp_path), look, kind="an ORC") == 4
    monkeypatch.setattr(footers, "_MAX_FOOTERS", 1)
    assert footers.rows_in_footers(bounds(tmp_path), look, kind="an ORC") is None


def test_an_encoding_that_spark_does_not_know_is_refused() -> None:
    assert TextSource(path="a", encoding="iso-8859-1").problems() == ()
    with pytest.raises(ValidationError, match='did you mean "utf-8"'):
        TextSource(path="a", encoding="utf8")


def test_columns_are_found_where_nobody_names_them() -> None:
    for source in (AvroSource, CsvSource, JsonSource):
        assert source.model_validate({"path": "a"}).finds_columns()
        assert not source.model_validate({"path": "a", "schema": "id int"}).finds_columns()
    assert not TextSource(path="a").finds_columns()


def test_options_that_do_not_go_together_are_refused() -> None:
    wide: dict[str, Any] = {"path": "a", "encoding": "UTF-16"}
    assert 'needs "whole_files: true"' in TextSource(**wide).problems()[0]
    assert TextSource(**wide, whole_files=True).problems() == ()
    assert 'needs "multiline: true"' in CsvSource(**wide).problems()[0]
    assert JsonSource(**wide, multiline=True).problems() == ()
    both = CsvSource.model_validate({"path": "a", "schema": "id int", "infer_schema": True})
    assert "exclude each other" in both.problems()[0]
    hidden = CsvSource.model_validate({"path": "a", "options": {"Charset": "UTF-8"}})
    assert 'outside "options"' in hidden.problems()[0]
    documents = JsonSource(path="a", multiline=True, on_error="quarantine")
    assert "needs a record on each line" in documents.problems()[0]
