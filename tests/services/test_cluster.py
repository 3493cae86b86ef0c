"""A project on a real Spark cluster of two workers, its warehouse on a real S3 server (B9, A12)."""

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

from tests.services.lakes import Lake
from tests.services.s3_server import ACCESS_KEY, SECRET_KEY, S3Server
from tests.services.spark_cluster import SparkCluster

pytestmark = pytest.mark.spark

CANARY = "c4n@ry-of-the-cluster"
KEYS = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY, "region": "us-east-1"}
ORDERS = """
extract: {type: csv, path: "s3://CORNER/data/${var:day}/*.csv"}
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


@pytest.fixture
def lake(tmp_path: Path, s3: S3Server, cluster: SparkCluster) -> Lake:
    """The orders job; nothing in it knows of the cluster but one profile."""
    desk = Lake(tmp_path, s3)
    conf = {**cluster.conf, "spark.hadoop.harmless": "${env:CANARY_TOKEN}"}
    engine = {"master": cluster.url, "conf": conf}
    profile = json.dumps({"warehouse": desk.at("wh"), "engine": engine})
    desk.write(
        "deltaworks.yaml",
        "project: shop\nwarehouse: ./warehouse\nstorage:\n"
        f"  s3://lake: {{credential: lake, endpoint: '{s3.endpoint}', path_style: true}}\n"
        f"profiles:\n  cluster: {profile}\n",
    )
    desk.write("steps.py", STEPS)
    desk.write("rates.py", RATES)
    desk.pipeline("orders", ORDERS.replace("CORNER", desk.corner))
    return desk


def day(lake: Lake, name: str, *, amount: float, at: str) -> None:
    """Orders in several files, of which one row cannot be read and one breaks a rule."""
    for number in range(FILES):
        first = number * ROWS_EACH
        ids = range(first, first + ROWS_EACH)
        lines = [f"{i},{'NL' if i % 2 else 'DE'},{amount},{at}" for i in ids]
        if number == 0:
            lines += [f"{ROWS},NL,none,{at}", f"{ROWS + 1},NL,-1,{at}"]
        text = "\n".join(["id,country,amount,at", *lines])
        lake.put(f"data/{name}/{number}.csv", text + "\n")


def started(lake: Lake, *arguments: str) -> subprocess.Popen[bytes]:
    """`deltaworks` on the project, in a process of its own."""
    command = [sys.executable, "-m", "deltaworks", *arguments]
    return subprocess.Popen(
        [*command, "--project", str(lake.root), "--profile", "cluster"],
        env={**os.environ, "CANARY_TOKEN": CANARY, "DELTAWORKS_CREDENTIAL__LAKE": json.dumps(KEYS)},
        cwd=lake.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def answered(process: subprocess.Popen[bytes]) -> tuple[int, Any]:
    out, err = process.communicate(timeout=600)
    assert not leaks((out + err).decode())
    assert out, err.decode()
    return process.returncode, json.loads(out)


def leaks(text: str) -> bool:
    return CANARY in text or SECRET_KEY in text


def amounts(lake: Lake) -> dict[int, float]:
    rows = lake.rows("orders")
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["amount"] for row in rows}


def expected(amount: float) -> dict[int, float]:
    return {i: amount * (2.0 if i % 2 else 1.0) for i in range(ROWS)}


def lose_a_worker(lake: Lake, cluster: SparkCluster, run: subprocess.Popen[bytes]) -> set[str]:
    """Kill a worker with its executor while they call the step; every command line seen so far."""
    seen: set[str] = set()
    while run.poll() is None:
        marks = {int(path.name.rpartition("-")[2]) for path in lake.root.glob("at-work-*")}
        for number in range(len(cluster.workers)):
            if cluster.works_for(number, marks):
                seen |= command_lines(run.pid, *(worker.pid for worker in cluster.workers))
                cluster.kill(number)
                return seen
        time.sleep(0.1)
    raise AssertionError(f"the run ended before a worker was at work: {run.communicate()}")


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
    lake: Lake, cluster: SparkCluster
) -> None:
    day(lake, "1", amount=10, at="2026-01-01 10:00:00")
    lake.write("slowly", "")
    run = started(lake, "run", "orders", "--var", "day=1", "--json", "--quiet")
    seen = lose_a_worker(lake, cluster, run)
    code, result = answered(run)
    assert code == 0, result
    batch = result["batches"][0]
    assert (batch["rows_read"], batch["rows_quarantined"]) == (ROWS + 2, 2)
    assert batch["outputs"][0]["rows_inserted"] == ROWS
    assert amounts(lake) == expected(10)
    assert [name for name in lake.names("wh/orders/_delta_log") if name.endswith(".json")] == [
        "00000000000000000000.json"
    ]
    assert len(lake.rows("orders__quarantine")) == 2
    assert any("CoarseGrainedExecutorBackend" in line for line in seen)
    assert [line for line in seen if leaks(line)] == []

    (lake.root / "slowly").unlink()
    day(lake, "2", amount=20, at="2026-01-02 10:00:00")
    code, result = answered(started(lake, "run", "orders", "--var", "day=2", "--json", "--quiet"))
    assert code == 0, result
    assert result["batches"][0]["outputs"][0]["rows_updated"] == ROWS
    assert amounts(lake) == expected(20)
