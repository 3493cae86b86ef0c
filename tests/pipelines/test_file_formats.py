"""Files of every format: what is written is read again, and what is broken is named (P8)."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from deltaworks.contracts.context import BatchWrite
from deltaworks.contracts.registry import find_plugin
from deltaworks.engines.spark.errors.translate import translate
from deltaworks.errors import InputError, SpecError
from deltaworks.model.commit import Txn
from tests.conformance.stage import context
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    "id bigint, `größe` string, d decimal(12,3), ts timestamp, local timestamp_ntz, day date, "
    "s struct<a: int, b: array<string>>, m map<string, double>, f double, yes boolean"
)
ROWS = """
SELECT 1L id, 'a "b", c' `größe`, cast(12.345 AS decimal(12,3)) d,
  timestamp'2026-01-02 03:04:05.678901' ts, timestamp_ntz'2026-01-02 03:04:05.000001' local,
  date'1999-12-31' day,
  named_struct('a', 7, 'b', array('x', null, '')) s, map('k', 0.5D) m, 1.25D f, true yes
UNION ALL SELECT 2L, null, null, null, null, null, null, null, null, null
UNION ALL SELECT 3L, '  ü\\n\\tz ', -0.001BD, timestamp'1900-01-01 23:59:59.999999', null, null,
  named_struct('a', null, 'b', array()), map(), double('NaN'), false
