"""A small proxy before the S3 server: it slows answers down, and tells of requests on their way."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_REQUEST = re.compile(rb"(GET|PUT|POST|HEAD|DELETE) (\S+) HTTP/1\.1\r\n")


class Proxy:
    """Passes bytes on, in both directions, as they are."""

    def __init__(self, port: int) -> None:
        self.delay_seconds = 0.0
        self.on_request: Callable[[str, str], None] = lambda _verb, _path: None
        self.swallow = False
        """Whether an answer is lost: the server has done what was asked, and nobody hears of it."""
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
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
                    for verb, path in _REQUEST.findall(data):
                        self.on_request(verb.decode(), path.decode())
                    server.sendall(data)
                server.shutdown(socket.SHUT_WR)
                back.join()

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                time.sleep(self.delay_seconds)
                if self.swallow:
                    break
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)
            self.swallow = False


@contextmanager
def proxy_before(port: int) -> Iterator[Proxy]:
    """A proxy on a port of its own, until the block ends."""
    proxy = Proxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
