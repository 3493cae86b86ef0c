"""CSV files: whatever their names and quirks, no row is lost and no bad cell goes unnamed."""

from __future__ import annotations

import bz2
import gzip

import pytest

from tests.workbench import Answer, Workbench

LOAD = "\nload: {type: delta, table: t, mode: overwrite, overwrite_schema: true}\n"
TYPED = 'schema: "id int, v string, n double"'


def pipeline(bench: Workbench, options: str, more: str = "") -> None:
    bench.pipeline("p", f"extract: {{type: csv, {options}}}\n{more}{LOAD}")


def read(bench: Workbench, options: str) -> list[dict[str, object]]:
    pipeline(bench, options)
    bench.run("p")
    return bench.rows("t")


def refused(bench: Workbench, options: str, more: str = "") -> Answer:
    pipeline(bench, options, more)
    return bench.fail("p")


def test_files_are_found_by_glob_folder_and_name_whatever_the_name(bench: Workbench) -> None:
    names = ["plain.csv", "with space.csv", "[brackets]{1}.csv", "100%25.csv", "star*.csv", "ü.csv"]
    for i, name in enumerate(names):
        bench.write(f"data/sub/{name}", f"id\n{i}\n")
    bench.write("data/_hidden.csv", "id\n99\n")
    bench.write("data/.hidden.csv", "id\n99\n")
    expected = [{"id": str(i)} for i in range(len(names))]
    assert read(bench, "path: data") == expected
    assert read(bench, 'path: "data/**/*.csv"') == expected
    assert read(bench, 'path: "data/sub/[[]br*.csv"') == [{"id": "2"}]
    assert read(bench, 'path: "data/sub/[brackets]{1}.csv"') == [{"id": "2"}]


def test_packed_files_quotes_line_breaks_and_byte_order_marks_are_read(bench: Workbench) -> None:
    (bench.root / "data").mkdir()
    (bench.root / "data/a.csv.gz").write_bytes(gzip.compress(b'id,v\n1,"x, ""y"""\n'))
    (bench.root / "data/b.csv.bz2").write_bytes(bz2.compress(b"id,v\n2,plain\n"))
    bench.write("data/c.csv", "\ufeffid,v\n3,\n")
    bench.write("data/d.csv", "")
    assert read(bench, "path: data") == [
        {"id": "1", "v": 'x, "y"'},
        {"id": "2", "v": "plain"},
        {"id": "3", "v": None},
    ]
    bench.write("lines.csv", 'id,v\n1,"two\nlines"\n')
    assert read(bench, "path: lines.csv, multiline: true") == [{"id": "1", "v": "two\nlines"}]


def test_other_dialects_are_read(bench: Workbench) -> None:
    bench.write("a.txt", "id||v\n1||x\n")
    assert read(bench, 'path: a.txt, delimiter: "||"') == [{"id": "1", "v": "x"}]
    bench.write("b.txt", "1;'x;y';NA\n")
    options = f'path: b.txt, delimiter: ;, quote: "\'", header: false, null_value: NA, {TYPED}'
    assert read(bench, options) == [{"id": 1, "v": "x;y", "n": None}]
    (bench.root / "c.txt").write_bytes('id\t"v\n1\tgr\xf6\xdfe\n'.encode("latin-1"))
    options = 'path: c.txt, delimiter: "\\t", quote: "", encoding: ISO-8859-1'
    assert read(bench, options) == [{"id": "1", '"v': "größe"}]


