"""Columns of files that differ: found without Spark, and refused, told, kept or left out."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql.types import StructType

from deltaworks.contracts.registry import find_plugin
from deltaworks.engines.spark.frames.text_formats import format_problem
from deltaworks.engines.spark.read.drifting_files import (
    Part,
    differences,
    extended,
    settled,
    united,
)
from deltaworks.engines.spark.read.files import FileRows
from deltaworks.engines.spark.read.json import JsonFiles, first_with
from deltaworks.engines.spark.read.json_fields import judge_fields
from deltaworks.errors import InputError
from deltaworks.model.batch import Bounds
from deltaworks.sources.csv import CsvSource
from deltaworks.sources.parquet import ParquetSource
from deltaworks.storage.drift import Drift, FileDrift, refuse_twins
from deltaworks.storage.listing import file_bounds
from deltaworks.storage.parquet_footers import (
    alike,
    avro_header,
    orc_footer,
    parquet_footer,
    rows_in_footers,
)
from deltaworks.transforms.cast import CastTransform

OTHER = FileDrift(path="in/b.csv", unknown=("phone", "fax"), missing=("last",), line=1)


def test_a_difference_is_refused_with_all_of_it() -> None:
    with pytest.raises(InputError) as caught:
        Drift().judge([FileDrift(path="in/a.csv"), OTHER], print)
    assert caught.value.message == (
        "in/b.csv:1: the columns are not those of the schema:\n"
        '  + "phone" (not in the schema)\n'
        '  + "fax" (not in the schema)\n'
        '  - "last" (not in the file)'
    )
    assert "unknown_columns: keep" in caught.value.hint
    with pytest.raises(InputError) as caught:
        Drift(unknown="keep").judge([OTHER], print, against="other files")
    assert "fax" not in caught.value.message
    assert "missing_columns: fill" in caught.value.hint
    many = FileDrift(path="a", unknown=tuple("abcdefg"))
    with pytest.raises(InputError, match=r"(?s)\"c\".*\(\+4 more\)\n"):
        Drift().judge([many], print)


def test_a_difference_that_may_pass_is_told_or_not() -> None:
    told: list[str] = []
    Drift(unknown="warn", missing="warn").judge([OTHER], told.append)
    assert told == [
        'in/b.csv:1: columns "phone", "fax" left out: not in the schema',
        'in/b.csv:1: column "last" read as NULL: not in the file',
    ]
    told.clear()
    Drift(unknown="ignore", missing="fill").judge([OTHER], told.append)
    Drift(unknown="warn").judge([FileDrift(path="a", unknown=tuple("abcdef"))], told.append)
    assert told == ['a: columns "a", "b", "c", "d" and 2 more left out: not in the schema']


def test_a_repeated_column_is_named_with_its_places() -> None:
    refuse_twins(["a", "b"], "x.csv:1", hint="")
    with pytest.raises(InputError, match=r'x\.csv:1: .* "a" 2 times \(columns 1, 3\)'):
        refuse_twins(["a", "b", "A"], "x.csv:1", hint="")


def columns(text: str) -> StructType:
    fields = []
    for part in text.split(", "):
        name, _, kind = part.partition(" ")
        kinds: dict[str, Any] = {
            "struct": {"type": "struct", "fields": []},
            "array": {"type": "array", "elementType": "long", "containsNull": True},
        }
        fields.append(
            {"name": name, "type": kinds.get(kind, kind), "nullable": True, "metadata": {}}
        )
    told = [{**field, "metadata": {}} for field in fields]
    return StructType.fromJson({"type": "struct", "fields": told})


def nested(name: str, inner: StructType) -> StructType:
    return StructType().add(name, inner)


def part(path: str, found: StructType) -> Part:
    from deltaworks.model.batch import FILES, FileStamp

    bounds = Bounds(kind=FILES, identity="in", files=(FileStamp(path, 1, 1),))
    files = FileRows(
        spark=cast("Any", None),
        file_format="parquet",
        bounds=bounds,
        options={},
        partition_types={},
        source_file=False,
        ingested_at=cast("datetime | None", None),
    )
    return Part(files=files, columns=found)


def test_nested_fields_are_compared_too_and_case_only_where_it_counts() -> None:
    left = nested("s", columns("a long, B string"))
    right = nested("S", columns("a string, b string, c long"))
    assert differences(left, right) == (("s.c",), ())
    assert differences(left, right, exact_case=True) == (("S",), ("s",))
    assert differences(columns("s string"), right) == ((), ())


def test_types_that_one_holds_are_put_together_and_others_refused_by_file() -> None:
    found = united(
        [part("a.parquet", columns("id integer, v string")), part("b.parquet", columns("ID long"))]
    )
    assert found.simpleString() == "struct<id:bigint,v:string>"
    inner = [
        part("a", nested("s", columns("x integer"))),
        part("b", nested("s", columns("y long"))),
    ]
    assert united(inner).simpleString() == "struct<s:struct<x:int,y:bigint>>"
    with pytest.raises(InputError) as caught:
        united([part("a.parquet", columns("id long")), part("b.parquet", columns("id string"))])
    assert caught.value.message == 'column "id" is bigint in a.parquet and string in b.parquet'
    assert "schema" in caught.value.hint
    with pytest.raises(InputError, match='column "s" is struct<x:int> in a'):
        united([inner[0], part("b", nested("s", columns("x string")))])
    with pytest.raises(InputError, match='column "l" is array<bigint>'):
        united([part("a", columns("l array")), part("b", columns("l string"))])


def test_columns_besides_the_declared_ones_come_last() -> None:
    parts = [part("a", columns("v string, id string, x long")), part("b", columns("y long"))]
    assert extended(columns("id long"), parts).simpleString() == (
        "struct<id:bigint,v:string,x:bigint,y:bigint>"
    )
    lists = extended(columns("l array"), [part("a", columns("l array, v long"))])
    assert lists.simpleString() == "struct<l:array<bigint>,v:bigint>"
    told: list[str] = []
    kept = Drift(unknown="keep", missing="warn")
    settled(parts, columns("id long"), kept, warn=told.append)
    assert told == ['b: column "id" read as NULL: not in the file']
    with pytest.raises(InputError, match=r'a: .* those of the other files:\n  - "y"'):
        settled(parts, None, Drift(), warn=told.append)


def test_the_first_json_record_with_an_unknown_field_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"id": "more"}\n[{"id": 1, "more": 2}]\n')
    files, found = JsonFiles(encoding="UTF-8", multiline=False), columns("id long, more long")
    first = partial(first_with, part(str(path), found).files.bounds, files)
    with pytest.raises(InputError, match=r'a\.json:2: .*\n  \+ "more" \(not in the schema\)'):
        judge_fields(columns("id long"), found, Drift(), print, first=first)


def zigzag(number: int) -> bytes:
    number, found = number << 1, b""
    while number > 0x7F:
        found, number = found + bytes([number & 0x7F | 0x80]), number >> 7
    return found + bytes([number])


def avro(*pairs: tuple[str, str], sized: bool = False) -> bytes:
    body = b"".join(zigzag(len(text)) + text.encode() for pair in pairs for text in pair)
    count = bytes([2 * len(pairs) - 1]) + zigzag(len(body)) if sized else zigzag(len(pairs))
    return b"Obj\x01" + count + body + zigzag(0)


def test_files_are_grouped_by_what_they_say_of_their_columns(tmp_path: Path) -> None:
    for folder in ("p", "o", "a"):
        (tmp_path / folder).mkdir()
    rows = {"1": {"id": [1]}, "2": {"id": [1, 2]}, "3": {"id": ["x"]}, "4": {"id": [1], "v": [1]}}
    for name, columns_ in rows.items():
        pq.write_table(pa.table(columns_), tmp_path / f"p/{name}.parquet")
        orc.write_table(pa.table(columns_), tmp_path / f"o/{name}.orc")
    long = "x" * 300
    for name, shape in (("1", long), ("2", long), ("3", "y")):
        whole = avro(("avro.codec", "null"), ("avro.schema", shape), sized=name == "2")
        (tmp_path / f"a/{name}.avro").write_bytes(whole)
    looks = {"p": parquet_footer, "o": orc_footer, "a": avro_header}
    for folder, look in looks.items():
        bounds = file_bounds(str(tmp_path / folder), written=folder)
        for _ in range(2):
            found = alike(bounds, look, kind="a")
            sizes = [len(group.files) for group in found]
            assert sizes == ([2, 1] if folder == "a" else [2, 1, 1])
    assert (
        rows_in_footers(file_bounds(str(tmp_path / "p"), written=""), parquet_footer, kind="a") == 5
    )
    (tmp_path / "a/4.avro").write_bytes(avro(("avro.codec", "null")))
    with pytest.raises(InputError, match=r"4\.avro.* is not an Avro file"):
        alike(file_bounds(str(tmp_path / "a"), written=""), avro_header, kind="an Avro")
    (tmp_path / "a/4.avro").write_bytes(b"Obj\x01\x04\x81")
    with pytest.raises(InputError, match=r"4\.avro.* is not an Avro file"):
        alike(file_bounds(str(tmp_path / "a"), written=""), avro_header, kind="an Avro")


def test_options_about_columns_that_do_not_go_together_are_refused() -> None:
    alone = CsvSource(path="a", unknown_columns="ignore")
    assert '"unknown_columns" are those outside "schema"' in alone.problems()[0]
    by_position = CsvSource(path="a", columns_by="position")
    assert '"columns_by: position" needs "schema"' in by_position.problems()[0]
    assert ParquetSource(path="a", merge_schema=True).drift().missing == "fill"
    assert ParquetSource(path="a").drift() == Drift()
    for name in ("avro", "csv", "json", "orc", "parquet"):
        source = find_plugin("source", name)
        assert source is not None
        made = cast("Any", source.model_validate({"path": "a"}))
        assert made.drift() == Drift(missing="fill" if name == "json" else "refuse")


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("decimal(12,2)", "1.234,56", ""),
        ("double", "1234,56", ""),
        ("bigint", "1'234", ""),
        ("date", "dd.MM.yyyy", ""),
        ("timestamp", "dd.MM.yyyy 'Y' HH:mm", ""),
        ("int", "#.##0", "must spell the number 1234.56"),
        ("double", "1,234,56", "must spell the number 1234.56"),
        ("date", "dd.MM.YYYY", 'say "y"'),
        ("date", "DD.MM.yyyy", 'say "d"'),
        ("timestamp_ntz", "--", "names no part of a date"),
        ("string", "x", "formats are for numbers, dates and timestamps"),
    ],
)
def test_a_format_must_suit_its_type(kind: str, text: str, said: str) -> None:
    problem = format_problem("c", kind, text)
    assert problem == said if not said else said in problem
    cast_ = CastTransform(columns={"c": kind}, formats={"c": text, "d": "x"})
    assert '"formats" names "d", and "columns" does not' in cast_.problems()[-1]
