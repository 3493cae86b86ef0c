"""A JVM that is killed or runs out of memory: one short error, and another JVM next time (P11)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from deltaworks.engines.spark.errors.lost_jvm import letting_go, reaching_jvm
from deltaworks.engines.spark.errors.translate import translate
from deltaworks.errors import EngineError
from tests.workbench import Workbench

PIPELINE = """
extract: {type: csv, path: "in/*.csv", schema: "id int", incremental: true}
checks:
  - {type: expression, rule: "id < 100", on_fail: quarantine}
load: {type: delta, table: t}
"""
PROGRAM = """
import json, sys
from pathlib import Path
import psutil
from deltaworks.api import Project

waiting = ["load", "commit"]


def listen(event):
    name = {"StageStarted": getattr(event, "kind", ""), "Committed": "commit"}.get(
        type(event).__name__
    )
    if waiting and name == waiting[0]:
        waiting.pop(0)
        for process in psutil.Process().children(recursive=True):
            if process.name() == "java":
                process.kill()
                process.wait()


root = Path(sys.argv[1])
project = Project.open(root, listeners=[listen])
told = []
for name in ("a", "b"):
    (root / "in" / f"{name}.csv").write_text(f"id\\n{ord(name)}\\n{ord(name) + 100}\\n")
    result = project.run("p")
    told.append([result.status, result.error and [type(result.error).__name__, str(result.error)]])
print(json.dumps(told))
"""


def test_a_run_says_that_its_jvm_died_and_the_next_starts_another(bench: Workbench) -> None:
    bench.pipeline("p", PIPELINE)
    (bench.root / "in").mkdir()
    command = [sys.executable, "-c", PROGRAM, str(bench.root)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert first[0] == "failed"
    assert first[1][0] == "EngineError"
    assert first[1][1].startswith("Spark's JVM ended while it was at work")
    # a new JVM, which finished the first batch and died once the second was in
    assert second[0] == "succeeded", second
    bench.run("p")
    assert [row["id"] for row in bench.rows("t")] == [97, 98]
    assert len(bench.rows("p__quarantine")) == 2


@pytest.mark.parametrize("name", ["Py4JError", "Py4JNetworkError"])
def test_what_py4j_raises_by_itself_is_a_lost_jvm(name: str) -> None:
    from py4j import protocol

    error = getattr(protocol, name)("Answer from Java side is empty")
    assert "JVM ended" in translate(error).message
    with pytest.raises(EngineError, match="JVM ended"), reaching_jvm():
        raise error
    with letting_go():
        raise error


def test_an_error_whose_cause_died_with_its_jvm_is_a_lost_jvm() -> None:
    from py4j.protocol import Py4JJavaError

    class Gone:
        def getClass(self) -> None:  # noqa: N802 - Java's name
            raise ConnectionRefusedError

    error = Py4JJavaError.__new__(Py4JJavaError)
    error.java_exception = Gone()
    assert "JVM ended" in translate(error).message


def test_an_error_of_sparks_while_its_jvm_lives_stays_what_it_is(bench: Workbench) -> None:
    from pyspark.errors import PySparkException

    assert bench.root.exists()
    with pytest.raises(PySparkException, match="something else"), reaching_jvm():
        raise PySparkException("something else")
