"""A small proxy before the S3 server: it counts, slows down, loses an answer, forbids, strikes.

It is a process of its own, because some calls of delta-rs hold Python's lock while they wait for
an answer, which a thread of the same process could not pass on.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) (\S+) HTTP/1\.1\r\n")
_DELETE = re.compile(rb"(DELETE \S+|POST \S*\?delete\S*) HTTP/1\.1\r\n")
_DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>"
_FORBIDDEN = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_DENIED), _DENIED)
)
_GO_ON = b"HTTP/1.1 100"
"""Not an answer yet: the server asks for the rest of the request."""


class Proxy:
    """The proxy as its tests see it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.endpoint = f"http://127.0.0.1:{self._heard()['port']}"

    def slow_down(self, seconds: float) -> None:
        """Hold every answer back from now on."""
        self._tell(delay=seconds)

    def kill_at(self, pattern: str, pid: int) -> None:
        """Kill a process -9 when something is put at a path for the first time."""
        self._tell(pattern=pattern, pid=pid)

    def lose_answer(self, pattern: str) -> None:
        """Lose the answer to the first put at a path: it is done, and nobody hears of it."""
        self._tell(pattern=pattern, pid=0)

    def forbid_deletes(self) -> None:
        """Refuse to delete anything from now on, as a store does whose policy says so."""
        self._tell(keeps=True)

    def asked(self) -> list[str]:
        """What was asked for since the last look, such as "PUT /lake/wh/a"."""
        self._tell(asked=True)
        return [str(one) for one in self._heard()["asked"]]

    def struck(self) -> str:
        """The path at which it happened; waits until it has."""
        return str(self._heard()["struck"])

    def _tell(self, **word: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(word) + "\n")
        self._process.stdin.flush()
        assert self._heard() == {"heard": True}

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        return dict(json.loads(self._process.stdout.readline()))


@contextmanager
def proxy_before(port: int) -> Iterator[Proxy]:
    """A proxy on a port of its own, until the block ends."""
    command = [sys.executable, __file__, str(port)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Proxy(process)
        finally:
            process.kill()


class _Passage:
    """Passes bytes on, in both directions, as they are."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._delay = 0.0
        self._pattern: re.Pattern[str] | None = None
        self._pid = 0
        self._losing = False
        self._keeps = False
        self._asked: list[str] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        _say(port=self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def raise_if_cancelled(self, word: dict[str, Any]) -> None:
        self._delay = word.get("delay", self._delay)
        self._keeps = word.get("keeps", self._keeps)
        if "pattern" in word:
            self._pattern, self._pid = re.compile(word["pattern"]), word["pid"]
        _say(heard=True)
        if word.get("asked"):
            asked, self._asked = self._asked, []
            _say(asked=asked)

    def _accept(self) -> None:
        while True:
            client, _ = self._listening.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            server = socket.create_connection(("127.0.0.1", self._target))
            with server:
                back = threading.Thread(target=self._answers, args=(server, client), daemon=True)
                back.start()
                while data := client.recv(1 << 16):
                    if self._keeps and _DELETE.match(data):
                        client.sendall(_FORBIDDEN)
                        return
                    for verb, path in _REQUEST.findall(data):
                        self._asked.append(f"{verb.decode()} {path.decode()}")
                        if verb == b"PUT":
                            self._look(path.decode())
                    server.sendall(data)
                server.shutdown(socket.SHUT_WR)
                back.join()

    def _look(self, path: str) -> None:
        if self._pattern is None or not self._pattern.search(path):
            return
        self._pattern = None
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
        else:
            self._losing = True
        _say(struck=path)

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                time.sleep(self._delay)
                if self._losing and not data.startswith(_GO_ON):
                    self._losing = False
                    break
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)


def _say(**word: Any) -> None:
    sys.stdout.write(json.dumps(word) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    passage = _Passage(int(sys.argv[1]))
    for line in sys.stdin:
        passage.raise_if_cancelled(json.loads(line))
