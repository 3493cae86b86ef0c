"""A million messages through one run: every one once, in memory that does not grow (P8)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.services.kafka_broker import kafka_broker
from tests.workbench import Workbench

pytestmark = pytest.mark.prove

MESSAGES = 1_000_000
AT_ONCE = 100_000
MAX_GROWTH = 1.25


def memory_mb(process: psutil.Process) -> float:
    """What a process and its JVM hold now."""
    total = 0
    for one in (process, *process.children(recursive=True)):
        try:
            total += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 1e6


def test_a_million_messages_need_no_more_memory_than_the_first_of_them(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    desk = Workbench(tmp_path / "project")
    conf = "engine: {master: 'local[2]', conf: {spark.driver.memory: 1g}}\n"
    desk.write("deltaworks.yaml", f"project: shop\nwarehouse: ./warehouse\n{conf}")
    with kafka_broker(tmp_path / "kafka") as broker:
        topic = broker.topic(partitions=2)
        broker.send(topic, [b'{"id": %d, "text": "%s"}' % (n, b"x" * 150) for n in range(MESSAGES)])
        entry = {
            "type": "kafka",
            "topic": topic,
            "servers": broker.servers,
            "schema": "id bigint, text string",
            "incremental": True,
            "max_offsets_per_batch": AT_ONCE,
        }
        desk.pipeline(
            "orders", f"extract: {json.dumps(entry)}\nload: {{type: delta, table: orders}}\n"
        )
        command = [sys.executable, "-m", "deltaworks", "run", "orders", "--quiet"]
        command += ["--project", str(desk.root)]
        started, samples = time.monotonic(), []
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as run:
            watched = psutil.Process(run.pid)
            while run.poll() is None:
                samples.append((desk.version("orders") or 0, memory_mb(watched)))
                time.sleep(0.5)
        seconds = time.monotonic() - started
    assert run.returncode == 0
    batches = MESSAGES // AT_ONCE
    early = max(mb for version, mb in samples if version < batches // 2)
    late = max(mb for version, mb in samples if version >= batches // 2)
    record = {"seconds": round(seconds, 1), "early_mb": round(early), "late_mb": round(late)}
    (tmp_path / "figures.json").write_text(json.dumps(record))
    found = [row["id"] for row in desk.rows("orders")]
    assert (len(found), len(set(found))) == (MESSAGES, MESSAGES)
    assert late <= MAX_GROWTH * early
