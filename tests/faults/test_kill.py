"""A process killed with SIGKILL, Spark and all, and a rerun at once (P11, B3)."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.workbench import Workbench

PIPELINE = """
extract: {type: csv, path: "data/in.csv", schema: "id bigint, v string"}
load: {type: delta, table: t, mode: append, writer: WRITER}
"""
KILLED = """
import os, signal, sys
from deltaworks.api import Project
from deltaworks.model import events

def listen(event):
    if type(event).__name__ == sys.argv[2] and getattr(event, "kind", "load") == "load":
        os.kill(os.getpid(), signal.SIGKILL)

Project.open(sys.argv[1], listeners=[listen]).run("t")
"""


@pytest.mark.parametrize(
    ("event", "writer"),
    [("StageStarted", "spark"), ("Committed", "spark"), ("Committed", "deltars")],
)
def test_a_killed_append_lands_once(bench: Workbench, event: str, writer: str) -> None:
    bench.write("data/in.csv", "id,v\n1,a\n2,b\n")
    bench.pipeline("t", PIPELINE.replace("WRITER", writer))
    command = [sys.executable, "-c", KILLED, str(bench.root), event]
    killed = subprocess.run(command, check=False, timeout=240, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert bench.version("t") == (0 if event == "Committed" else None)
    bench.run("t")  # at once, while the old JVM may still live
    assert [row["id"] for row in bench.rows("t")] == [1, 2]
    assert bench.version("t") == 0
    assert bench.run("t")["status"] == "skipped"
