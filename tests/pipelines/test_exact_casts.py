"""A cast keeps the value, or says that it does not fit; formats read what people write."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from deltaworks.contracts.plugin import REJECTED
from deltaworks.engines.spark.errors.translate import translate
from deltaworks.errors import SpecError
from tests.conformance.stage import context
from tests.pipelines.applying import Bench
from tests.pipelines.test_file_formats import made
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """
extract: {type: csv, path: in.csv}
transform: [{type: cast, columns: {n: "decimal(10,2)"}%s}]
load: {type: delta, table: t, mode: overwrite}
"""


def test_a_value_that_would_be_rounded_does_not_fit(bench: Workbench) -> None:
    bench.write("in.csv", "id,n\n1,1.230\n2,1.239\n")
    bench.pipeline("p", PIPELINE % "")
    failed = bench.fail("p")
    assert failed.code == 1
    said = 'in.csv:3: column "n": "1.239" is not decimal(10,2): it would become 1.24'
    assert said in failed.stderr
    assert "exact: false" in failed.stderr
    assert bench.version("t") is None
    bench.pipeline("p", PIPELINE % ", exact: false")
    bench.run("p")
    assert [row["n"] for row in bench.rows("t")] == [Decimal("1.23"), Decimal("1.24")]

    bench.write("in.csv", "id,n\n1,'1.234,50'\n2,1234.5\n3,'-1,234'\n4,'7,25'\n")
    quotes = PIPELINE.replace("in.csv}", 'in.csv, quote: "\'"}')
    bench.pipeline("q", quotes % ', formats: {n: "1.234,56"}, on_error: quarantine')
    batch = bench.run("q")["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"]) == (4, 2)
    assert [row["n"] for row in bench.rows("t")] == [Decimal("1234.50"), Decimal("7.25")]
    assert sorted(row["reason"] for row in bench.rows("q__quarantine")) == [
        "n: '-1,234' is not decimal(10,2): it would become -1.23",
        "n: '1234.5' is not decimal(10,2) spelled as 1.234,56",
    ]


VALUES = """
SELECT 2.7D a, 1.239BD b, 9007199254740993L c, 2 d, timestamp'2026-01-01 00:00:00.5' e,
  array(1D, 2.5D) f, named_struct('x', 0.5D) g, map('k', 1.5BD) h, '1.239e0' i
UNION ALL SELECT 2D, 1.230BD, 9007199254740992L, 1, timestamp'2026-01-01 00:00:00',
  array(1D, null), named_struct('x', 2D), map('k', 1.0BD), '12.3e-1'
