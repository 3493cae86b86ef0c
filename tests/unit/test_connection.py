"""A Spark Connect server that cannot be used is told in one line, before anything is read."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from deltaworks.engines.spark.confs import SessionSettings
from deltaworks.engines.spark.connection import connect
from deltaworks.errors import DeltaworksError

if sys.argv[2] == "missing":
    sys.modules["grpc"] = None
try:
    connect(SessionSettings(app_name="a", master=sys.argv[1]), notify=print)
except DeltaworksError as error:
    print(error.code, error.message, error.hint, sep="|")
"""


def said(program: Path, url: str, client: str) -> str:
    """PySpark becomes another one for the rest of a process, so it is one of its own."""
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), url, client]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def test_packages_that_are_missing_and_addresses_that_are_none_are_named(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"sc://127.0.0.1:{listener.getsockname()[1]}"
        missing = said(program, url, "missing")
        assert missing.startswith("missing_dependency|Spark Connect needs packages")
        assert "pip install 'deltaworks[connect]'" in missing
        assert "grpc" in missing
        wrong = said(program, f"{url}/a/path", "there")
        assert wrong.startswith("engine|the Spark Connect server at sc://127.0.0.1")
        assert "opens no session" in wrong