"""


def made(kind: str, name: str, **options: Any) -> Any:
    plugin = find_plugin(kind, name)
    assert plugin is not None
    return plugin.model_validate(options)


def write(spark: SparkSession, root: Path, name: str, frame: DataFrame, **options: Any) -> None:
    batch = BatchWrite(n=1, txn=Txn("w", 1), user_metadata="")
    made("sink", name, path="out", **options).write(context(spark, root), frame, batch)


def read(spark: SparkSession, root: Path, name: str, since: Any = None, **options: Any) -> Any:
    ctx, source = context(spark, root), made("source", name, **options)
    return source.read(ctx, source.bounds(ctx.project_ctx, since))


def put(root: Path, name: str, content: str | bytes) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def texts(frame: DataFrame) -> list[str]:
    """Rows as text, in which NaN equals NaN."""
    return sorted(str(row) for row in frame.collect())


@pytest.mark.parametrize("name", ["avro", "json", "orc", "parquet"])
def test_every_type_is_read_as_it_was_written(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.sql(ROWS)
    write(spark, tmp_path, name, frame)
    declared = {"schema": COLUMNS} if name == "json" else {}
    found = read(spark, tmp_path, name, path="out", **declared)
    assert found.schema.simpleString() == frame.schema.simpleString()
    assert texts(found) == texts(frame)


def test_csv_is_read_as_it_was_written(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(f"SELECT * EXCEPT (s, m), '' empty, 'NULL?' odd FROM ({ROWS})")
    options = {"null_value": "NULL", "delimiter": ";"}
    write(spark, tmp_path, "csv", frame, compression="gzip", **options)
    assert list((tmp_path / "out").glob("*.csv.gz"))
    columns = COLUMNS.replace("s struct<a: int, b: array<string>>, m map<string, double>, ", "")
    found = read(
        spark,
        tmp_path,
        "csv",
        path="out",
        multiline=True,
        schema=f"{columns}, empty string, odd string",
        **options,
    )
    assert texts(found) == texts(frame)
    # without a text of its own NULL is an empty cell, and so is an empty text
    wide = {"encoding": "UTF-16"}
    write(spark, tmp_path / "plain", "csv", spark.sql("SELECT '' v, 'ü' w"), **wide)
    found = read(spark, tmp_path / "plain", "csv", path="out", multiline=True, **wide)
    assert texts(found) == ["Row(v=None, w='ü')"]


@pytest.mark.parametrize(
    ("name", "query", "said"),
    [
        ("csv", "SELECT array(1) a", 'csv cannot hold column "a" of type array<int>'),
        ("csv", "SELECT X'00' b", 'csv cannot hold column "b", which is binary'),
        ("avro", "SELECT 1 `a b`", 'Avro files cannot have a column named "a b"'),
    ],
)
def test_columns_that_a_format_cannot_hold_are_named(
    name: str, query: str, said: str, spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises((SpecError, PySparkException)) as caught:
        write(spark, tmp_path, name, spark.sql(query))
    error = caught.value if isinstance(caught.value, SpecError) else translate(caught.value)
    assert isinstance(error, SpecError)
    assert said in error.message
    assert error.hint
    assert list(tmp_path.iterdir()) == []


def test_packed_text_is_read_in_every_format(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "a.json.gz", gzip.compress(b'{"id": 1}\n{"id": 2}\n'))
    assert texts(read(spark, tmp_path, "json", path="a.json.gz")) == ["Row(id=1)", "Row(id=2)"]
    put(tmp_path, "a.txt.gz", gzip.compress(b"x\ny\n"))
    assert texts(read(spark, tmp_path, "text", path="a.txt.gz")) == [
        "Row(value='x')",
        "Row(value='y')",
    ]
    whole = read(spark, tmp_path, "text", path="a.txt.gz", whole_files=True)
    assert texts(whole) == ["Row(value='x\\ny\\n')"]
    put(tmp_path, "a.csv.gz", gzip.compress(b"id,v,t\n1,x,2026-01-01\n20,,2026-01-02\n"))
    found = read(spark, tmp_path, "csv", path="a.csv.gz", infer_schema=True)
    assert found.schema.simpleString() == "struct<id:int,v:string,t:date>"
    put(tmp_path, "b.csv.zst", pa.compress(b"id\n1\n", codec="zstd", asbytes=True))
    assert texts(read(spark, tmp_path, "csv", path="b.csv.zst")) == ["Row(id='1')"]


def test_other_encodings_are_read(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "l1.txt", "größe\n".encode("latin-1"))
    put(tmp_path, "u16.txt", "größe\n".encode("utf-16"))
    put(tmp_path, "u16.json", '{"v": "größe"}'.encode("utf-16"))
    latin = read(spark, tmp_path, "text", path="l1.txt", encoding="ISO-8859-1")
    wide = read(spark, tmp_path, "text", path="u16.txt", encoding="UTF-16", whole_files=True)
    document = read(spark, tmp_path, "json", path="u16.json", encoding="UTF-16", multiline=True)
    assert [f.collect()[0][0] for f in (latin, wide, document)] == ["größe", "größe\n", "größe"]


def test_documents_are_records_or_arrays_of_them(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "in/a.json", '[\n{"id": 1, "s": {"x": [1.5]}},\n{"id": 2}\n]')
    put(tmp_path, "in/b.json", '{\n"id": 3\n}')
    frame = read(spark, tmp_path, "json", path="in", multiline=True)
    assert frame.schema.simpleString() == "struct<id:bigint,s:struct<x:array<double>>>"
    assert sorted(row["id"] for row in frame.collect()) == [1, 2, 3]
    put(tmp_path, "in/c.json", '{"id": 4}\n{"id": 5}')
    with pytest.raises(InputError, match=r"c\.json.* holds more than one document"):
        read(spark, tmp_path, "json", path="in", multiline=True)
    put(tmp_path, "none.json", "\n")
    with pytest.raises(InputError, match="hold no record that would tell their columns"):
        read(spark, tmp_path, "json", path="none.json")


@pytest.mark.parametrize(("name", "file"), [("csv", "id\n{}\n"), ("json", '{{"id": {}}}\n')])
def test_folders_keep_their_values_when_only_some_files_are_read(
    name: str, file: str, spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path, f"in/code=007/day=2026-01-01/a.{name}", file.format(1))
    source, ctx = made("source", name, path="in", incremental=True), context(spark, tmp_path)
    first = source.bounds(ctx.project_ctx, None)
    put(tmp_path, f"in/code=N%2FA/day=2026-01-02/b+c.{name}", file.format(2))
    second = source.bounds(ctx.project_ctx, first)
    assert [len(taken.files) for taken in (first, second)] == [1, 1]
    rows = [
        source.read(ctx, taken).select("id", "code", "day").collect() for taken in (first, second)
    ]
    assert [tuple(map(str, row)) for part in rows for row in part] == [
        ("1", "007", "2026-01-01"),
        ("2", "N/A", "2026-01-02"),
    ]
    typed = read(
        spark,
        tmp_path,
        name,
        path=f"in/code=*/**/*.{name}",
        schema="id int, code string",
        partition_types={"day": "date"},
        source_file=True,
        ingested_at=True,
    )
    assert typed.schema.simpleString() == (
        "struct<id:int,code:string,day:date,_source_file:string,_ingested_at:timestamp>"
    )
    found = sorted((row["id"], row["_source_file"]) for row in typed.collect())
    assert found[1] == (2, str(tmp_path / f"in/code=N%2FA/day=2026-01-02/b+c.{name}"))
    moments = {row[0] for row in typed.selectExpr("string(_ingested_at)").collect()}
    assert moments == {"2026-01-01 00:00:00"}  # that of the run, though each file was another task


def test_types_of_folders_are_checked(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "in/day=soon/a.txt", "x")
    with pytest.raises(SpecError, match="no folder is called dya=") as caught:
        read(spark, tmp_path, "text", path="in", partition_types={"dya": "date"})
    assert 'did you mean "day"' in caught.value.hint
    with pytest.raises(Exception, match="soon") as failed:
        read(spark, tmp_path, "text", path="in", partition_types={"day": "date"}).collect()
    assert translate(failed.value).message == 'folder "day=soon": "soon" is not date'
    put(tmp_path, "own.json", '{"_source_file": 1}')
    with pytest.raises(InputError, match='have a column "_source_file" of their own'):
        read(spark, tmp_path, "json", path="own.json", source_file=True)


@pytest.mark.parametrize("name", ["avro", "orc"])
def test_columns_are_taken_and_typed_as_the_file_says(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    query = "SELECT '7' id, named_struct('a', 1, 'b', 2) s, 0 more, 'nl' country"
    write(spark, tmp_path, name, spark.sql(query), partition_by=["country"])
    forced = {
        "path": "out",
        "schema": "s struct<b: string, a: bigint>, id int",
        "unknown_columns": "ignore",
    }
    frame = read(spark, tmp_path, name, **forced)
    assert frame.schema.simpleString() == (
        "struct<s:struct<b:string,a:bigint>,id:int,country:string>"
    )
    assert [str(row) for row in frame.collect()] == ["Row(s=Row(b='2', a=1), id=7, country='nl')"]
    with pytest.raises(InputError) as caught:
        read(spark, tmp_path, name, path="out", schema="idd int, s struct<a: int, b: int>")
    assert '+ "id" (not in the schema)' in caught.value.message
    assert '- "idd" (not in the file)' in caught.value.message


LOAD = "\nload: {type: delta, table: t, mode: overwrite, overwrite_schema: true}\n"


def refused(bench: Workbench, source: str, steps: str = "") -> str:
    bench.pipeline("p", f"extract: {{{source}}}\n{steps}{LOAD}")
    failed = bench.fail("p")
    assert failed.code == 1
    assert bench.version("t") is None
    assert len(failed.stderr.splitlines()) <= 6
    return failed.stderr


@pytest.mark.parametrize(("name", "kind"), [("avro", "an Avro"), ("orc", "an ORC")])
def test_a_damaged_file_is_named(
    name: str, kind: str, spark: SparkSession, bench: Workbench
) -> None:
    whole = bench.root / "in"
    spark.range(1000).coalesce(1).write.format(name).save(str(whole))
    data = next(whole.glob("part-*"))
    content = data.read_bytes()
    bad = put(bench.root, f"in/bad.{name}", b"something else")
    assert f'file "{bad}" is not {kind} file' in refused(bench, f"type: {name}, path: in")
    bad.write_bytes(b"")
    assert f'file "{bad}" is not {kind} file' in refused(bench, f"type: {name}, path: in")
    middle = len(content) // 2
    bad.write_bytes(content[: middle - 40] + b"\xff" * 80 + content[middle + 40 :])
    said = refused(bench, f"type: {name}, path: in")
    assert f'file "{bad}"' in said
    assert "check that it was written completely" in said


def test_a_broken_record_is_named_with_its_file_line_and_value(bench: Workbench) -> None:
    typed = 'schema: "id int, s struct<n: int>"'
    source = f"type: json, path: in.json, {typed}"
    bench.write("in.json", '{"id": 1}\n{"id": "two"}\n')
    said = refused(bench, source)
    assert 'in.json:2: column "id": "two" is not int' in said
    assert "on_error: quarantine" in said
    bench.write("in.json", '{"id": 1}\n\n{"id": 2,}\n')
    assert "in.json:3: not JSON" in refused(bench, "type: json, path: in.json")
    assert "in.json:3: not JSON" in refused(bench, source)
    bench.write("in.json", '[{"id": 1},\n {"id": 2, "s": {"n": "x"}}]')
    said = refused(bench, f"{source}, multiline: true")
    assert 'in.json: column "s.n": "x" is not int' in said
    cast = "transform: [{type: cast, columns: {id: int}}]\n"
    bench.write("in.json", '{"id": "1"}\n{"id": "oops"}\n')
    said = refused(bench, "type: json, path: in.json", cast)
    assert 'in.json:2: column "id": "oops" is not int' in said
    (bench.root / "in.txt").write_bytes("größe".encode("latin-1"))
    assert "in.txt:1 is not UTF-8 text" in refused(bench, "type: text, path: in.txt")


BROKEN = """
extract:
  {{type: json, path: in, incremental: true, schema: "id {kind}, n double", on_error: quarantine,
    source_file: true, ingested_at: true, options: {{allowSingleQuotes: {quotes}}}}}