def test_files_are_read_by_their_own_headers(bench: Workbench) -> None:
    bench.write("data/1.csv", "id,v\n1,x\n")
    (bench.root / "data/2.csv.gz").write_bytes(gzip.compress(b"v,id\ny,2\n"))
    bench.write("data/3.csv", "ID,V\n3,z\n")
    assert [(row["id"], row["v"]) for row in read(bench, "path: data")] == [
        ("1", "x"),
        ("2", "y"),
        ("3", "z"),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2,x,1.5.0", 'in.csv:3: column "n": "1.5.0" is not double'),
        ("2, x,5 6", 'in.csv:3: column "n": "5 6" is not double'),
        (" 2,x,1", 'in.csv:3: column "id": " 2" is not int'),
        ("2,x", "in.csv:3: the row has 2 cells, the columns are 3: 2,x"),
        ("2,x,1,extra", "in.csv:3: the row has 4 cells, the columns are 3"),
    ],
)
def test_a_malformed_row_is_named_with_file_line_column_and_value(
    bench: Workbench, line: str, said: str
) -> None:
    bench.write("in.csv", f"id,v,n\n1,x,1\n{line}\n")
    failed = refused(bench, f"path: in.csv, {TYPED}")
    assert failed.code == 1
    assert said in failed.stderr
    assert "on_error: quarantine" in failed.stderr
    assert bench.version("t") is None


def test_a_value_that_a_later_cast_refuses_is_named_with_its_file_and_line(
    bench: Workbench,
) -> None:
    cast = "transform: [{type: cast, columns: {n: double}}]\n"
    (bench.root / "in.csv.gz").write_bytes(gzip.compress(b"id,n\noops,1\n2,oops\n"))
    failed = refused(bench, "path: in.csv.gz", cast)
    assert 'in.csv.gz:3: column "n": "oops" is not double' in failed.stderr
    bench.write("bare.csv", "2;oops\n")
    cast = "transform: [{type: cast, columns: {_c1: double}}]\n"
    failed = refused(bench, "path: bare.csv, header: false, delimiter: ;", cast)
    assert 'bare.csv:1: column "_c1": "oops" is not double' in failed.stderr
    # a value no cell holds is told without a place rather than with a wrong one
    more = "transform: [{type: derive, columns: {n: \"cast('made' || 'up' as int)\"}}]\n"
    failed = refused(bench, "path: bare.csv, header: false", more)
    assert "'madeup' is not int" in failed.stderr
    assert "bare.csv:" not in failed.stderr


def test_quarantine_keeps_the_raw_text_of_rows_that_do_not_fit(bench: Workbench) -> None:
    bench.write("in.csv", 'id,v,n\n1,x,1\ntwo,"a,b",2\n3,short\n')
    pipeline(bench, f"path: in.csv, on_error: quarantine, {TYPED}")
    batch = bench.run("p")["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"]) == (3, 2)
    assert bench.rows("t") == [{"id": 1, "v": "x", "n": 1.0}]
    quarantined = bench.rows("p__quarantine")
    assert {row["raw"] for row in quarantined} == {'two,"a,b",2', "3,short"}
    found = {row["raw"]: row["reason"].partition("in.csv:")[2] for row in quarantined}
    assert found['two,"a,b",2'] == '3: column "id": "two" is not int'
    assert found["3,short"].startswith("4: ")


def test_a_row_of_too_few_cells_is_found_even_where_nobody_uses_the_missing_ones(
    bench: Workbench,
) -> None:
    bench.write("in.csv", "id,v,n\n1,x\n")
    more = "transform: [{type: select, columns: [v]}]\n"
    assert "the row has 2 cells" in refused(bench, f"path: in.csv, {TYPED}", more).stderr


def test_files_that_are_not_there_are_named(bench: Workbench) -> None:
    bench.write("data/orders.csv", "id\n1\n")
    assert 'did you mean "orders.csv"' in refused(bench, "path: data/order.csv").stderr
    assert 'no file matches "data/*.txt"' in refused(bench, 'path: "data/*.txt"').stderr
    (bench.root / "empty").mkdir()
    assert 'folder "empty" holds no files' in refused(bench, "path: empty").stderr
    assert "does not exist" in refused(bench, "path: nowhere/in.csv").stderr
    bench.write("_data.csv", "id\n1\n")
    assert "Spark passes over such names" in refused(bench, "path: _data.csv").stderr


def test_a_schema_names_its_columns(bench: Workbench) -> None:
    bench.write("a.csv", "id\n1\n")
    assert 'column "int" has no type' in refused(bench, "path: a.csv, schema: int").stderr
