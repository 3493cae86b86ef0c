"""The JVM that all tests share starts from the archive that `make setup` made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaworks.cli.training import archive_of
from deltaworks.engines.spark.session import jvm_process
from tests.workbench import run_cli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_jvm_maps_the_archive_into_its_memory(jvm: SparkSession) -> None:
    """An archive that does not fit is passed over by Java, and not mapped."""
    archive = archive_of(os.environ, lambda _: None)
    if not archive.ready:
        pytest.skip("no archive was made: `make setup` says why")
    process = jvm_process(jvm)
    assert process is not None
    maps = Path(f"/proc/{process[0]}/maps")
    if not maps.exists():
        pytest.skip("this system does not show what a process has mapped")
    assert str(archive.file) in maps.read_text(encoding="utf-8")
    answered = run_cli("jars", "archive", "--json")
    assert answered.json == {
        "archive": str(archive.file),
        "bytes": archive.file.stat().st_size,
    }
    assert answered.stderr == ""
