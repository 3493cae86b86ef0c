"""What needs no JVM loads nothing heavy, so it answers at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.workbench import Workbench

HEAVY = ("pyspark", "py4j", "pyarrow", "delta", "deltalake", "pandas", "numpy", "ibis", "duckdb")
REPORT = f"""
import sys
print("loaded:", *sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)
"""
COMMAND = """
import sys
from deltaworks.cli.app import main
sys.argv[0] = "deltaworks"
try:
    code = main()
except SystemExit as stop:
    code = stop.code
"""


def run_python(code: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COV_", "COVERAGE_"))}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, **variables},
    )


def loaded(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The heavy modules a child reported; a child that did not get there is a failure."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("loaded:")]
    assert lines, done.stderr
    return lines[-1].split()[1:]


def test_the_probe_sees_what_is_loaded() -> None:
    assert loaded(run_python("import numpy" + REPORT)) == ["numpy"]


def test_importing_deltaworks_loads_nothing_heavy() -> None:
    assert loaded(run_python("import deltaworks" + REPORT)) == []


def test_validate_loads_nothing_heavy(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    shutil.copytree(ROOT / "examples" / "orders", project)
    done = run_python(COMMAND + REPORT + "sys.exit(code)", "validate", "--project", str(project))
    assert loaded(done) == []
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("schema",), ("convert", "tests/pipelines/classic/kafka_upsert.json")],
    ids=" ".join,
)
def test_what_is_about_files_alone_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    words = [str(ROOT / word) if "/" in word else word for word in arguments]
    done = run_python(COMMAND + REPORT + "sys.exit(code)", *words)
    assert loaded(done) == []
    assert done.returncode == 0, done.stdout + done.stderr


# What a run of one small file needs before Java is there; raise it only for a reason.
# A table's log is judged before engines are asked, and secrets are known in every spelling: that
# is twelve small modules of ours.
MAX_MODULES = 858
NEEDLESS = ("pandas", "pyarrow.dataset", "ssl", "http.client", "asyncio", "cryptography")
COUNT = f"""
print("modules:", len(sys.modules), *sorted(set({NEEDLESS!r}) & set(sys.modules)), file=sys.stderr)
"""


def test_a_run_loads_nothing_needless_before_its_jvm(desk: Workbench, tmp_path: Path) -> None:
    """Counted, not timed: pandas alone would take longer than all else."""
    java = tmp_path / "java"
    (java / "bin").mkdir(parents=True)
    (java / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (java / "bin" / "java").chmod(0o755)
    (java / "release").write_text(
        'JAVA_VERSION="17.0.1"\nMODULES="java.base jdk.incubator.vector"\n'
    )
    desk.write("in.csv", "id\n1\n")
    desk.pipeline(
        "p", "extract: {type: csv, path: in.csv, schema: 'id int'}\nload: {type: delta, table: t}\n"
    )
    words = ("run", "p", "--project", str(desk.root))
    done = run_python(COMMAND + COUNT, *words, JAVA_HOME=str(java))
    assert "Spark did not start" in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("modules:")]
    _, count, *needless = line.split()
    assert needless == []
    assert int(count) <= MAX_MODULES
