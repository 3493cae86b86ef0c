"""What a run says it did with rows adds up, step by step; what nobody counted is null, with why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

pytestmark = pytest.mark.spark

TEN = "id,amount\n" + "".join(f"{n},{'x' if n < 3 else n}\n" for n in range(10))
CAST = "{type: cast, columns: {id: bigint, amount: bigint}, on_error: quarantine}"


def fates(batch: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Of each step: rows in, passed on, quarantined and dropped."""
    names = ("rows_in", "rows", "rows_quarantined", "rows_dropped")
    return {step["name"]: tuple(step[name] for name in names) for step in batch["steps"]}


def assert_adds_up(batch: dict[str, Any], *steps: str) -> None:
    """Every row that came into these steps is accounted for."""
    for name, (rows_in, rows, quarantined, dropped) in fates(batch).items():
        assert name not in steps or rows_in == rows + quarantined + dropped, name


def test_rows_that_an_append_quarantines_were_read_too(bench: Workbench) -> None:
    """The sink counts for all steps, and sees only what they let pass."""
    bench.write("in.csv", TEN)
    steps = f"transform:\n  - {{type: select, columns: [id, amount]}}\n  - {CAST}\n"
    load = "load: {type: delta, table: t}\n"
    bench.pipeline("p", f"extract: {{type: csv, path: in.csv}}\n{steps}{load}")
    document = bench.run("p")
    batch = document["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"], batch["rows_dropped"]) == (10, 3, 0)
    assert batch["outputs"][0]["rows_inserted"] == 7
    assert fates(batch) == {
        "source": (10, 10, 0, 0),
        "select": (10, 10, 0, 0),
        "cast": (10, 7, 3, 0),
    }
    assert batch["uncounted"] == {}
    assert document["notes"] == ["3 of 10 rows (30%) go into quarantine"]
    assert bench.cli("runs", "list", "--json").json["runs"][0]["batches"][0]["rows_read"] == 10


JOINED = """
extract:
  orders:
    {type: csv, path: orders.csv, schema: "id int, customer int, tags string", on_error: quarantine}
  customers: {type: csv, path: customers.csv, schema: "customer int, name string"}
  gone: {type: csv, path: gone.csv, schema: "id int"}
  late: {type: csv, path: late.csv, schema: "id int, customer int, tags string"}
transform:
  - {name: all, type: union, input: orders, with: [late]}
  - {name: known, type: join, with: customers, on: customer}
  - {name: kept, type: join, with: gone, on: id, how: anti}
  - {name: tagged, type: explode, column: "split(tags, ' ')", alias: tag}
  - {name: once, type: deduplicate}
  - {name: some, type: filter, condition: "tag <> 'b'"}
checks:
  - {type: not_null, columns: name, on_fail: drop}
load: {type: delta, table: t, mode: overwrite}
"""


def test_every_step_of_a_plan_accounts_for_its_rows(bench: Workbench) -> None:
    bench.write(
        "orders.csv",
        "id,customer,tags\n1,1,a b\n2,9,a\n3,,a\nx,1,a\n4,2,a b\n5,1,\n6,3,a\n",
    )
    bench.write("late.csv", "id,customer,tags\n7,1,c\n1,1,a b\n")
    bench.write("customers.csv", "customer,name\n1,ann\n2,bob\n2,bert\n3,\n8,cid\n")
    bench.write("gone.csv", "id\n6\n4\n")
    bench.pipeline("p", JOINED)
    batch = bench.run("p")["batches"][0]
    # two orders know no customer: one has none, one has number 9; customer 2 is there twice
    assert fates(batch) == {
        "orders": (7, 6, 1, 0),
        "late": (2, 2, 0, 0),
        "customers": (5, 5, 0, 0),
        "gone": (2, 2, 0, 0),
        "all": (8, 8, 0, 0),
        "known": (8, 7, 0, 2),
        "kept": (7, 4, 0, 3),
        "tagged": (4, 5, 0, 1),
        "once": (5, 3, 0, 2),
        "some": (3, 2, 0, 1),
        "not_null(name)": (2, 2, 0, 0),
    }
    assert_adds_up(batch, "orders", "all", "kept", "once", "some")
    assert (batch["rows_read"], batch["rows_quarantined"]) == (16, 1)
    assert batch["rows_dropped"] == sum(fate[3] for fate in fates(batch).values()) == 9
    assert batch["uncounted"] == {}


