"""HashiCorp Vault, by the answers its KV engine is documented to give; no live server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from deltaworks.config.credentials.credential import parse_credential
from deltaworks.config.credentials.hashicorp import HashicorpVault
from deltaworks.config.credentials.settings import VaultSettings
from deltaworks.errors import ConfigError
from deltaworks.redact import MASK, scrub

TOKEN, SECRET = "hvs.canary-token-1", "canary-88-secret"
READ = {
    "request_id": "1",
    "data": {
        "data": {"user": "bob", "password": SECRET},
        "metadata": {"version": 3, "destroyed": False, "deletion_time": ""},
    },
}
LIST = {"request_id": "2", "data": {"keys": ["crm", "folder/", "lake"]}}
WRITTEN = {"request_id": "3", "data": {"version": 4, "destroyed": False}}
DENIED = {"errors": ["1 error occurred:\n\t* permission denied\n\n"]}


class Dialect(HTTPServer):
    """Answers as recorded, and remembers what it was asked."""

    answers: dict[tuple[str, str], tuple[int, Any]]
    asked: list[tuple[str, str, dict[str, str], Any]]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Dialect

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.asked.append((self.command, self.path, dict(self.headers), body))
        status, document = self.server.answers.get((self.command, self.path), (404, {"errors": []}))
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", document)
        self.end_headers()
        if document is not None:
            text = document if isinstance(document, str) else json.dumps(document)
            self.wfile.write(text.encode())

    do_GET = do_POST = do_LIST = do_DELETE = answer  # noqa: N815 - the server's own names

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(host: str) -> Iterator[Dialect]:
    made = Dialect((host, 0), Handler)
    made.answers, made.asked = {}, []
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def server() -> Iterator[Dialect]:
    with serving("127.0.0.1") as made:
        yield made


def vault_at(server: Dialect, **settings: str) -> HashicorpVault:
    address = f"http://127.0.0.1:{server.server_port}/"
    chosen = VaultSettings(backend="hashicorp", address=address, **settings)
    return HashicorpVault(chosen, {"VAULT_TOKEN": TOKEN, "VAULT_NAMESPACE": "team"})


def refusal(vault: HashicorpVault) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        vault.get("crm")
    assert TOKEN not in str(caught.value)
    return caught.value


def test_a_record_is_the_newest_version_at_its_place(server: Dialect) -> None:
    server.answers["GET", "/v1/kv/data/team/etl/crm"] = (200, READ)
    vault = vault_at(server, mount="kv", folder="team/etl")
    found = vault.get("crm")
    assert found is not None
    assert (found.user, found.secret("password")) == ("bob", SECRET)
    headers = server.asked[0][2]
    assert (headers["X-Vault-Token"], headers["X-Vault-Namespace"]) == (TOKEN, "team")
    assert scrub(f"{SECRET} {TOKEN}") == f"{MASK} {MASK}"


def test_a_missing_or_deleted_record_is_none(server: Dialect) -> None:
    gone = {"data": {"data": None, "metadata": {"deletion_time": "2026-01-01T00:00:00Z"}}}
    server.answers["GET", "/v1/secret/data/deltaworks/old"] = (404, gone)
    vault = vault_at(server)
    assert vault.get("old") is None
    assert vault.get("never") is None
    assert vault.names() == ()


def test_names_are_listed_records_written_and_removed(server: Dialect) -> None:
    server.answers["LIST", "/v1/secret/metadata/deltaworks"] = (200, LIST)
    server.answers["POST", "/v1/secret/data/deltaworks/crm"] = (200, WRITTEN)
    server.answers["DELETE", "/v1/secret/metadata/deltaworks/crm"] = (204, None)
    vault = vault_at(server)
    assert vault.names() == ("crm", "lake")
    vault.put("crm", parse_credential({"password": SECRET, "port": 1}, name="crm"))
    assert server.asked[-1][3] == {"data": {"password": SECRET, "port": 1}}
    assert vault.remove("crm")
    assert server.asked[-1][:2] == ("DELETE", "/v1/secret/metadata/deltaworks/crm")
    assert not vault.remove("nothing")


def test_a_refusal_is_told_shortly(server: Dialect) -> None:
    place = ("GET", "/v1/secret/data/deltaworks/crm")
    server.answers[place] = (403, DENIED)
    error = refusal(vault_at(server))
    assert error.message == "HashiCorp Vault refuses the token, or what it may do is not enough"
    assert "secret/data/deltaworks/*" in error.hint
    server.answers[place] = (503, {"errors": ["Vault is sealed"]})
    assert refusal(vault_at(server)).message == "HashiCorp Vault answers 503: Vault is sealed"
    server.answers[place] = (500, "<html>")
    assert "HashiCorp Vault answers 500: Internal Server Error" in str(refusal(vault_at(server)))
    server.answers[place] = (200, "<html>")
    assert "is not HashiCorp Vault" in refusal(vault_at(server)).message


def test_no_answer_no_address_and_no_token_are_told_apart(server: Dialect) -> None:
    closed = VaultSettings(backend="hashicorp", address="http://127.0.0.1:1")
    error = refusal(HashicorpVault(closed, {"VAULT_TOKEN": TOKEN}))
    assert "at http://127.0.0.1:1 does not answer: " in error.message
    nowhere = VaultSettings(backend="hashicorp")
    assert "VAULT_ADDR" in refusal(HashicorpVault(nowhere, {"VAULT_TOKEN": TOKEN})).hint
    address = {"VAULT_ADDR": f"http://127.0.0.1:{server.server_port}"}
    assert "VAULT_TOKEN is not set" in refusal(HashicorpVault(nowhere, address)).message


@pytest.mark.parametrize("status", [301, 302, 303, 307])
def test_the_token_goes_to_no_other_server(server: Dialect, status: int) -> None:
    with serving("127.0.0.2") as other:
        there = f"http://127.0.0.2:{other.server_port}"
        server.answers["GET", "/v1/secret/data/deltaworks/crm"] = (status, f"{there}/x")
        error = refusal(vault_at(server))
        assert f"sends us on to {there}; the token was not sent there" in error.message
        assert "VAULT_ADDR" in error.hint
        assert other.asked == []


@pytest.mark.parametrize(
    "place", ["https://127.0.0.1:PORT/x", "http://127.0.0.1:1/x", "//h:PORT/x"]
)
def test_another_scheme_port_or_name_is_another_server(server: Dialect, place: str) -> None:
    place = place.replace("PORT", str(server.server_port))
    server.answers["GET", "/v1/secret/data/deltaworks/crm"] = (302, place)
    assert "the token was not sent there" in refusal(vault_at(server)).message


def test_a_redirect_on_the_same_server_is_followed_for_questions_only(server: Dialect) -> None:
    place = "/v1/secret/data/deltaworks/crm"
    server.answers["GET", place] = (307, "/v1/secret/data/moved/crm")
    server.answers["GET", "/v1/secret/data/moved/crm"] = (200, READ)
    found = vault_at(server).get("crm")
    assert found is not None
    assert found.user == "bob"
    server.answers["POST", place] = (302, "/v1/secret/data/moved/crm")
    with pytest.raises(ConfigError, match="answers 302, a redirect, and nothing was changed"):
        vault_at(server).put("crm", found)
