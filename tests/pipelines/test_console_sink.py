"""Rows on the screen: shown, never kept, and no concern of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.workbench import Workbench

if TYPE_CHECKING:
    import pytest

CONSOLE = "extract: {type: csv, path: in.csv}\nload: {type: console, limit: 2}\n"
BOTH = """
extract: {type: csv, path: in, incremental: true}
load:
  - {type: delta, table: t}
  - {type: console, columns: [v]}
"""


def test_the_first_rows_are_on_the_screen_and_not_in_the_document(bench: Workbench) -> None:
    bench.write("in.csv", f"id,v\n1,[b]bold[/b]\n2,\n3,{'x' * 200}\n")
    bench.pipeline("p", CONSOLE)
    planned = bench.cli("plan", "p").stdout
    assert "would show 2 rows" in planned
    ran = bench.cli("run", "p", "--quiet")
    assert (ran.code, ran.stderr) == (0, "")
    said = ran.stdout.splitlines()
    assert "3 rows read" in said[0]
    assert said[1] == "  console: 2 of 3 rows shown"
    assert [line.split() for line in said[2:]] == [["id", "v"], ["1", "[b]bold[/b]"], ["2", "NULL"]]
    output = bench.run("p")["batches"][0]["outputs"][0]  # one document, and not skipped
    assert (output["committed"], output["note"]) == (False, "2 of 3 rows shown")
    assert "bold" not in str(output)
    bench.pipeline("p", CONSOLE.replace("limit: 2", "limit: 9"))
    assert f"{'x' * 117}..." in bench.cli("run", "p", "--quiet").stdout


def test_a_console_beside_a_table_changes_nothing_about_batches(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltaworks.runtime.ledger.table import Ledger

    bench.write("in/a.csv", "id,v\n1,x\n")
    bench.pipeline("p", BOTH.replace("  - {type: console, columns: [v]}\n", ""))
    bench.run("p")
    bench.write("in/b.csv", "id,v\n2,y\n")
    bench.pipeline("p", BOTH)  # a console that is added later asks for no backfill
    with monkeypatch.context() as cut:
        cut.setattr(Ledger, "done", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert bench.fail("p").code == 130
    (bench.root / "in/b.csv").unlink()  # what was cut off cannot be read again, and need not be
    bench.write("in/c.csv", "id,v\n3,z\n")
    batches = bench.run("p")["batches"]
    assert [(batch["n"], batch["state"]) for batch in batches] == [(2, "done"), (3, "done")]
    assert [row["id"] for row in bench.rows("t")] == ["1", "2", "3"]
    assert bench.run("p")["status"] == "skipped"


def test_a_batch_that_never_reached_its_console_alone_is_done_again(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltaworks.runtime.ledger.table import Ledger

    bench.write("in.csv", "id\n1\n")
    bench.pipeline("p", CONSOLE)
    with monkeypatch.context() as cut:
        cut.setattr(Ledger, "done", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        bench.fail("p")
    (batch,) = bench.run("p")["batches"]
    assert (batch["n"], batch["outputs"][0]["note"]) == (1, "1 of 1 rows shown")


def test_rows_that_are_shown_cannot_be_parked(desk: Workbench) -> None:
    desk.pipeline("p", CONSOLE.replace("limit: 2", "on_failure: park"))
    answered = desk.cli("validate")
    assert answered.code == 2
    assert "is for sinks that keep rows" in answered.stdout + answered.stderr
