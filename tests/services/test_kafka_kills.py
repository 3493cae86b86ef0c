"""A broker that dies while messages are read or sent: the next run loses and doubles nothing."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.services.kafka_broker import Broker
from tests.workbench import Workbench

pytestmark = pytest.mark.spark

COLUMNS = "id bigint, name string"
ROWS = 20_000
SMALL = {"kafka.max.partition.fetch.bytes": "20000", "kafka.max.poll.records": "100"}
FUNCTION = """
import os, pathlib

def kill_once(row):
    mark = pathlib.Path({mark!r})
    if row["id"] == {at} and not mark.exists():
        mark.touch()
        os.kill({pid}, 9)
    return row
"""


def killing(bench: Workbench, kafka: Broker, *, at: int) -> tuple[str, Path]:
    """A step that kills the broker when it sees a row, once; and the mark it leaves."""
    assert kafka.process is not None
    mark = bench.root / "killed"
    code = FUNCTION.format(mark=str(mark), at=at, pid=kafka.process.pid)
    bench.write("steps.py", code)
    step = {"type": "python", "function": "steps.py:kill_once", "row": True, "schema": COLUMNS}
    return f"transform: [{json.dumps(step)}]\n", mark


def section(name: str, kafka: Broker, topic: str, **more: Any) -> str:
    entry = {"type": "kafka", "topic": topic, "servers": kafka.servers, "timeout": "8s", **more}
    return f"{name}: {json.dumps(entry)}\n"


@pytest.mark.prove  # Spark waits a minute and a half for a broker that is gone
def test_a_broker_killed_while_it_is_read_costs_nothing_but_time(
    bench: Workbench, kafka: Broker
) -> None:
    topic = kafka.topic(partitions=2)
    kafka.send(topic, [{"id": n, "name": f"name {n}"} for n in range(ROWS)])
    step, mark = killing(bench, kafka, at=300)
    reading = section("extract", kafka, topic, incremental=True, schema=COLUMNS, options=SMALL)
    bench.pipeline("orders", f"{reading}{step}load: {{type: delta, table: orders}}\n")
    failed = bench.fail("orders")
    try:
        assert (failed.code, mark.exists()) == (4, True), failed.stderr
        assert "Kafka" in failed.stderr
        assert bench.version("orders") is None
        again = bench.fail("orders")
        assert (again.code, "does not answer" in again.stderr) == (4, True)
    finally:
        kafka.start()
    bench.run("orders")
    assert sorted(row["id"] for row in bench.rows("orders")) == list(range(ROWS))


def test_a_broker_killed_while_it_is_written_gets_every_row(
    bench: Workbench, kafka: Broker
) -> None:
    topic = kafka.topic(partitions=2)
    lines = "".join(f"{n},name {n}\n" for n in range(ROWS))
    bench.write("orders.csv", f"id,name\n{lines}")
    step, mark = killing(bench, kafka, at=ROWS - 2_000)
    reading = f"extract: {{type: csv, path: orders.csv, schema: '{COLUMNS}'}}\n"
    bench.pipeline("out", f"{reading}{step}{section('load', kafka, topic, merge_keys=['id'])}")
    failed = bench.fail("out")
    kafka.start()
    assert (failed.code, mark.exists()) == (4, True), failed.stderr
    bench.run("out")
    found = [json.loads(message.value())["id"] for message in kafka.received(topic)]
    assert set(found) == set(range(ROWS))
    assert len(found) < 2 * ROWS + 1
    assert bench.run("out")["status"] == "skipped"


def test_a_run_that_follows_reads_what_comes_until_it_is_stopped(
    bench: Workbench, kafka: Broker
) -> None:
    topic = kafka.topic(partitions=1)
    reading = section("extract", kafka, topic, incremental=True, schema=COLUMNS)
    bench.pipeline("orders", f"{reading}load: {{type: delta, table: orders}}\n")

    def landed() -> int:
        return 0 if bench.version("orders") is None else len(bench.rows("orders"))

    def send_one_by_one() -> None:
        for n in range(3):
            kafka.send(topic, [{"id": n, "name": "x"}])
            deadline = time.monotonic() + 60
            while landed() <= n and time.monotonic() < deadline:
                time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Timer(1, send_one_by_one)
    sender.start()
    stopped = bench.cli("run", "orders", "--follow", "0.5s", "--timeout", "4m", "--quiet")
    sender.join()
    assert stopped.code == 0, stopped.stderr  # it has no other end
    assert sorted(row["id"] for row in bench.rows("orders")) == [0, 1, 2]
    bench.cli("run", "orders")
    assert sorted(row["id"] for row in bench.rows("orders")) == [0, 1, 2]
    reading = section("extract", kafka, topic, schema=COLUMNS)
    bench.pipeline("once", f"{reading}load: {{type: delta, table: once}}\n")
    once = bench.cli("run", "once", "--follow", "1s")
    assert (once.code, "nothing to follow" in once.stderr) == (2, True)
    wrong = bench.cli("run", "--all", "--follow", "1s")
    assert (wrong.code, "--follow is for one pipeline" in wrong.stderr) == (2, True)
