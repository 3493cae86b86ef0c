"""A project on a real Spark Connect server: what works without a JVM, and what says it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.services.connect_server import ConnectServer
from tests.workbench import Workbench

pytestmark = pytest.mark.spark

ORDERS = """
extract: {type: csv, path: "data/${var:day}.csv"}
transform:
  - {type: cast, columns: {id: bigint, amount: double, at: timestamp}, on_error: quarantine}
  - type: python
    function: "steps.py:noted"
    row: true
    schema: "id bigint, country string, amount double, at timestamp"
checks:
  - {type: expression, rule: "amount >= 0", on_fail: quarantine}
  - {type: matches, column: country, pattern: "[A-Z]{2}"}
load:
  type: delta
  table: orders
  mode: upsert
  merge_keys: [id]
  update_condition: source.at > target.at
  duplicates: {keep: newest, by: at}
"""
STEPS = """
from pathlib import Path
from rates import factor

LOG = Path(__file__).parent / "calls"

def noted(row):
    with LOG.open("a") as log:
        log.write(f"{row['id']}\\n")
    return {**row, "amount": row["amount"] * factor()}
"""
INCREMENTAL = """
extract: {type: delta, table: orders, incremental: true}
load: {type: delta, table: copies}
"""
WRONG_PATTERN = """
extract: {type: delta, table: orders}
checks: [{type: matches, column: country, pattern: "a{"}]
load: {type: delta, table: never}
"""
WRONG_COLUMN = """
extract: {type: delta, table: orders}
transform:
  - {type: cast, columns: {amount: double}, on_error: quarantine}
  - {type: derive, columns: {more: "amout + 1"}}
  - {type: derive, columns: {less: "more - 1"}}
load: {type: delta, table: never}
"""
HEADER = "id,country,amount,at\n"
PROGRAM = """
import json, sys
from tests.workbench import run_cli

answers = []
for line in json.loads(sys.argv[1]):
    answer = run_cli(*line)
    answers.append([answer.code, answer.stdout, answer.stderr])

if len(sys.argv) > 2:  # what only an interrupt or a terminal would ask for
    from deltaworks import Project
    from deltaworks.engines.spark.session.connect import held, sibling
    from deltaworks.engines.spark.session.jobs import cancel_jobs
    from deltaworks.engines.spark.session.jobs import rows_so_far
    from deltaworks.engines.spark.session.start import cancel_work

    with Project.open(sys.argv[2]) as project:
        cancel_work(project.spark)
        cancel_jobs(project.spark, "nothing")
        assert rows_so_far(project.spark) == 0
        with held(sibling(project.spark)) as ended:
            pass
        cancel_jobs(ended, "nothing")
        forgotten = sibling(project.spark).range(1)  # Python ends all the same
print(json.dumps(answers))
"""


def project(tmp_path: Path, master: str) -> Workbench:
    desk = Workbench(tmp_path)
    desk.write(
        "deltaworks.yaml",
        f"project: shop\nwarehouse: ./warehouse\nengine:\n  master: '{master}'\n"
        "  conf: {spark.sql.shuffle.partitions: 3, spark.executor.memory: 1g}\n",
    )
    desk.write("steps.py", STEPS)
    desk.write("rates.py", "def factor():\n    return 2.0\n")
    desk.write(
        "data/1.csv",
        HEADER + "1,NL,1,2026-01-01 10:00:00\n2,DE,-3,2026-01-01 10:00:00\n"
        "3,DE,oops,2026-01-01 10:00:00\n4,DE,7,2026-01-01 10:00:00\n4,DE,8,2026-01-01 11:00:00\n",
    )
    desk.write("data/2.csv", HEADER + "1,NL,5,2026-01-02 10:00:00\n5,NL,6,2026-01-02 10:00:00\n")
    desk.pipeline("orders", ORDERS)
    for name, text in {
        "increments": INCREMENTAL,
        "pattern": WRONG_PATTERN,
        "column": WRONG_COLUMN,
    }.items():
        desk.pipeline(name, text)
    return desk


def answers(desk: Workbench, *lines: list[str], more: bool = False) -> list[Any]:
    """Commands in one process of their own: over Connect PySpark is another one."""
    commands = [[*line, "--project", str(desk.root)] for line in lines]
    arguments = [json.dumps(commands), *([str(desk.root)] if more else [])]
    program = desk.write("program.py", PROGRAM)
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        env={**os.environ, "PYTHONPATH": root},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return list(json.loads(done.stdout))


def test_the_orders_job_runs_without_a_jvm_and_the_rest_says_why_not(
    tmp_path: Path, connect: ConnectServer
) -> None:
    desk = project(tmp_path, connect.url)
    quiet = ["--json", "--quiet"]
    first, copied, second, again, plan, increments, pattern, column, restored, doctor = answers(
        desk,
        ["run", "orders", "--var", "day=1", *quiet],
        ["run", "increments", "--quiet"],
        ["run", "orders", "--var", "day=2", *quiet],
        ["run", "orders", "--var", "day=2", *quiet],
        ["plan", "orders", "--var", "day=2"],
        ["run", "increments", "--quiet"],
        ["run", "pattern", "--quiet"],
        ["run", "column", "--quiet"],
        ["table", "restore", "orders", "--version", "0", "--apply"],
        ["doctor", "--json"],
        more=True,
    )
    assert first[0] == 0, first
    batch = json.loads(first[1])["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"], batch["rows_dropped"]) == (5, 2, 1)
    assert batch["outputs"][0]["rows_inserted"] == 2
    assert copied[0] == 0, copied
    output = json.loads(second[1])["batches"][0]["outputs"][0]
    assert (output["rows_inserted"], output["rows_updated"]) == (1, 1)
    assert json.loads(again[1])["batches"][0]["outputs"][0]["committed"] is False
    assert plan[0] == 0, plan
    assert (increments[0], "over Spark Connect" in increments[2]) == (4, True), increments
    assert (pattern[0], "is not a regular expression" in pattern[2]) == (2, True), pattern
    assert (column[0], '"amount"' in column[2]) == (2, True), column
    assert "column.yaml:6" in column[2], column
    assert restored[0] == 0, restored
    assert {row["id"]: row["amount"] for row in desk.rows("orders")} == {1: 2.0, 4: 16.0}
    made = desk.root / "warehouse" / "orders" / "_delta_log" / f"{0:020}.json"
    assert "collate" not in made.read_text()  # or no reader but Spark could read the table
    parts = {found["part"]: found["detail"] for found in json.loads(doctor[1])["findings"]}
    assert parts["connect"].startswith(f"{connect.url} answers, with Spark 4.2")
    calls = (desk.root / "calls").read_text().split()
    assert (calls.count("2"), calls.count("4")) == (1, 2)  # rows of day 1 alone, each seen once


def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    desk = project(tmp_path, "sc://127.0.0.1:9")
    ((code, _, said),) = answers(desk, ["run", "orders", "--var", "day=1", "--quiet"])
    assert code == 4
    assert "127.0.0.1:9 does not accept connections" in said
