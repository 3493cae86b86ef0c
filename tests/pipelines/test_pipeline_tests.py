"""Tests of pipelines: a right one passes, a wrong one shows which rows differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaworks.errors import ConfigError, SpecError
from tests.pipelines.test_preview import everything
from tests.workbench import Workbench, run_cli

pytestmark = pytest.mark.spark

ORDERS = """
extract:
  orders: {type: csv, path: "data/orders_${var:day}.csv", schema: "id bigint, cust bigint, v string, at string", on_error: quarantine}
  customers: {type: delta, table: customers, incremental: true}
transform:
  - {name: typed, type: cast, input: orders, columns: {v: "decimal(12,2)", at: timestamp}}
  - {name: joined, type: join, with: customers, on: [cust], how: left}
checks:
  - {type: expression, rule: "v >= 0", on_fail: quarantine}
  - {type: unique, columns: [id]}
load:
  - {type: delta, path: out/orders, mode: upsert, merge_keys: [id], partition_by: [cust]}
  - {type: parquet, path: out/export, mode: overwrite}
"""  # noqa: E501
RIGHT = """
pipeline: orders
tests:
  - name: orders get their customer
    vars: {day: monday}
    given:
      orders:
        - {id: 1, cust: 7, v: 1.5, at: "2026-01-01 09:00:00"}
        - {id: 2, cust: 8, v: -1, at: null}
        - {id: oops, cust: 8, v: 1, at: null}
        - {id: 3, cust: null, v: 2, at: null}
      customers:
        schema: "cust bigint, name string, since date, tags array<string>"
        rows:
          - {cust: 7, name: ada, since: 2026-01-31, tags: [a, b]}
    expect:
      out/orders:
        - {v: 2, ID: 3, name: null}
        - {v: "1.50", ID: 1, name: ada}
      out/export:
        - {id: 1, since: 2026-01-31, at: "2026-01-01T09:00:00Z", tags: [a, b]}
        - {id: 3, since: null, at: null, tags: null}
      typed:
        - {v: 1.5}
        - {v: 2.00}
        - {v: -1}
    expect_quarantined: 2
  - name: rows come from files
    vars: {day: monday}
    given: {orders: tests/data/orders.csv, customers: {file: tests/data/customers.json}}
    expect:
      joined: [{id: 5, name: bob}]
  - name: an order may come once only
    vars: {day: monday}
    given:
      orders: [{id: 1, cust: 1, v: 1}, {id: 1, cust: 2, v: 1}]
      customers: [{cust: 1, name: ada}]
    expect_error: check_failed
"""
WRONG = """
pipeline: orders
tests:
  - name: rows differ
    vars: {day: monday}
    given:
      orders: [{id: 1, cust: 7, v: 1.5}, {id: 2, cust: 7, v: 3}]
      customers: [{cust: 7, name: ada}]
    expect:
      out/orders: [{id: 1, v: 1.5}, {id: 2, v: 4}, {id: 2, v: 3}, {id: 2, v: 3}]
      out/export: []
    expect_quarantined: 1
  - name: it stops
    vars: {day: monday}
    given:
      orders: [{id: 1, cust: 7, v: x}]
      customers: [{cust: 7, name: ada}]
    expect: {typed: []}
  - name: it does not stop
    vars: {day: monday}
    given:
      orders: [{id: 1, cust: 7, v: 1}]
      customers: [{cust: 7, name: ada}]
    expect_error: check_failed
  - name: the test itself is wrong
    vars: {day: monday}
    given:
      orders: [{id: 1, cust: 7, v: 1}]
      customers: [{cust: 7, name: ada}]
    expect: {typed: [{idd: 1}], joined: [{id: one}], out/orders: [{id: 1}, {v: 1}]}
