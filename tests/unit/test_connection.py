"""A Spark Connect server that cannot be used is told in one line, before anything is read."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructType

from deltaworks.config.object_stores import Stores
from deltaworks.engines.spark.frames.strings import plain
from deltaworks.engines.spark.session.connect import held, let_go_of_all, sibling
from deltaworks.engines.spark.session.start import reach_stores

PROGRAM = """
import sys
from deltaworks.engines.spark.session.conf import SessionSettings
from deltaworks.engines.spark.session.connect import connect
from deltaworks.errors import DeltaworksError

if sys.argv[2] == "missing":
    sys.modules["grpc"] = None
try:
    connect(SessionSettings(app_name="a", master=sys.argv[1]), notify=print)
except DeltaworksError as error:
    print(error.code, error.message, error.hint, sep="|")
"""


class FakeSession:
    """A session of PySpark's Connect client, as far as we know one."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self) -> None:
        self.client = self
        self.policies: list[object] = ["patient"]
        self.stopped = False

    def cloneSession(self) -> FakeSession:  # noqa: N802 - PySpark's name
        return FakeSession()

    def set_retry_policies(self, policies: list[object]) -> None:
        self.policies = policies

    def stop(self) -> None:
        self.stopped = True


class Settings(dict[str, str]):
    """The settings of such a session."""

    set = dict.__setitem__


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


def test_sessions_that_nobody_let_go_are_ended_when_python_ends() -> None:
    theirs: Any = FakeSession()
    with held(sibling(theirs)) as short:
        left: Any = sibling(theirs)
    assert (cast("Any", short).stopped, left.stopped) == (True, False)
    let_go_of_all()
    assert (left.stopped, left.policies) == (True, [])
    assert not theirs.stopped


def test_strings_of_every_depth_name_no_collation_unless_they_have_one() -> None:
    text, other, nameless = StringType(), StringType("UNICODE_CI"), StringType("")
    kind = StructType().add("a", MapType(text, ArrayType(text, False)), False, {"comment": "c"})
    wanted = MapType(nameless, ArrayType(nameless, False))
    assert plain(kind) == StructType().add("a", wanted, False, {"comment": "c"})
    assert (plain(other), plain(LongType())) == (other, LongType())


def test_a_server_is_told_of_stores_by_the_session() -> None:
    session: Any = FakeSession()
    session.conf = Settings()
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    access = Stores(environ=keys).access("s3://lake/x")
    assert access is not None
    reach_stores(session, [access], theirs=False)
    assert session.conf["fs.s3a.bucket.lake.access.key"] == "a"
