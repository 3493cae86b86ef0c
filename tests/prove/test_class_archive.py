"""The archive of classes, made from nothing for the Java that comes as a wheel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deltaworks.config.cache import cache_dir
from tests.spark.test_session_start import environment

pytestmark = [pytest.mark.prove, pytest.mark.timeout(900)]

PROGRAM = """
import os
from deltaworks.engines.spark.session.start import SessionSettings, jvm_process, start_session

spark = start_session(SessionSettings(app_name="t"), environ=os.environ, notify=print)
pid, _ = jvm_process(spark)
print([line for line in open(f"/proc/{pid}/maps").read().split() if line.endswith(".jsa")])
"""


def test_the_wheels_java_starts_from_an_archive_made_for_it(tmp_path: Path) -> None:
    environ = {**environment(tmp_path), "DELTAWORKS_CACHE": str(tmp_path / "cache")}
    shutil.copytree(cache_dir(os.environ) / "jars", tmp_path / "cache" / "jars")
    command = [sys.executable, "-m", "deltaworks", "jars", "archive", "--json"]
    made = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    archive = json.loads(made.stdout)["archive"]
    started = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=True
    )
    assert archive in started.stdout
