"""A project on a real Spark cluster of a master and two workers (B9, A12)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.services.spark_cluster import SparkCluster
from tests.workbench import Workbench

pytestmark = pytest.mark.spark

CANARY = "c4n@ry-of-the-cluster"
ORDERS = """
extract: {type: csv, path: "data/${var:day}/*.csv"}
transform:
  - {type: cast, columns: {id: bigint, amount: double, at: timestamp}, on_error: quarantine}
  - type: python
    function: "steps.py:taxed"
    row: true
    schema: "id bigint, country string, amount double, at timestamp"
checks:
  - {type: expression, rule: "amount >= 0", on_fail: quarantine}
load:
  type: delta
  table: orders
  mode: upsert
  merge_keys: [id]
  update_condition: source.at > target.at
  duplicates: {keep: newest, by: at}
  partition_by: [country]
"""
STEPS = """
import os, time
from pathlib import Path
from rates import factor

HERE = Path(__file__).parent

def taxed(row):
    mark = HERE / f"at-work-{os.getpid()}"
    if (HERE / "slowly").exists() and not mark.exists():
        mark.touch()
        time.sleep(4)
    return {**row, "amount": row["amount"] * factor(row["country"])}
"""
RATES = 'def factor(country):\n    return {"NL": 2.0}.get(country, 1.0)\n'
FILES, ROWS_EACH = 4, 10
ROWS = FILES * ROWS_EACH


def project(tmp_path: Path, cluster: SparkCluster) -> Workbench:
    """The orders job; nothing in it knows of the cluster but one profile."""
    desk = Workbench(tmp_path)
    conf = {**cluster.conf, "spark.hadoop.fs.s3a.secret.key": "${env:CANARY}"}
    profile = json.dumps({"engine": {"master": cluster.url, "conf": conf}})
    desk.write(
        "deltaworks.yaml",
        f"project: shop\nwarehouse: ./warehouse\nprofiles:\n  cluster: {profile}\n",
    )
    desk.write("steps.py", STEPS)
    desk.write("rates.py", RATES)
    desk.pipeline("orders", ORDERS)
    return desk


def day(desk: Workbench, name: str, *, amount: float, at: str) -> None:
    """Orders in several files, of which one row cannot be read and one breaks a rule."""
    for number in range(FILES):
        first = number * ROWS_EACH
        ids = range(first, first + ROWS_EACH)
        lines = [f"{i},{'NL' if i % 2 else 'DE'},{amount},{at}" for i in ids]
        if number == 0:
            lines += [f"{ROWS},NL,none,{at}", f"{ROWS + 1},NL,-1,{at}"]
        text = "\n".join(["id,country,amount,at", *lines])
        desk.write(f"data/{name}/{number}.csv", text + "\n")


def started(desk: Workbench, *arguments: str) -> subprocess.Popen[bytes]:
    """`deltaworks` on the project, in a process of its own."""
    command = [sys.executable, "-m", "deltaworks", *arguments]
    return subprocess.Popen(
        [*command, "--project", str(desk.root), "--profile", "cluster"],
        env={**os.environ, "CANARY": CANARY},
        cwd=desk.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def answered(process: subprocess.Popen[bytes]) -> tuple[int, Any]:
    out, err = process.communicate(timeout=600)
    assert CANARY.encode() not in out + err
    assert out, err.decode()
    return process.returncode, json.loads(out)


def amounts(desk: Workbench) -> dict[int, float]:
    rows = desk.rows("orders")
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["amount"] for row in rows}


def expected(amount: float) -> dict[int, float]:
    return {i: amount * (2.0 if i % 2 else 1.0) for i in range(ROWS)}


def lose_a_worker(desk: Workbench, cluster: SparkCluster, run: subprocess.Popen[bytes]) -> set[str]:
    """Kill a worker with its executor while they call the step; every command line seen so far."""
    seen: set[str] = set()
    while run.poll() is None:
        marks = {int(path.name.rpartition("-")[2]) for path in desk.root.glob("at-work-*")}
        for number in range(len(cluster.workers)):
            if cluster.works_for(number, marks):
                seen |= command_lines(run.pid, *(worker.pid for worker in cluster.workers))
                cluster.kill(number)
                return seen
        time.sleep(0.1)
    raise AssertionError("the run ended before a worker was at work")


def command_lines(*pids: int) -> set[str]:
    found = set()
    for pid in pids:
        for process in psutil.Process(pid).children(recursive=True):
            try:
                found.add(" ".join(process.cmdline()))
            except psutil.Error:
                continue
    return found


def test_the_orders_job_survives_a_worker_that_dies_and_lands_once(
    tmp_path: Path, cluster: SparkCluster
) -> None:
    desk = project(tmp_path, cluster)
    day(desk, "1", amount=10, at="2026-01-01 10:00:00")
    desk.write("slowly", "")
    run = started(desk, "run", "orders", "--var", "day=1", "--json", "--quiet")
    seen = lose_a_worker(desk, cluster, run)
    code, result = answered(run)
    assert code == 0, result
    batch = result["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"]) == (ROWS + 2, 2)
    assert batch["outputs"][0]["rows_inserted"] == ROWS
    assert amounts(desk) == expected(10)
    assert desk.version("orders") == 0
    assert len(desk.rows("orders__quarantine")) == 2
    assert any("CoarseGrainedExecutorBackend" in line for line in seen)
    assert [line for line in seen if CANARY in line] == []

    (desk.root / "slowly").unlink()
    day(desk, "2", amount=20, at="2026-01-02 10:00:00")
    code, result = answered(started(desk, "run", "orders", "--var", "day=2", "--json", "--quiet"))
    assert code == 0, result
    assert result["batches"][0]["outputs"][0]["rows_updated"] == ROWS
    assert amounts(desk) == expected(20)
