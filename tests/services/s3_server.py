"""A real server that speaks S3, started from its wheel on free ports of this machine."""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ACCESS_KEY, SECRET_KEY = "lake-reader-1", "canary/s3+secret-1"
WRITER_KEY, WRITER_SECRET = "no-admin-1", "canary/s3+writer-1"
READER_KEY, READER_SECRET = "only-reads-1", "canary/s3+reader-1"
BLIND_ACCESS_KEY, BLIND_SECRET_KEY = "lake-blind-1", "canary/s3+secret-2"
"""Of somebody who may write and not look."""
_START_SECONDS = 60
_GRPC_OFFSET = 10_000


@dataclass
class S3Server:
    """Where the server listens; the keys are the module's."""

    port: int
    command: list[str]
    folder: Path
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait()

    def start(self) -> None:
        """Bring it back, with what it had written."""
        self.process = _started(self.command, self.folder)
        _wait_until_ready(self, self.folder / "server.log")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def files(self) -> Any:
        """The server as a file system, for what a test puts there and looks up."""
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            access_key=ACCESS_KEY,
            secret_key=SECRET_KEY,
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )


def server_program() -> str | None:
    """The server's program, if its wheel is installed."""
    return shutil.which("weed", path=str(Path(sys.executable).parent))


@contextmanager
def s3_server(program: str, folder: Path) -> Iterator[S3Server]:
    """A server with its data in a folder; it ends with the block, whatever happens in it."""
    (folder / "data").mkdir(parents=True)
    identities = [
        _identity("tests", ACCESS_KEY, SECRET_KEY, "Admin", "Read", "Write", "List", "Tagging"),
        _identity("writer", WRITER_KEY, WRITER_SECRET, "Read", "Write", "List"),
        _identity("reader", READER_KEY, READER_SECRET, "Read", "List"),
        _identity("blind", BLIND_ACCESS_KEY, BLIND_SECRET_KEY, "Write"),
    ]
    (folder / "s3.json").write_text(json.dumps({"identities": identities}))
    master, volume, filer, s3 = _free_ports(4)
    command = [program, "-logtostderr=true", "server", f"-dir={folder / 'data'}"]
    command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-master.port={master}"]
    command += [f"-volume.port={volume}", "-filer", f"-filer.port={filer}", "-s3"]
    command += [
        f"-s3.port={s3}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-s3.config={folder / 's3.json'}",
    ]
    command += ["-master.volumeSizeLimitMB=64", "-volume.max=50", "-master.telemetry=false"]
    server = S3Server(s3, command, folder, _started(command, folder))
    try:
        _wait_until_ready(server, folder / "server.log")
        yield server
    finally:
        server.kill()


def _started(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "server.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)


def _identity(name: str, key: str, secret: str, *actions: str) -> dict[str, Any]:
    credentials = [{"accessKey": key, "secretKey": secret}]
    return {"name": name, "credentials": credentials, "actions": actions}


def _free_ports(count: int) -> list[int]:
    """Ports that are free together with the one that is used for gRPC beside each.

    All lie below those that the kernel gives to connections, which might take one meanwhile.
    """
    chosen: list[int] = []
    while len(chosen) < count:
        port = random.randrange(12_000, 22_000)  # noqa: S311 - nobody guesses against it
        near = any(abs(port - other) in (0, _GRPC_OFFSET) for other in chosen)
        if not near and all(_is_free(p) for p in (port, port + _GRPC_OFFSET)):
            chosen.append(port)
    return chosen


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _wait_until_ready(server: S3Server, log: Path) -> None:
    """Ready is who takes an object, and not who opens a port or lists what there was."""
    deadline = time.monotonic() + _START_SECONDS
    while reason := _refusal(server):
        if server.process.poll() is not None or time.monotonic() > deadline:
            tail = log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"the S3 server does not start: {reason}\n{tail}")
        time.sleep(0.5)


def _refusal(server: S3Server) -> str:
    try:
        files = server.files()
        files.create_dir("probe")
        with files.open_output_stream("probe/object") as handle:
            handle.write(b"ready")
    except OSError as problem:
        return str(problem)
    return ""
