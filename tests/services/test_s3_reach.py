"""`deltaworks sources test` against a real S3 server: one key, or the precise reason."""

from __future__ import annotations

from typing import Any

import pytest

from deltaworks.config.credentials.credential import parse_credential
from deltaworks.config.credentials.memory import MemoryVault
from tests.services.s3_server import (
    ACCESS_KEY,
    BLIND_ACCESS_KEY,
    BLIND_SECRET_KEY,
    SECRET_KEY,
    S3Server,
)
from tests.workbench import Answer, Workbench

GOOD = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}


@pytest.fixture
def lake(s3: S3Server, desk: Workbench) -> S3Server:
    """The server with one bucket that has a key, known to the project as s3://reach."""
    files = s3.files()
    files.create_dir("reach")
    with files.open_output_stream("reach/in/orders.csv") as out:
        out.write(b"id\n1\n")
    settle(desk, s3.endpoint, **GOOD)
    return s3


def settle(desk: Workbench, endpoint: str, **record: str) -> None:
    desk.write(
        "deltaworks.yaml",
        f"project: {desk.root.name}\nwarehouse: w\ncredentials: {{backend: memory}}\nstorage:\n"
        f"  s3://reach: {{credential: lake, endpoint: '{endpoint}', path_style: true,"
        " region: us-east-1}\n",
    )
    MemoryVault(desk.root.name).put("lake", parse_credential(record, name="lake"))


def tried(desk: Workbench, name: str) -> tuple[Answer, dict[str, Any]]:
    answered = desk.cli("sources", "test", name, "--json")
    for secret in (SECRET_KEY, BLIND_SECRET_KEY, "wrong-secret-77"):
        assert secret not in answered.stdout + answered.stderr
    return answered, answered.json["results"][0]


@pytest.mark.usefixtures("lake")
def test_a_bucket_is_listed_by_its_location_and_by_its_credential(desk: Workbench) -> None:
    for name in ("s3://reach", "s3a://reach/in", "lake"):
        answered, result = tried(desk, name)
        assert answered.code == 0, answered.stdout
        assert (result["kind"], result["ok"], result["reason"]) == ("store", True, "")
        assert result["found"] == ('key "orders.csv"' if name.endswith("in") else 'key "in"')
        assert result["latency_ms"] > 0
    said = desk.cli("sources", "test", "s3://reach")
    assert said.stdout.startswith('ok  s3://reach  key "in", ')


@pytest.mark.usefixtures("lake")
def test_a_folder_without_keys_is_no_error(desk: Workbench) -> None:
    _, result = tried(desk, "s3://reach/nothing/here")
    assert (result["ok"], result["found"]) == (True, "no keys yet")


@pytest.mark.parametrize(
    ("record", "reason", "said"),
    [
        ({**GOOD, "secret_key": "wrong-secret-77"}, "auth", "SignatureDoesNotMatch"),
        ({**GOOD, "access_key": "nobody-77"}, "auth", "InvalidAccessKeyId"),
        (
            {"access_key": BLIND_ACCESS_KEY, "secret_key": BLIND_SECRET_KEY},
            "no_permission",
            "AccessDenied",
        ),
    ],
)
def test_a_key_that_is_wrong_is_told_from_one_that_may_not(
    desk: Workbench, lake: S3Server, record: dict[str, str], reason: str, said: str
) -> None:
    settle(desk, lake.endpoint, **record)
    answered, result = tried(desk, "lake")
    assert (answered.code, result["reason"]) == (4, reason)
    assert said in result["message"]
    assert result["hint"]


@pytest.mark.usefixtures("lake")
def test_a_bucket_that_is_not_there_is_named(desk: Workbench) -> None:
    text = (desk.root / "deltaworks.yaml").read_text().replace("s3://reach", "s3://gone")
    desk.write("deltaworks.yaml", text)
    answered, result = tried(desk, "s3://gone")
    assert (answered.code, result["reason"]) == (4, "missing_bucket")
    assert '"s3://gone"' in result["message"]


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("http://127.0.0.1:9", "refused"),
        ("http://no-such-machine.invalid", "dns"),
        ("https", "tls"),
    ],
)
def test_a_server_that_cannot_be_reached_is_told_with_the_step_that_failed(
    desk: Workbench, lake: S3Server, endpoint: str, reason: str
) -> None:
    wrong = lake.endpoint.replace("http", "https") if endpoint == "https" else endpoint
    settle(desk, wrong, **GOOD)
    answered, result = tried(desk, "s3://reach")
    assert (answered.code, result["reason"]) == (4, reason)
    assert wrong in result["message"]
