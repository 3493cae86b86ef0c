"""A JVM starts from the archive that `make setup` made."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from deltaworks.cli.archive_job import archive_of
from tests.workbench import run_cli

PROGRAM = """
import os
from pathlib import Path
from deltaworks.engines.spark.session.start import SessionSettings, jvm_process, start_session

settings = SessionSettings(app_name="archive", master="local[1]")
spark = start_session(settings, environ=os.environ, notify=lambda _: None)
maps = Path(f"/proc/{jvm_process(spark)[0]}/maps")
print(maps.read_text(encoding="utf-8") if maps.exists() else "not shown")
"""


def test_a_jvm_maps_the_archive_into_its_memory() -> None:
    """An archive that does not fit is passed over by Java, and not mapped."""
    archive = archive_of(os.environ, lambda _: None)
    if not archive.ready:
        pytest.skip("no archive was made: `make setup` says why")
    started = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    if "not shown" in started.stdout:
        pytest.skip("this system does not show what a process has mapped")
    assert str(archive.file) in started.stdout
    answered = run_cli("jars", "archive", "--json")
    assert answered.json == {
        "archive": str(archive.file),
        "bytes": archive.file.stat().st_size,
    }
    assert answered.stderr == ""