"""


@pytest.fixture
def shop(bench: Workbench) -> Workbench:
    bench.pipeline("orders", ORDERS)
    bench.write("tests/data/orders.csv", "id,cust,v,at\n5,1,1,\n")
    bench.write("tests/data/customers.json", '{"cust": 1, "name": "bob"}\n')
    bench.write("tests/unrelated.yaml", "some: [other, file]\n")
    return bench


def test_what_is_right_passes_and_nothing_of_the_project_is_touched(shop: Workbench) -> None:
    shop.write("tests/orders.yaml", RIGHT)
    before = everything(shop)
    results = shop.open().test()
    assert [(r.name, r.failures) for r in results] == [
        ("orders get their customer", ()),
        ("rows come from files", ()),
        ("an order may come once only", ()),
    ]
    assert results[0].rows_quarantined == 2
    answer = shop.cli("test", "rows come from files", "--quiet")
    assert (answer.code, answer.stderr) == (0, "")
    first, last = answer.stdout.splitlines()
    assert first.startswith("ok    orders: rows come from files (")
    assert last.startswith("1 test: 1 passed, 0 failed in ")
    assert everything(shop) == before


def test_what_is_wrong_fails_with_the_rows_that_differ(shop: Workbench) -> None:
    shop.write("tests/wrong.yaml", WRONG)
    answer = shop.cli("test", "tests/wrong.yaml", "--json", "--quiet")
    document = answer.json
    assert answer.code == 1
    assert (document["ok"], document["passed"], document["failed"]) == (False, 0, 4)
    rows, stops, goes_on, itself = document["tests"]
    assert set(rows) == {
        "name",
        "pipeline",
        "file",
        "line",
        "passed",
        "duration_s",
        "rows_quarantined",
        "failures",
    }
    assert rows["line"] == 4
    assert rows["failures"] == [
        {
            "what": "expect_quarantined",
            "message": "expected 1 row quarantined, found 0",
            "missing": [],
            "unexpected": [],
        },
        {
            "what": "out/orders",
            "message": "2 rows missing",
            "missing": [{"id": 2, "v": "3.00"}, {"id": 2, "v": "4.00"}],
            "unexpected": [],
        },
        {
            "what": "out/export",
            "message": "2 rows not expected",
            "missing": [],
            "unexpected": [
                {"cust": 7, "id": 1, "v": "1.50", "at": None, "name": "ada"},
                {"cust": 7, "id": 2, "v": "3.00", "at": None, "name": "ada"},
            ],
        },
    ]
    assert stops["failures"][0]["message"].startswith("the run failed: ")
    assert '"x" is not' in stops["failures"][0]["message"]
    assert goes_on["failures"][0]["message"] == (
        'expected the error "check_failed", but the run succeeded'
    )
    assert [failure["message"].splitlines()[0] for failure in itself["failures"]] == [
        'there is no column "idd" to expect',
        '"one" is expected in column "id", whose values are bigint',
        'some of the expected rows name column "id" and some do not',
    ]
    shown = shop.cli("test", "rows differ", "--quiet").stdout
    assert '  tests/wrong.yaml:4: out/orders: 2 rows missing\n    - {"id": 2, "v": "3.00"}' in (
        shown.replace(f"{shop.root}/", "")
    )
    assert '    + {"cust": 7, "id": 1, "v": "1.50", "at": null, "name": "ada"}' in shown


def test_values_of_every_kind_are_given_and_compared(bench: Workbench) -> None:
    query = (
        "SELECT flag, price, box.a AS a, tags[0] AS tag, map(name, price) AS m, "
        "encode(name, 'UTF-8') AS raw, NULL AS nothing FROM input"
    )
    bench.pipeline(
        "kinds",
        f'extract: {{type: delta, table: t}}\ntransform: [{{type: sql, query: "{query}"}}]\n'
        "load: {type: parquet, path: out}\n",
    )
    row = "{flag: true, price: 1.5, box: {a: 1}, tags: [x, y], name: ada}"
    wanted = "{flag: true, price: 1.5, a: 1, tag: x, m: {ada: 1.5}, raw: YWRh, nothing: null}"
    bench.write(
        "tests/kinds.yaml",
        f"pipeline: kinds\ntests:\n  - {{name: a, given: [{row}], expect: [{wanted}]}}\n",
    )
    (result,) = bench.open().test()
    assert result.failures == ()


def test_the_tests_that_init_writes_pass(bench: Workbench) -> None:
    folder = bench.root / "new"
    run_cli("init", str(folder))
    answer = run_cli("test", "--project", str(folder), "--quiet")
    assert answer.code == 0, answer.stdout
    assert answer.stdout.splitlines()[-1].startswith("2 tests: 2 passed, 0 failed in ")
    assert not (folder / "warehouse").exists()


CASE = "pipeline: orders\ntests:\n  - {name: a, vars: {day: x}, given: GIVEN, EXPECT}\n"


@pytest.mark.parametrize(
    ("given", "expect", "message"),
    [
        ("{orders: []}", "expect: {typed: []}", '"given" has no rows for source "customers"'),
        ("{ordres: []}", "expect: {typed: []}", 'has no source "ordres"\n  fix: did you mean "o'),
        (
            "{orders: [], customers: []}",
            "expect: {tpyed: []}",
            'has no sink or step "tpyed"\n  fix: did you mean "typed"?',
        ),
        ("{orders: [], customers: []}", "expect: []", "has several sinks"),
        ("{orders: no.csv, customers: []}", "expect: {typed: []}", "does not exist"),
    ],
)
def test_a_test_that_does_not_fit_its_pipeline_fails_and_says_where(
    shop: Workbench, given: str, expect: str, message: str
) -> None:
    shop.write("tests/a.yaml", CASE.replace("GIVEN", given).replace("EXPECT", expect))
    (result,) = shop.open().test("orders")
    assert message in result.failures[0].message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pipeline: orders\ntest: []\n", 'unknown key "test"'),
        (CASE.replace("GIVEN", "[]").replace(", EXPECT", ""), "a test must expect something"),
        (CASE.replace("GIVEN", "[]").replace("EXPECT", "expect_rows: 1"), 'key "expect_rows"'),
        (
            CASE.replace("GIVEN", "[]").replace("EXPECT", "expect: [], expect_error: x"),
            "leaves no rows to expect",
        ),
        (
            CASE.replace("GIVEN", "[]").replace("EXPECT", "expect: []")
            + "  - {name: a, given: [], expect: []}\n",
            'the name "a" is used more than once',
        ),
    ],
)
def test_a_file_of_tests_that_is_wrong_is_refused_with_its_line(
    desk: Workbench, text: str, message: str
) -> None:
    desk.write("tests/a.yaml", text)
    with pytest.raises(SpecError) as caught:
        desk.open().test()
    assert message in str(caught.value)
    assert Path("tests/a.yaml").name in str(caught.value)


def test_no_tests_and_unknown_ones_are_told(desk: Workbench) -> None:
    with pytest.raises(ConfigError, match="no test is defined in"):
        desk.open().test()
    desk.write("tests/a.yaml", CASE.replace("GIVEN", "[]").replace("EXPECT", "expect: []"))
    with pytest.raises(ConfigError, match='there is no test "ordres"'):
        desk.open().test("ordres")
