"""`preview` shows the rows of any step and leaves everything as it was."""

from __future__ import annotations

import pytest

from tests.workbench import Workbench

pytestmark = pytest.mark.spark

ORDERS = """
extract: {type: csv, path: "data/*.csv", incremental: true}
transform:
  - name: typed
    type: cast
    columns: {id: bigint, amount: "decimal(12,2)", at: timestamp}
    on_error: quarantine
  - {name: taxed, type: derive, columns: {vat: "amount * 0.2", tags: "array(v)"}}
checks:
  - {name: positive, type: expression, rule: "amount >= 0", on_fail: quarantine}
  - {type: row_count, min: 9}
load: {type: delta, table: orders, mode: append}
"""
DATA = """\
id,v,amount,at
1,[red]a,10.5,2026-01-01 09:00:00
2,b,oops,2026-01-01 09:00:00
3,,-1,2026-01-01 09:00:00
4,d,0,
"""


def everything(bench: Workbench) -> dict[str, object]:
    """Every file and folder of the project, with what is in it and when it was written."""
    return {
        str(path.relative_to(bench.root)): (
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(bench.root.rglob("*"))
    }


@pytest.fixture
def shop(bench: Workbench) -> Workbench:
    bench.write("data/one.csv", DATA)
    bench.pipeline("orders", ORDERS)
    return bench


def test_rows_of_every_step_and_no_file_is_touched(shop: Workbench) -> None:
    before = everything(shop)
    project = shop.open()
    source = project.preview("orders", step="source")
    assert [row["amount"] for row in source.rows] == ["10.5", "oops", "-1", "0"]
    assert {c["type"] for c in source.columns} == {"string"}
    assert source.rows_quarantined == 0
    typed = project.preview("orders", step="typed")
    assert [row["id"] for row in typed.rows] == [1, 3, 4]
    assert typed.rows_quarantined == 1
    assert typed.rows[0] == {
        "id": 1,
        "v": "[red]a",
        "amount": "10.50",
        "at": "2026-01-01 09:00:00.000000Z",
    }
    taxed = project.preview("orders", step="taxed")  # before its checks
    assert ([row["id"] for row in taxed.rows], taxed.checks) == ([1, 3, 4], ())
    checked = project.preview("orders", step="positive")
    assert [row["id"] for row in checked.rows] == [1, 4]
    assert checked.rows_quarantined == 2
    last = project.preview("orders", limit=1)
    assert (last.kind, last.step, last.more) == ("load", "orders", True)
    assert last.rows == checked.rows[:1]
    assert [c["type"] for c in last.columns if c["name"] in ("amount", "vat", "tags")] == [
        "decimal(12,2)",
        "decimal(14,3)",
        "array<string>",
    ]
    assert last.notes == ('check "9 <= rows" would stop the run: 2 rows',)
    assert everything(shop) == before


def test_the_screen_is_a_table_with_types_and_tells_what_was_set_aside(shop: Workbench) -> None:
    answer = shop.cli("preview", "orders", "--quiet", "--step", "taxed")
    assert (answer.code, answer.stderr) == (0, "")
    lines = [line.rstrip() for line in answer.stdout.splitlines()]
    assert lines[0].split() == ["id", "v", "amount", "at", "vat", "tags"]
    assert lines[1].split()[:3] == ["bigint", "string", "decimal(12,2)"]
    assert "[red]a" in lines[2]
    assert '["[red]a"]' in lines[2]
    assert lines[3].split()[:2] == ["3", "NULL"]
    assert lines[-1] == '3 rows of transform "taxed"; 1 quarantined'
    document = shop.cli("preview", "orders", "--json", "--quiet", "--limit", "1").json
    assert set(document) == {
        "contract",
        "pipeline",
        "step",
        "kind",
        "columns",
        "rows",
        "more",
        "rows_quarantined",
        "checks",
        "notes",
    }
    assert (document["rows"][0]["vat"], document["more"]) == ("2.100", True)
    first = shop.cli("preview", "orders", "--limit", "1").stdout
    assert 'the first 1 rows of what sink "orders" gets; 2 quarantined' in first


def test_an_unknown_step_gets_the_right_one(shop: Workbench) -> None:
    answer = shop.cli("preview", "orders", "--step", "typd")
    assert answer.code == 2
    assert answer.stderr == (
        'error: pipeline "orders" has no step "typd"\n  fix: did you mean "typed"?\n'
    )


def test_increments_show_what_comes_next_or_everything(shop: Workbench) -> None:
    shop.pipeline("orders", ORDERS.replace("  - {type: row_count, min: 9}\n", ""))
    shop.run("orders")
    before = everything(shop)
    nothing = shop.cli("preview", "orders", "--quiet")
    assert nothing.stdout == "note: nothing is new since batch 1; --full looks at everything\n"
    assert shop.open().preview("orders").rows_quarantined is None
    assert len(shop.open().preview("orders", full=True, step="source").rows) == 4
    assert everything(shop) == before
    shop.write("data/two.csv", "id,v,amount,at\n9,z,1,\n")
    assert [row["id"] for row in shop.open().preview("orders").rows] == [9]


def test_a_value_that_stops_the_step_is_named_with_its_file(shop: Workbench) -> None:
    strict = ORDERS.replace("on_error: quarantine", "on_error: fail")
    shop.pipeline("orders", strict)
    answer = shop.cli("preview", "orders", "--quiet")
    assert answer.code == 1
    assert 'data/one.csv:3: column "amount": "oops" is not' in answer.stderr
