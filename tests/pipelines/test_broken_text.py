"""Text that is not what it should be: no record vanishes, and no byte is replaced unseen (P8)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.workbench import Workbench

pytestmark = pytest.mark.spark

SOURCE = "extract: {type: %s}\nload: {type: delta, table: t, mode: overwrite}\n"
LATIN = "größe".encode("latin-1")


def put(root: Path, name: str, content: bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def refused(bench: Workbench, source: str) -> str:
    bench.pipeline("p", SOURCE % source)
    failed = bench.fail("p")
    assert failed.code == 1, failed.stderr
    assert bench.version("t") is None
    assert len(failed.stderr.splitlines()) <= 6
    return failed.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"a": 2}{"a": 3}', 'in.json:2: something follows the record, at character 9: {"a": 2}{'),
        ('{"a": 2} garbage', "in.json:2: something follows the record, at character 10"),
        ('{"a": 2}} {"a": 3}', "in.json:2: something follows the record, at character 9"),
        ('{"a": 2}]', "in.json:2: something follows the record"),
        ('[{"a": 2}][{"a": 3}]', "in.json:2: something follows the record, at character 11"),
        ('[{"a": 2}, null]', "in.json:2: expected an object such as {...}, not null"),
        ('[{"a": 2}, {"a": "x"}]', 'in.json:2: column "a": "x" is not bigint'),
    ],
)
def test_a_line_that_goes_on_after_its_record_stops_the_run(
    bench: Workbench, line: str, said: str
) -> None:
    put(bench.root, "in.json", f'{{"a": 1}}\n{line}\n'.encode())
    assert said in refused(bench, "json, path: in.json, schema: a bigint")


def test_all_records_of_a_list_are_read(bench: Workbench) -> None:
    text = '[{"a": 1}, {"a": 2}]\n\n  \n[]\n{"a": 3}, {"a": 4}\n\t{"a": 5}\n'
    put(bench.root, "in.json", text.encode())
    bench.pipeline("p", SOURCE % "json, path: in.json")
    assert bench.run("p")["batches"][0]["rows_read"] == 5
    assert [row["a"] for row in bench.rows("t")] == [1, 2, 3, 4, 5]


QUARANTINE = """
extract: {type: json, path: in, incremental: true, schema: a bigint, on_error: quarantine}
load: {type: delta, table: t}
"""


def test_such_lines_are_set_aside_whole_and_come_back_when_they_are_corrected(
    bench: Workbench,
) -> None:
    bench.pipeline("p", QUARANTINE)
    lines = ['{"a": 1}', '{"a": 2}{"a": 3}', '[{"a": 4}, {"a": "x"}]', '[{"a": 5}, null]']
    put(bench.root, "in/a.json", "\n".join(lines).encode())
    batch = bench.run("p")["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"]) == (4, 3)
    assert {row["raw"] for row in bench.rows("p__quarantine")} == set(lines[1:])
    again = bench.cli("quarantine", "replay", "p", "--json", "--quiet").json["batches"][0]
    assert (again["rows_read"], again["rows_quarantined"]) == (3, 3)
    assert [row["a"] for row in bench.rows("t")] == [1]


def test_what_was_perhaps_meant_is_told(bench: Workbench) -> None:
    put(bench.root, "in.json", b'[\n{"a": 1},\n{"a": 2}\n]\n')
    said = refused(bench, "json, path: in.json")
    assert ":1: not JSON" in said
    assert "say `multiline: true`" in said
    put(bench.root, "in.json", b"one\ntwo\n")
    assert "in.json:1: not JSON" in refused(bench, "json, path: in.json")
    put(bench.root, "in.json", b'{"a": 1}\n{"a": 2}\n')
    assert "leave `multiline` out" in refused(bench, "json, path: in.json, multiline: true")


def test_a_document_that_goes_on_stops_the_run(bench: Workbench) -> None:
    put(bench.root, "in.json", b'{\n"a": 1\n}\n{\n"a": 2\n}\n')
    said = refused(bench, "json, path: in.json, multiline: true, schema: a bigint")
    assert "in.json: something follows the record, at line 4, character 1" in said


@pytest.mark.parametrize(
    ("source", "content", "said"),
    [
        ("csv, path: in.csv", b"v\nok\n" + LATIN, "in.csv:3 is not UTF-8 text"),
        ("csv, path: in.csv, multiline: true", b"v\n" + LATIN, "in.csv:2 is not UTF-8 text"),
        ("csv, path: in.csv, encoding: US-ASCII", "v\né".encode(), "in.csv:2 is not US-ASCII"),
        ("csv, path: in.csv.zst", pa.compress(b"v\n" + LATIN, "zstd", asbytes=True), "in.csv.zst"),
        ("text, path: in.txt", b"ok\n" + LATIN, "in.txt:2 is not UTF-8 text"),
        ("json, path: in.json", b'{"v": 1}\n{"v": "' + LATIN + b'"}', "in.json:2 is not UTF-8"),
        (
            "json, path: in.json, schema: v string, on_error: quarantine",
            b'{"v": "' + LATIN + b'"}',
            "in.json:1 is not UTF-8 text",
        ),
        ("json, path: in.json, multiline: true", b'{"v":\n"' + LATIN + b'"}', "in.json:2 is not"),
        ("json, path: in.json", '{"v": 1}'.encode("utf-16"), "in.json"),
    ],
)
def test_bytes_that_do_not_fit_the_encoding_stop_the_run(
    bench: Workbench, source: str, content: bytes, said: str
) -> None:
    name = source.partition("path: ")[2].partition(",")[0]
    put(bench.root, name, content)
    assert said in refused(bench, source)


def test_the_right_encoding_reads_them(bench: Workbench) -> None:
    put(bench.root, "in.csv", b"v\n" + LATIN)
    put(bench.root, "in.json", b'{"v": "' + LATIN + b'"}')
    put(bench.root, "bom.json", b'\xef\xbb\xbf{"v": "gr\xc3\xb6\xc3\x9fe"}')
    for source in (
        "csv, path: in.csv, encoding: ISO-8859-1",
        "json, path: in.json, encoding: ISO-8859-1",
        "json, path: bom.json",
        "json, path: bom.json, multiline: true",
    ):
        bench.pipeline("p", SOURCE % source)
        bench.run("p")
        assert bench.rows("t") == [{"v": "größe"}], source