UNION ALL SELECT null, null, null, null, null, null, null, null, null
"""
KINDS = {
    "a": "int",
    "b": "decimal(10,2)",
    "c": "double",
    "d": "boolean",
    "e": "bigint",
    "f": "array<int>",
    "g": "struct<x: int>",
    "h": "map<string, int>",
    "i": "decimal(10,2)",
}


def test_every_pair_of_types_that_can_lose_is_looked_at(orders: Bench) -> None:
    frame = orders.frame(VALUES, type="cast", columns=KINDS, on_error="quarantine")
    marked, *fine = frame.collect()
    assert [row[REJECTED] for row in fine] == [None, None]
    assert marked[REJECTED]["reason"].split("; ") == [
        "a: '2.7' is not int: it would become 2",
        "b: '1.239' is not decimal(10,2): it would become 1.24",
        "c: '9007199254740993' is not double: it would become 9.007199254740992E15",
        "d: '2' is not boolean: it would become true",
        "e: '2026-01-01 00:00:00.5' is not bigint: it would become 1767225600",
        "f: '[1.0, 2.5]' is not array<int>",
        "g: '{0.5}' is not struct<x:int>",
        "h: '{k -> 1.5}' is not map<string,int>",
        "i: '1.239e0' is not decimal(10,2): it would become 1.24",
    ]
    nulls = orders.frame(VALUES, type="cast", columns=KINDS, on_error="set_null").collect()
    assert list(nulls[0]) == [None] * 9
    cut = orders.frame(VALUES, type="cast", columns=KINDS, exact=False).collect()
    assert (cut[0]["a"], cut[0]["f"], cut[0]["d"]) == (2, [1, 2], True)
    with pytest.raises(PySparkException) as failed:
        orders.frame(VALUES, type="cast", columns={"f": "array<int>"}).collect()
    assert translate(failed.value).message == 'the value {"v":[1.0,2.5]} is not array<int>'


def test_rounding_that_a_type_is_made_for_is_no_loss(orders: Bench) -> None:
    source = (
        "SELECT 0.1BD a, 0.1D b, timestamp'2026-01-01 12:00:00' c, 7 d, '0.1' e, 'x' f, "
        "array(1) g, named_struct('n', 1) h, named_struct('n', '1') i, 0.1BD j"
    )
    kinds = {
        "a": "double",
        "b": "float",
        "c": "date",
        "d": "decimal(3,1)",
        "e": "double",
        "f": "varchar(5)",
        "g": "array<bigint>",
        "h": "struct<n: bigint>",
        "i": "struct<n: decimal(4,2)>",
        "j": "decimal(8,4)",
    }
    (row,) = orders.frame(source, type="cast", columns=kinds).collect()
    assert (row["a"], row["d"], str(row["c"]), row["g"]) == (0.1, Decimal("7.0"), "2026-01-01", [1])


def test_dates_and_numbers_are_read_as_people_write_them(orders: Bench) -> None:
    source = "SELECT '31.01.2026' d, '31.01.2026 08:15' t, '1 234,5' n, ' 12' w, '1,5' c"
    columns = {"d": "date", "t": "timestamp_ntz", "n": "double", "w": "int", "c": "int"}
    formats = {"d": "dd.MM.yyyy", "t": "dd.MM.yyyy HH:mm", "n": "1 234,56", "w": "1234"}
    (row,) = orders.rows(source, type="cast", columns=columns, formats=formats, on_error="set_null")
    assert [str(value) for value in row] == [
        "2026-01-31",
        "2026-01-31 08:15:00",
        "1234.5",
        "12",
        "None",
    ]
    with pytest.raises(PySparkException) as failed:
        orders.rows(source, type="cast", columns={"t": "date"}, formats={"t": "dd.MM.yyyy"})
    told = translate(failed.value)
    assert told.message == "the value '31.01.2026 08:15' is not date spelled as dd.MM.yyyy"
    with pytest.raises(SpecError, match='formats names "id", which is int, not text'):
        orders.frame(type="cast", columns={"id": "double"}, formats={"id": "1234,56"})


def test_decimals_of_csv_files_are_not_rounded_either(
    spark: SparkSession, bench: Workbench
) -> None:
    bench.write("in/k=1.5/a.csv", 'n,id\n1.230,1\n1.239,2\n"1,234.5",3\nx,4\n 5,5\n,6\n7\n')
    typed = 'schema: "id int, k decimal(3,1), n decimal(10,2)"'
    load = "load: {type: delta, table: t, mode: overwrite}\n"
    bench.pipeline("p", f"extract: {{type: csv, path: in, {typed}}}\n{load}")
    said = bench.fail("p").stderr
    assert 'a.csv:3: column "n": "1.239" is not decimal(10,2): it would become 1.24' in said
    assert "on_error: quarantine" in said
    source = made(
        "source",
        "csv",
        path="in",
        on_error="quarantine",
        schema="id int, k decimal(3,1), n decimal(10,2)",
    )
    ctx = context(spark, bench.root)
    found = source.read(ctx, source.bounds(ctx.project_ctx, None))
    fine = [tuple(row) for row in found.filter(f"{REJECTED} is null").drop(REJECTED).collect()]
    cents = [Decimal("1.23"), Decimal("1234.50"), None]
    assert fine == [(i, Decimal("1.5"), n) for i, n in zip((1, 3, 6), cents, strict=True)]
    marks = found.select(f"{REJECTED}.*").filter("raw is not null")
    told = {row["raw"]: row["reason"].partition("a.csv: ")[2] for row in marks.collect()}
    assert told == {
        "1.239,2": 'column "n": "1.239" is not decimal(10,2)',
        "x,4": 'column "n": "x" is not decimal(10,2)',
        " 5,5": 'column "n": " 5" is not decimal(10,2)',
        "7": "the row has 1 cells, the columns are 2",
    }
    wider = source.model_copy(update={"schema_": "id int, k decimal(3,1), n decimal(10,3)"})
    columns = StructType.fromJson(json.loads(marks.head(1)[0]["columns"]))
    again = wider.reread(ctx, marks.select("raw", "row"), columns).filter(f"{REJECTED} is null")
    assert [row["n"] for row in again.collect()] == [Decimal("1.239")]
    other = source.model_copy(update={"options": {"locale": "de-DE"}, "path": "de.csv"})
    bench.write("de.csv", 'n,id,k\n"1,5",1,2\n')
    for policy in ("fail", "quarantine"):
        german = other.model_copy(update={"on_error": policy})
        rows = german.read(ctx, german.bounds(ctx.project_ctx, None)).collect()
        assert rows[0]["n"] == Decimal("1.50")
    kept = german.reread(ctx, spark.sql("SELECT '\"1,5\";1;2' raw, '{}' row"), columns)
    assert kept.count() == 1


JSON = """
extract: {type: json, path: "in/*.json", incremental: true, on_error: ON_ERROR,
  unknown_columns: ignore,
  schema: "id int, n decimal(SCALE), s struct<`a-b`: decimal(4,1)>, l array<decimal(4,1)>,
    m map<string, decimal(4,1)>"}
transform: [{type: cast, columns: {n: "decimal(30,5)"}}]
load: {type: delta, table: t}
"""
FITS = [
    '{"id": 1, "n": 1.2300, "s": {"a-b": 0.50}, "l": [1.5, null], "m": {}}',
    '{"id": 2, "n": "1,234.5", "s": null}',
    '[{"id": 3, "n": 12e-1, "other": 0.123456}, {"id": 4, "n": null}]',
    "{'id': 5, 'n': 5}",
]
LOSES = {
    '{"id": 11, "n": 1.239}': 'column "n": "1.239" is not decimal(12,2)',
    '{"id": 12, "n": "1,234.567"}': 'column "n": "1,234.567" is not decimal(12,2)',
    '{"id": 13, "n": 12345678901234567890.12}': (
        'column "n": "12345678901234567890.12" is not decimal(12,2)'
    ),
    '{"id": 14, "s": {"a-b": 0.55}}': 'column "s.a-b": "0.55" is not decimal(4,1)',
    '{"id": 15, "l": [1, 0.55]}': 'column "l": "[1,0.55]" is not array<decimal(4,1)>',
    '{"id": 17, "m": {"k": 0.55}}': 'column "m": "{"k":0.55}" is not map<string,decimal(4,1)>',
    '{"id": 2.7}': 'column "id": "2.7" is not int',
    "{'id': 16, 'n': 1.239}": "not JSON",
}


def test_decimals_of_json_records_are_not_rounded_either(bench: Workbench) -> None:
    text = JSON.replace("SCALE", "12,2")
    bench.pipeline("p", text.replace("ON_ERROR", "fail"))
    for line, said in list(LOSES.items())[:3]:
        bench.write("in/a.json", f"{FITS[0]}\n{line}\n")
        assert f"a.json:2: {said}" in bench.fail("p").stderr
    bench.write("in/a.json", "\n".join([*FITS, *LOSES]))
    text = text.replace("ON_ERROR", "quarantine")
    bench.pipeline("p", text)
    batch = bench.run("p")["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"]) == (13, 8)
    assert [(row["id"], row["n"]) for row in bench.rows("t")] == [
        (1, Decimal("1.23")),
        (2, Decimal("1234.50")),
        (3, Decimal("1.20")),
        (4, None),
        (5, Decimal("5.00")),
    ]
    kept = {row["raw"]: row for row in bench.rows("p__quarantine")}
    lines = {line: n for n, line in enumerate([*FITS, *LOSES], 1)}
    for raw, said in LOSES.items():
        assert kept[raw]["reason"].endswith(f"a.json:{lines[raw]}: {said}")
    assert json.loads(kept['{"id": 11, "n": 1.239}']["row"])["n"] is None
    bench.pipeline("p", text.replace("12,2", "23,3"))
    assert bench.cli("quarantine", "replay", "p", "--quiet").code == 0
    found = {row["id"]: row["n"] for row in bench.rows("t") if row["id"] > 10}
    assert found == {
        11: Decimal("1.239"),
        12: Decimal("1234.567"),
        13: Decimal("12345678901234567890.120"),
    }
    bench.write("in/a.json", '{"id": 6, "n": "1,5"}\n')
    german = text.replace("on_error", "options: {locale: de-DE}, on_error")
    bench.pipeline("q", german.replace("table: t", "table: u"))
    bench.run("q")
    assert [row["n"] for row in bench.rows("u")] == [Decimal("1.50")]