def test_what_nobody_can_count_is_null_and_says_why(bench: Workbench) -> None:
    bench.write("in.csv", TEN)
    bench.write("steps.py", "def looked(frame):\n    frame.take(1)\n    return frame\n")
    head = "extract: {type: csv, path: in.csv}\ntransform:\n  - "
    load = "\nload: {type: delta, table: %s, mode: overwrite}\n"
    bench.pipeline("q", head + "{type: sql, query: SELECT * FROM input WHERE id > 1}" + load % "q")
    bench.pipeline("l", head + "{type: sql, query: SELECT * FROM input LIMIT 2}" + load % "l")
    bench.pipeline("f", head + "{type: python, function: 'steps.py:looked'}" + load % "f")
    query, limit, looked = (bench.run(name)["batches"][0] for name in "qlf")
    assert fates(query) == {"source": (10, 10, 0, 0), "sql": (10, 8, 0, None)}
    assert (query["rows_read"], query["rows_dropped"]) == (10, None)
    assert list(query["uncounted"]) == ["rows_dropped"]
    for batch, step in ((limit, "sql"), (looked, "python")):
        assert (batch["rows_read"], batch["rows_dropped"]) == (None, None)
        assert f'step "{step}" may have read only some' in batch["uncounted"]["rows_read"]
    assert fates(looked)["python"] == (None, 10, 0, None)
    shown = bench.cli("runs", "show", bench.cli("runs", "list", "--json").json["runs"][0]["run_id"])
    assert "may have read only some" in shown.stdout


def test_a_few_rows_that_look_into_a_large_table_are_joined_as_ever(spark: SparkSession) -> None:
    from deltaworks.engines.spark.transforms.join import inner_join

    watched: list[Column] = []

    def watch(frame: DataFrame, where: Column) -> DataFrame:
        watched.append(where)
        return frame

    few, many = spark.range(3), spark.range(5_000_000)
    joined = inner_join(few, many, ["id"], watch)
    assert (joined.columns, watched) == (["id"], [])
    other = spark.sql("SELECT * FROM VALUES (1L, 'a'), (1L, 'b'), (NULL, 'c') AS t(id, v)")
    assert sorted(inner_join(few, other, ["id"], watch).collect()) == [(1, "a"), (1, "b")]
    assert len(watched) == 1


LIMITS = """max_failed: ALL
extract:
  {type: csv, path: in.csv, schema: "id int, amount string", on_error: quarantine, max_failed: READ}
transform:
  - {name: typed, type: cast, columns: {amount: int}, on_error: quarantine, max_failed: CAST}
load: {type: delta, table: t}
"""
BAD = "id,amount\nx,1\ny,1\n1,x\n2,x\n3,x\n" + "".join(f"{n},1\n" for n in range(15))


@pytest.mark.parametrize(
    ("words", "line", "message"),
    [
        (("10%", "2", "3"), 0, ""),
        (("100", "9.9%", "3"), 3, 'step "source": 2 of 20 rows do not fit, 9.9% allowed'),
        (("100", "10%", "16%"), 6, 'step "typed": 3 of 18 rows do not fit, 16% allowed'),
        (("24.9%", "2", "3"), 2, "5 of 20 rows would go into quarantine, 24.9% allowed"),
    ],
)
def test_more_than_is_allowed_stops_a_run_before_it_writes(
    bench: Workbench, words: tuple[str, ...], line: int, message: str
) -> None:
    bench.write("in.csv", BAD)
    text = LIMITS
    for name, limit in zip(("ALL", "READ", "CAST"), words, strict=True):
        text = text.replace(name, limit)
    bench.pipeline("p", text if message else text.replace("max_failed: 10%\n", ""))
    answer = bench.cli("run", "p", "--json", "--quiet")
    if not message:
        assert answer.code == 0, answer.stderr
        assert answer.json["notes"] == ["5 of 20 rows (25%) go into quarantine"]
        assert len(bench.rows("t")) == 15
        return
    error = answer.json["error"]
    assert (answer.code, error["code"], error["message"]) == (3, "check_failed", message)
    assert error["line"] == line
    assert (bench.version("t"), bench.version("p__quarantine")) == (None, None)
    assert message in " ".join(bench.cli("plan", "p", "--json").json["notes"])
