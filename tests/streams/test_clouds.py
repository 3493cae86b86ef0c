"""A stream asks Azure and Google with what `storage` resolves to; a stand-in refuses (S6, S9)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from deltaworks.errors import EngineError
from tests.streams.tables import SCHEMA
from tests.workbench import Workbench

SECRET = "Y2FuYXJ5LXNlY3JldA=="  # noqa: S105 - of nobody
AZURE = "abfss://lake@shop.dfs.core.windows.net"
OPTIONS = "max_retries: '0', retry_timeout: 2s, timeout: 5s, allow_http: 'true'"


class Refusing(ThreadingHTTPServer):
    """Refuses everybody, and remembers who asked for what."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        super().__init__(("127.0.0.1", 0), _Refusal)


class _Refusal(BaseHTTPRequestHandler):
    server: Refusing

    def do_GET(self) -> None:
        self.server.heard.append((self.path, self.headers.get("Authorization", "")))
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def store() -> Iterator[Refusing]:
    with Refusing() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("bucket", "settings", "asks", "proves"),
    [
        (AZURE, f"account_key: '${{env:KEY}}', delta_rs: {{azure_storage_endpoint: @, {OPTIONS}}}",
         "/lake", "SharedKey shop:"),
        ("gs://lake", f"delta_rs: {{google_base_url: @, google_skip_signature: 'true', {OPTIONS}}}",
         "/lake", ""),
    ],
)  # fmt: skip
def test_the_store_is_asked_as_the_project_says(
    desk: Workbench,
    store: Refusing,
    monkeypatch: pytest.MonkeyPatch,
    bucket: str,
    settings: str,
    asks: str,
    proves: str,
) -> None:
    monkeypatch.setenv("KEY", SECRET)
    settings = settings.replace("@", f"'http://127.0.0.1:{store.server_port}'")
    desk.write(
        "deltaworks.yaml", f"project: p\nwarehouse: w\nstorage:\n  {bucket}: {{{settings}}}\n"
    )
    with pytest.raises(EngineError) as caught:
        desk.open().stream(f"{bucket}/t", writer_id="w", schema=SCHEMA)
    assert store.heard
    assert all(path.startswith(asks) and said.startswith(proves) for path, said in store.heard)
    assert SECRET not in f"{caught.value} {caught.value.__cause__}"
    assert len(str(caught.value)) < 300