load: {{type: delta, table: t}}
"""


def test_broken_lines_are_set_aside_and_come_back_when_they_can_be_read(bench: Workbench) -> None:
    bench.pipeline("p", BROKEN.format(kind="int", quotes="false"))
    bench.write("in/day=01/a.json", '{"id": 1, "n": 0.5}\n{\'id\': 2}\n')
    bench.write("in/day=02/b.json", '{"id": 3000000000}\n{"id": ...\n')
    batch = bench.run("p")["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"]) == (4, 3)
    kept = bench.rows("p__quarantine")
    assert {row["raw"] for row in kept} == {"{'id': 2}", '{"id": 3000000000}', '{"id": ...'}
    assert {row["rule"] for row in kept} == {"json: the record fits the columns"}
    reasons = {row["reason"].removeprefix(f"in {bench.root}/in/day=") for row in kept}
    misfit = 'column "id": "3000000000" is not int'
    assert reasons == {"01/a.json:2: not JSON", f"02/b.json:1: {misfit}", "02/b.json:2: not JSON"}
    bench.pipeline("p", BROKEN.format(kind="int", quotes="true"))
    answered = bench.cli("quarantine", "replay", "p", "--json", "--quiet")
    batch = answered.json["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"]) == (3, 2)
    rows = [(r["id"], r["n"], r["day"], Path(r["_source_file"]).name) for r in bench.rows("t")]
    assert sorted(rows) == [(1, 0.5, "01", "a.json"), (2, None, "01", "a.json")]
    moments = [row["_ingested_at"] for row in bench.rows("t")]
    assert len(set(moments)) == 2  # a row that is read once more is ingested then
    assert all(moment <= datetime.now(UTC) for moment in moments)
    bench.write("in/day=03/c.json", '{"id": 4}\n')
    assert bench.run("p")["batches"][0]["rows_read"] == 1
    assert [row["day"] for row in bench.rows("t") if row["id"] == 4] == ["03"]


def test_a_plan_shows_the_columns_that_were_found(bench: Workbench) -> None:
    bench.write("in/day=1/a.csv", "id,v\n1,x\n")
    bench.pipeline("p", f"extract: {{type: csv, path: in, infer_schema: true}}{LOAD}")
    said = bench.cli("plan", "p", "--quiet").stdout
    assert "columns found: id int, v string, day string\n" in said
    bench.pipeline("p", f'extract: {{type: csv, path: in, schema: "id int, v string"}}{LOAD}')
    assert "columns found" not in bench.cli("plan", "p", "--quiet").stdout


def test_files_that_could_not_be_read_together_are_not_put_side_by_side(
    bench: Workbench,
) -> None:
    bench.write("in.csv", "id,v\n1,x\n")
    text = "extract: {{type: csv, path: in.csv}}\nload: {{type: {0}, path: out, mode: {1}}}\n"
    bench.pipeline("p", text.format("csv", "append"))
    bench.run("p")
    bench.write("in.csv", "v,id\nx,1\n")
    assert "the rows have the columns v, id; those in folder" in bench.fail("p").stderr
    bench.pipeline("p", text.format("json", "append"))
    assert 'out" holds csv files' in bench.fail("p").stderr
    assert [path.suffix for path in sorted((bench.root / "out").glob("batch*"))] == [".csv"]
    bench.pipeline("p", text.format("json", "overwrite"))
    bench.run("p")
    (file,) = (bench.root / "out").glob("part-*.json")
    assert json.loads(file.read_text()) == {"v": "x", "id": "1"}


def test_no_sink_gets_a_batch_that_a_folder_will_not_take(bench: Workbench) -> None:
    bench.write("in.csv", "id\n1\n")
    bench.write("out/mine.txt", "x")
    bench.pipeline(
        "p",
        "extract: {type: csv, path: in.csv}\n"
        "load: [{type: delta, table: t}, {type: csv, path: out}]\n",
    )
    assert 'folder "out" exists already' in bench.fail("p").stderr
    assert bench.version("t") is None


def test_a_failure_elsewhere_is_not_blamed_on_good_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path, "in.csv", "id\n1\n")
    ctx, source = context(spark, tmp_path), made("source", "csv", path="in.csv")
    error = InputError("another file cannot be read", context={"path": "elsewhere"})
    assert source.explain_failure(ctx, source.bounds(ctx.project_ctx, None), error) is error
