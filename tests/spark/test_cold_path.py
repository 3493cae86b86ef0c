"""What a first small command loads: counted, so that nothing needless sneaks in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deltaworks.engines.spark.versions import CORE_JARS
from tests.architecture.test_light_start import COMMAND
from tests.workbench import Workbench

MAX_JOBS = 3
# PySpark itself loads pandas with the first list it hands to Java; nothing of ours may before.
NEEDLESS = ("pyarrow.dataset", "ssl", "http.client", "asyncio", "cryptography", "datafusion")
REPORT = """
import json, psutil
from pyspark import SparkContext
context = SparkContext._active_spark_context
java = [p.cmdline() for p in psutil.Process().children(recursive=True) if "java" in p.name()]
print(json.dumps({
    "code": code,
    "modules": sorted(sys.modules),
    "java": java,
    "jobs": context._jsc.sc().statusStore().jobsList(None).size(),
}), file=sys.__stderr__)
"""


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The loaded modules, the JVM and the jobs of one command in a process of its own."""
    desk = Workbench(tmp_path_factory.mktemp("cold"))
    desk.write("orders.csv", "id,name\n1,ada\n")
    desk.pipeline(
        "orders",
        "extract: {type: csv, path: orders.csv, schema: 'id int, name string'}\n"
        "load: {type: delta, table: orders}\n",
    )
    done = subprocess.run(
        [sys.executable, "-c", COMMAND + REPORT, "run", "orders", "--project", str(desk.root)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith('{"code"')]
    assert lines, done.stderr
    found: dict[str, Any] = json.loads(lines[-1])
    assert found["code"] in (None, 0), done.stderr
    return found


@pytest.mark.spark
def test_a_first_command_imports_nothing_it_does_not_need(cold: dict[str, Any]) -> None:
    assert sorted(set(cold["modules"]) & set(NEEDLESS)) == []


@pytest.mark.spark
def test_a_first_command_gets_our_few_jars_and_no_resolver(cold: dict[str, Any]) -> None:
    (java,) = cold["java"]
    places = java[java.index("-cp") + 1].split(":")
    own = [Path(place).name for place in places if "pyspark" not in place]
    assert own == [f"{jar.artifact}-{jar.version}.jar" for jar in CORE_JARS]
    assert not any("spark.jars" in word for word in java)


@pytest.mark.spark
def test_a_small_command_compiles_quickly(cold: dict[str, Any]) -> None:
    (java,) = cold["java"]
    assert "-XX:TieredStopAtLevel=1" in java


@pytest.mark.spark
def test_a_first_load_takes_few_jobs(cold: dict[str, Any]) -> None:
    assert 1 <= cold["jobs"] <= MAX_JOBS
