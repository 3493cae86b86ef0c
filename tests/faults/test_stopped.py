"""A writer that is stopped, not dead: it is not overtaken, and goes on as if nothing was (M8)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil

from tests.workbench import Workbench

PIPELINE = """
extract: {type: csv, path: "data/in.csv", schema: "id bigint, v string"}
load: {type: delta, table: t, mode: append}
"""
STOPPED = """
import os, signal, sys
from deltaworks.api import Project

def listen(event):
    if type(event).__name__ == "StageStarted" and event.kind == "load":
        os.kill(os.getpid(), signal.SIGSTOP)

result = Project.open(sys.argv[1], listeners=[listen]).run("t")
sys.exit(0 if result.error is None else 1)
"""


def test_a_stopped_writer_is_waited_for_named_and_not_overtaken(bench: Workbench) -> None:
    bench.write(
        "deltaworks.yaml", "project: shop\nwarehouse: ./warehouse\nlocks: {wait_seconds: 1}\n"
    )
    bench.write("data/in.csv", "id,v\n1,a\n2,b\n")
    bench.pipeline("t", PIPELINE)
    child = subprocess.Popen([sys.executable, "-c", STOPPED, str(bench.root)])
    try:
        process, end = psutil.Process(child.pid), time.monotonic() + 120
        while process.status() != psutil.STATUS_STOPPED:
            assert time.monotonic() < end
            time.sleep(0.1)
        refused = bench.fail("t")
        assert refused.code == 5
        assert str(child.pid) in refused.stderr
        assert bench.version("t") is None
        os.kill(child.pid, signal.SIGCONT)
        assert child.wait(timeout=120) == 0
    finally:
        child.kill()
        child.wait()
    assert bench.run("t")["status"] == "skipped"
    assert [row["id"] for row in bench.rows("t")] == [1, 2]
    assert bench.version("t") == 0
