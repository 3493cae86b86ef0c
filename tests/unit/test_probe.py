"""Whatever a project reads from can be tried by name, without a JVM and over real sockets."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from deltaworks.config.credentials.credential import parse_credential
from deltaworks.config.credentials.memory import MemoryVault
from deltaworks.config.object_stores import StoreAccess
from deltaworks.engines.deltars.bucket_check import refusal
from deltaworks.errors import StorageError
from deltaworks.storage.tcp_check import reach
from tests.workbench import Workbench

HERE = "127.0.0.1"
ACCESS = StoreAccess(kind="s3", bucket="lake", values={}, origins={})


@contextmanager
def server(context: ssl.SSLContext | None = None, *, silent: bool = False) -> Iterator[int]:
    """A server that takes connections, and shakes hands or says nothing."""
    with socket.create_server((HERE, 0)) as listener:
        taken: list[socket.socket] = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    taken.append(client)
                    if context is not None:
                        with suppress(OSError):
                            context.wrap_socket(client, server_side=True).close()
                    elif not silent:
                        client.sendall(b"HTTP/1.0 400 no\r\n\r\n")
                        client.close()

        threading.Thread(target=serve, daemon=True).start()
        yield int(listener.getsockname()[1])
        for client in taken:
            client.close()


def closed_port() -> int:
    with socket.create_server((HERE, 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def own_certificate(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A certificate that nobody but its maker trusts."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HERE)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(private + made.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def reason(host: str, port: int, *, tls: bool = False, wait_seconds: float = 5) -> object:
    with pytest.raises(StorageError) as caught:
        reach(host, port, tls=tls, wait_seconds=wait_seconds)
    return caught.value.context["reason"]


def test_a_server_that_answers_is_reached() -> None:
    with server() as port:
        reach(HERE, port)


def test_each_step_of_a_connection_fails_with_its_own_reason(
    own_certificate: ssl.SSLContext,
) -> None:
    assert reason("no-such-machine.invalid", 80) == "dns"
    assert reason(HERE, closed_port()) == "refused"
    with server(silent=True) as port:
        assert reason(HERE, port, tls=True, wait_seconds=0.2) == "timeout"
    with server() as port:
        assert reason(HERE, port, tls=True) == "tls"
    with server(own_certificate) as port:
        assert reason(HERE, port, tls=True) == "tls"


@pytest.mark.parametrize(
    ("said", "reason", "words"),
    [
        ("Generic S3 error\n ↳ 403 Forbidden\n ↳ <Code>ExpiredToken</Code>", "auth", "keys"),
        ("404 Not Found: no body", "missing_bucket", "no such bucket"),
        ("401 Unauthorized", "auth", "keys"),
        ("PUT http://169.254.169.254/latest/api/token - HTTP error", "auth", "no keys were found"),
        ("error sending request\n ↳ operation timed out", "timeout", "in time"),
        ("client error (Connect)\n ↳ invalid peer certificate: UnknownIssuer", "tls", "TLS"),
        ("Generic S3 error\n  \x1b[31m↳\x1b[0m something new", "other", "something new"),
        ("", "other", "no reason was given"),
    ],
)
def test_what_a_store_says_becomes_one_reason(said: str, reason: str, words: str) -> None:
    error = refusal("s3://lake", said, ACCESS)
    assert error.context["reason"] == reason
    assert words in error.message
    assert "\x1b" not in error.message


def test_files_and_tables_of_a_pipeline_are_looked_at(desk: Workbench) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    write_deltalake(str(desk.table("countries")), pa.table({"code": ["NL"]}))
    desk.write("data/a.csv", "id\n1\n")
    desk.write("data/b.csv", "id\n2\n")
    desk.pipeline(
        "orders",
        "extract:\n"
        "  orders: {type: csv, path: 'data/${var:which}.csv'}\n"
        "  lands: {type: delta, table: countries}\n"
        "  query: {type: sql, query: SELECT code FROM countries}\n"
        "transform: [{type: sql, input: orders, query: 'SELECT * FROM orders, lands, query'}]\n"
        "load: {type: delta, table: t}\n",
    )
    found = desk.cli("sources", "test", "orders", "--json", "--var", "which=*")
    assert found.code == 0, found.stdout
    assert {r["name"]: r["found"] for r in found.json["results"]} == {
        "orders.orders": f'file "{desk.root}/data/a.csv" and 1 more',
        "orders.lands": "version 0, one row was read",
        "orders.query": "it can be read",
    }
    one = desk.cli("sources", "test", "orders.lands", "--var", "which=a")
    assert one.stdout.startswith("ok  orders.lands  version 0, one row was read, ")
    missing = desk.cli("sources", "test", "orders.orders", "--json", "--var", "which=c")
    assert missing.code == 1
    assert missing.json["results"][0]["reason"] == "missing"
    slip = desk.cli("sources", "test", "orders.land", "--var", "which=a")
    assert (slip.code, "lands" in slip.stderr) == (2, True)


def test_a_path_is_looked_at(desk: Workbench) -> None:
    desk.write("data/a.csv", "id\n")
    assert desk.cli("sources", "test", "data/*.csv").code == 0
    gone = desk.cli("sources", "test", "./data/b.csv")
    assert gone.code == 1
    assert "fix: " in gone.stdout


def test_a_file_that_cannot_be_opened_is_said(
    desk: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.root / "data").mkdir()
    monkeypatch.chdir(desk.root)
    with socket.socket(socket.AF_UNIX) as holder:
        holder.bind("data/held.csv")  # a name that nobody can open as a file
        answered = desk.cli("sources", "test", "data/held.csv")
    assert answered.code == 4
    assert "cannot be read" in answered.stdout


def test_a_credential_is_tried_at_the_server_it_names(desk: Workbench) -> None:
    desk.write("deltaworks.yaml", "project: p\nwarehouse: w\ncredentials: {backend: memory}\n")
    vault = MemoryVault("p")
    with server() as port:
        records: dict[str, dict[str, Any]] = {
            "crm": {"host": HERE, "port": port, "password": "canary-55-crm"},
            "api": {"endpoint": f"http://{HERE}:{port}"},
        }
        for name, record in records.items():
            vault.put(name, parse_credential(record, name=name))
            answered = desk.cli("sources", "test", name)
            assert answered.stdout.startswith(f"ok  {name}  {HERE}:{port} answers, ")
    vault.put("crm", parse_credential({"host": HERE, "port": closed_port()}, name="crm"))
    refused = desk.cli("sources", "test", "crm", "--json")
    assert (refused.code, refused.json["results"][0]["reason"]) == (4, "refused")


def test_a_database_with_a_driver_of_its_own_is_only_connected_to(desk: Workbench) -> None:
    with server() as port:
        desk.pipeline(
            "sales",
            "extract: {type: jdbc, system: db2, driver_jar: db2.jar, table: orders, "
            f"host: {HERE}, port: {port}, database: sales}}\nload: {{type: delta, table: t}}\n",
        )
        answered = desk.cli("sources", "test", "sales")
    assert (answered.code, "the server answers" in answered.stdout) == (0, True)


def test_a_name_that_opens_nothing_says_what_to_do(desk: Workbench) -> None:
    desk.write(
        "deltaworks.yaml",
        "project: q\nwarehouse: w\ncredentials: {backend: memory}\nstorage: {s3://lake: {}}\n",
    )
    MemoryVault("q").put("alone", parse_credential({"user": "bob"}, name="alone"))
    assert "nothing says what" in desk.cli("sources", "test", "alone").stderr
    assert "s3://lake" in desk.cli("sources", "test", "s3_lake").stderr
    assert "no store that is known" in desk.cli("sources", "test", "ftp://lake").stdout


def test_a_bucket_without_keys_is_answered_in_one_line(desk: Workbench) -> None:
    apart = ("AWS_", "DELTAWORKS_", "RUST_LOG")
    environ = {name: text for name, text in os.environ.items() if not name.startswith(apart)}
    # the chain of keys ends at this machine, as it does on one that is in no cloud
    environ["AWS_EC2_METADATA_DISABLED"] = "true"
    code = "import sys; from deltaworks.cli.app import main; sys.exit(main())"
    words = ("sources", "test", "s3://lake", "--project", str(desk.root))
    found = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 4
    first, fix = found.stdout.splitlines()
    assert first.startswith('BAD s3://lake  "s3://lake": no keys were found, and this machine has')
    assert fix.strip().startswith("fix: name a `credential` in `storage`")
    assert found.stderr == ""
