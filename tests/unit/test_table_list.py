"""`table list`: every table of the warehouse by its log, also one that cannot be read; no JVM."""

from __future__ import annotations

import pyarrow as pa
from deltalake import write_deltalake

from tests.workbench import Workbench

ROWS = pa.table({"id": [1, 2, 3]})


def test_tables_are_listed_by_name(desk: Workbench) -> None:
    for name in ("orders", "silver/flights", "_deltaworks/batches", "orders__quarantine", "a.b"):
        write_deltalake(str(desk.table(name)), ROWS)
    write_deltalake(str(desk.table("orders")), ROWS, mode="append")
    desk.write("warehouse/files/part.csv", "a\n1\n")
    found = desk.cli("table", "list", "--json").json["tables"]
    assert [table["name"] for table in found] == ["orders", "orders__quarantine", "silver.flights"]
    first = found[0]
    assert first["location"] == str(desk.table("orders"))
    assert (first["version"], first["rows"], first["files"]) == (1, 6, 2)
    assert first["bytes"] > 0
    assert first["last_write"].endswith("+00:00")
    assert first["problem"] is None
    lines = desk.cli("table", "list").stdout.splitlines()
    assert lines[0].split() == ["table", "version", "rows", "files", "bytes", "last", "write"]
    assert lines[1].split()[:4] == ["orders", "1", "6", "2"]


def test_a_table_that_cannot_be_read_is_listed_with_the_reason(desk: Workbench) -> None:
    write_deltalake(str(desk.table("good")), ROWS)
    write_deltalake(str(desk.table("torn")), ROWS)
    (desk.table("torn") / "_delta_log" / f"{0:020d}.json").write_text("{")
    (desk.table("none") / "_delta_log").mkdir(parents=True)
    answer = desk.cli("table", "list")
    assert answer.code == 0
    assert [line.split()[:2] for line in answer.stdout.splitlines()[1:]] == [
        *(["good", "0"], ["none", "-"], ["torn", "-"])
    ]
    assert "none: it has no commits" in answer.stderr
    assert "is damaged" in answer.stderr


def test_a_warehouse_that_is_not_there_has_no_tables(desk: Workbench) -> None:
    assert desk.cli("table", "list", "--json").json == {"tables": []}
    assert desk.open().tables() == ()
