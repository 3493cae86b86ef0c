"""Files whose columns differ: every column goes under its own name, and none is lost unsaid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from deltaworks.contracts.plugin import REJECTED
from deltaworks.engines.spark.errors.translate import translate
from deltaworks.errors import InputError
from tests.conformance.stage import context
from tests.pipelines.test_file_formats import made, put
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PEOPLE = """
extract:
  {type: csv, path: in, incremental: true, schema: "id int, first string, last string",
   on_error: quarantine%s}
checks: [{type: in_range, name: known ids, column: id, max: 2, on_fail: quarantine}]
load: {type: delta, table: people}
"""


def read(spark: SparkSession, root: Path, name: str, **options: Any) -> DataFrame:
    ctx, source = context(spark, root), made("source", name, **options)
    frame: DataFrame = source.read(ctx, source.bounds(ctx.project_ctx, None))
    return frame


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def test_csv_cells_go_under_the_names_in_their_header(bench: Workbench) -> None:
    bench.pipeline("p", PEOPLE % "")
    bench.write("in/1.csv", "id,last,first\n1,Mouse,Mini\n")
    bench.write("in/2.csv", 'First, ID,LAST\nDonald,2,Duck\nDaisy,zwei,Duck\n"Dagobert,3,Duck\n')
    batch = bench.run("p")["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"]) == (4, 2)
    people = [(row["id"], row["first"], row["last"]) for row in bench.rows("people")]
    assert people == [(1, "Mini", "Mouse"), (2, "Donald", "Duck")]
    reasons = sorted(row["reason"].partition("in/2.csv:")[2] for row in bench.rows("p__quarantine"))
    assert reasons[0] == '3: column "id": "zwei" is not int'
    assert reasons[1].startswith("4: ")
    assert "say `multiline: true`" in reasons[1]

    bench.write("in/3.csv", "id,first,surname\n3,Goofy,Goof\n")
    said = bench.fail("p").stderr
    assert "in/3.csv:1: the columns are not those of the schema:" in said
    assert '+ "surname" (not in the schema)' in said
    assert '- "last" (not in the file)' in said
    bench.pipeline("p", PEOPLE % ", unknown_columns: warn, missing_columns: warn")
    told = json.dumps(bench.run("p"))
    assert 'in/3.csv:1: column \\"surname\\" left out: not in the schema' in told
    assert 'in/3.csv:1: column \\"last\\" read as NULL: not in the file' in told
    (goofy,) = [row for row in bench.rows("p__quarantine") if row["rule"] == "known ids"]
    assert json.loads(goofy["row"]) == {"id": 3, "first": "Goofy", "last": None}
    assert goofy["reason"] == "check in_range failed: id = 3"


def test_a_quoted_line_break_hints_at_multiline(bench: Workbench) -> None:
    bench.write("in.csv", 'id,v\n1,"two\nlines"\n')
    bench.pipeline("p", "extract: {type: csv, path: in.csv}\nload: {type: delta, table: t}\n")
    said = bench.fail("p").stderr
    assert "in.csv:3: the row has 1 cells, the columns are 2" in said
    assert "say `multiline: true`" in said


def test_csv_columns_are_kept_left_out_filled_or_taken_by_position(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path, "in/1.csv", "v,id,more\nx,1,m\n")
    put(tmp_path, "in/2.csv", "id\n2\n")
    put(tmp_path, "in/3.csv", "")
    typed = {"path": "in", "schema": "id int, v string", "missing_columns": "fill"}
    kept = read(spark, tmp_path, "csv", **typed, unknown_columns="keep")
    assert kept.schema.simpleString() == "struct<id:int,v:string,more:string>"
    assert rows(kept) == [(1, "x", "m"), (2, None, None)]
    left_out = read(spark, tmp_path, "csv", **typed, unknown_columns="ignore")
    assert rows(left_out) == [(1, "x"), (2, None)]
    with pytest.raises(InputError, match=r'2\.csv:1: .* of the other files:\n  - "v"'):
        read(spark, tmp_path, "csv", path="in")
    found = read(spark, tmp_path, "csv", path="in", missing_columns="fill", infer_schema=True)
    assert found.schema.simpleString() == "struct<v:string,id:int,more:string>"

    by_position = {"path": "in/1.csv", "schema": "a string, b int, c string"}
    assert rows(read(spark, tmp_path, "csv", **by_position, columns_by="position")) == [
        ("x", 1, "m")
    ]
    put(tmp_path, "bare.csv", "1;2\n")
    bare = {"path": "bare.csv", "header": False, "delimiter": ";"}
    assert rows(read(spark, tmp_path, "csv", **bare, schema="b int, a int")) == [(1, 2)]
    assert rows(read(spark, tmp_path, "csv", **bare)) == [("1", "2")]


def test_headers_are_found_wherever_they_are(spark: SparkSession, tmp_path: Path) -> None:
    typed = {"schema": "id int, v string"}
    packed = pa.compress(b"v,id\nx,1\n", codec="zstd", asbytes=True)
    put(tmp_path, "a.csv.zst", packed)
    assert rows(read(spark, tmp_path, "csv", path="a.csv.zst", **typed)) == [(1, "x")]
    put(tmp_path, "b.csv", "# said by hand\nv,id\nx,1\n")
    told = {"path": "b.csv", "options": {"comment": "#"}}
    assert rows(read(spark, tmp_path, "csv", **told, **typed)) == [(1, "x")]
    put(tmp_path, "c.csv", 'v,"i\nd"\n"x\ny",1\n')
    lines = read(spark, tmp_path, "csv", path="c.csv", multiline=True)
    assert rows(lines) == [("x\ny", "1")]
    assert lines.columns == ["v", "i\nd"]
    put(tmp_path, "d.csv", "")
    assert rows(read(spark, tmp_path, "csv", path="d.csv", **typed)) == []
    put(tmp_path, "e.csv", "id,v,ID\n1,x,2\n")
    with pytest.raises(InputError, match=r'e\.csv:1: the header names column "id" 2 times'):
        read(spark, tmp_path, "csv", path="e.csv")


def test_rows_in_quarantine_keep_the_order_of_their_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path, "in/day=1/a.csv", "v,id,more\nx,one,m\n")
    options = {"path": "in", "on_error": "quarantine", "ingested_at": True}
    typed = {"schema": "id int, day int, v string", "unknown_columns": "ignore"}
    mark = read(spark, tmp_path, "csv", **options, **typed).select(f"{REJECTED}.*")
    (kept,) = mark.collect()
    assert kept["raw"] == "x,one,m"
    left = StructType.fromJson(json.loads(kept["columns"]))

    def again(**other: Any) -> DataFrame:
        source = made("source", "csv", **{**options, **typed, **other})
        found: DataFrame = source.reread(context(spark, tmp_path), mark.select("raw", "row"), left)
        return found.filter(found[REJECTED].isNull()).drop(REJECTED, "_ingested_at")

    assert [row.asDict() for row in again(schema="id string, day int, v string").collect()] == [
        {"id": "one", "v": "x", "day": 1}
    ]
    wider = again(schema="id string, day int, v string", unknown_columns="keep")
    assert [row.asDict() for row in wider.collect()] == [
        {"id": "one", "v": "x", "more": "m", "day": 1}
    ]
    with pytest.raises(InputError, match=r'rows in quarantine: .*\n  - "w"'):
        again(schema="id string, w int, v string")
    by_position = again(schema="a string, b string, c string", columns_by="position")
    assert [row.asDict() for row in by_position.collect()] == [
        {"a": "x", "b": "one", "c": "m", "day": 1}
    ]


@pytest.mark.parametrize("name", ["avro", "orc", "parquet"])
def test_columns_that_only_some_files_have_are_not_dropped(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    def write(number: int, query: str) -> None:
        spark.sql(query).coalesce(1).write.format(name).save(str(tmp_path / f"in/{number}"))

    write(1, "SELECT 1 id, named_struct('a', 1) s, array(1) l, map('k', 1) m")
    write(2, "SELECT 2L id, 'x' extra, named_struct('a', 2, 'b', 3) s, array(2L) l, map('k', 2L) m")
    with pytest.raises(InputError) as caught:
        read(spark, tmp_path, name, path="in", schema="id bigint, s struct<a: int>")
    assert '+ "l" (not in the schema)' in caught.value.message
    base = {"path": "in", "schema": "id int, s struct<a: bigint>, m map<string, int>"}
    taken = read(spark, tmp_path, name, **base, unknown_columns="ignore")
    assert sorted(str(row) for row in taken.collect()) == [
        "Row(id=1, s=Row(a=1), m={'k': 1})",
        "Row(id=2, s=Row(a=2), m={'k': 2})",
    ]
    kept = read(spark, tmp_path, name, **base, unknown_columns="keep")
    assert kept.schema.simpleString() == (
        "struct<id:int,s:struct<a:bigint,b:int>,m:map<string,int>,l:array<bigint>,extra:string>"
    )
    some = "SELECT 3 id, 'y' extra"
    spark.sql(some).coalesce(1).write.format(name).save(str(tmp_path / "other/1"))
    spark.sql("SELECT 4L id").coalesce(1).write.format(name).save(str(tmp_path / "other/2"))
    with pytest.raises(InputError, match=r'other files:\n  - "extra" \(not in the file\)'):
        read(spark, tmp_path, name, path="other")
    filled = read(spark, tmp_path, name, path="other", missing_columns="fill")
    assert rows(filled) == [(3, "y"), (4, None)]
    assert filled.schema.simpleString() == "struct<id:bigint,extra:string>"
    spark.sql("SELECT 2.5D id").coalesce(1).write.format(name).save(str(tmp_path / "other/3"))
    exact = {"path": "other", "schema": "id int", "unknown_columns": "ignore"}
    with pytest.raises(PySparkException) as failed:
        read(spark, tmp_path, name, **exact).collect()
    told = translate(failed.value)
    assert told.message == "the value 2.5 is not int: it would become 2"
    assert "schema" in told.hint


def test_types_that_differ_between_files_are_told_as_such(
    spark: SparkSession, bench: Workbench
) -> None:
    spark.sql("SELECT 1L id, 'x' v").coalesce(1).write.parquet(str(bench.root / "in/1"))
    spark.sql("SELECT '2' id, 'y' v").coalesce(1).write.parquet(str(bench.root / "in/2"))
    text = "extract: {type: parquet, path: in%s}\nload: {type: delta, table: t}\n"
    bench.pipeline("p", text % "")
    said = bench.fail("p").stderr
    assert 'column "id" is bigint in ' in said
    assert " and string in " in said
    assert "/in/2/part-" in said
    bench.pipeline("p", text % ', schema: "id string", unknown_columns: keep')
    bench.run("p")
    assert [(row["id"], row["v"]) for row in bench.rows("t")] == [("1", "x"), ("2", "y")]


def test_json_fields_outside_the_schema_are_not_dropped(
    spark: SparkSession, bench: Workbench
) -> None:
    bench.write("in/a.json", '{"id": 1, "s": {"n": 1}}\n')
    bench.write("in/b.json", '{"id": 2}\n{"id": 3, "s": {"n": 2, "m": [1]}, "more": true}\n')
    text = 'extract: {type: json, path: in, schema: "id int, s struct<n: int>"%s}\n'
    load = "load: {type: delta, table: t}\n"
    bench.pipeline("p", text % "" + load)
    said = bench.fail("p").stderr
    assert "in/b.json:2: the columns are not those of the schema:" in said
    assert '+ "more" (not in the schema)' in said
    assert '+ "s.m" (not in the schema)' in said
    bench.pipeline("p", text % ", unknown_columns: warn" + load)
    told = json.dumps(bench.run("p"))
    assert 'in/b.json:2: columns \\"more\\", \\"s.m\\" left out' in told
    assert [row["id"] for row in bench.rows("t")] == [1, 2, 3]

    typed = {"path": "in", "schema": "id int, s struct<n: int>"}
    kept = read(spark, bench.root, "json", **typed, unknown_columns="keep", on_error="quarantine")
    shape = "struct<id:int,s:struct<n:int,m:array<bigint>>,more:boolean"
    assert kept.drop(REJECTED).schema.simpleString() == f"{shape}>"
    left = kept.drop(REJECTED).schema
    source = made("source", "json", **typed, unknown_columns="keep", on_error="quarantine")
    raw = spark.sql("""SELECT '{"id": "x"}' raw, '{}' row UNION ALL
                       SELECT '{"id": 4, "s": {"n": "y"}}', '{}' UNION ALL
                       SELECT '[{"id": "z"}, 5]', '{}' UNION ALL SELECT 'oops', '{}'""")
    found = source.reread(context(spark, bench.root), raw, left)
    assert found.drop(REJECTED).schema.simpleString() == f"{shape}>"
    reasons = [row["reason"] for row in found.select(f"{REJECTED}.*").collect()]
    assert [reason.removeprefix("read once more: ") for reason in reasons] == [
        'column "id": "x" is not int',
        'column "s.n": "y" is not int',
        "the record does not fit the columns",
        "not JSON",
    ]
    assert read(spark, bench.root, "json", **typed, unknown_columns="ignore").count() == 3
    with pytest.raises(InputError, match='- "gone" \\(not in the file\\)'):
        read(
            spark,
            bench.root,
            "json",
            path="in/a.json",
            schema="id int, gone int, s struct<n: int>",
            missing_columns="refuse",
        )
    bench.write("c.json", '[{"v": 1,\n "ID": 2}]')
    with pytest.raises(InputError, match=r'c\.json: the record has "ID", which `schema` spells'):
        read(spark, bench.root, "json", path="c.json", schema="Id int, v int", multiline=True)
    bench.write("d.json", "\n")
    assert read(spark, bench.root, "json", path="d.json", schema="id int").count() == 0


REPLAYED = """
extract: {type: json, path: in, schema: "id KIND", on_error: quarantine, unknown_columns: POLICY}
transform: [{type: cast, columns: {id: bigint}}]
load: {type: delta, table: t, merge_schema: true}
"""


def test_fields_of_quarantined_records_are_not_dropped_either(bench: Workbench) -> None:
    def write(kind: str, policy: str) -> None:
        bench.pipeline("p", REPLAYED.replace("KIND", kind).replace("POLICY", policy))

    bench.write("in/a.json", '{"id": 1}\n{"id": 3000000000, "more": true}\n')
    write("int", "ignore")
    bench.run("p")
    write("bigint", "refuse")
    refused = bench.cli("quarantine", "replay", "p")
    assert refused.code == 1
    assert "rows in quarantine: the columns are not those of the schema:" in refused.stderr
    assert '+ "more" (not in the schema)' in refused.stderr
    write("bigint", "keep")
    assert bench.cli("quarantine", "replay", "p").code == 0
    assert bench.rows("t") == [{"id": 1, "more": None}, {"id": 3000000000, "more": True}]
