"""A secret that stands in a file is refused with the command that stores it; little else is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deltaworks.config.files import parse_document
from deltaworks.config.interpolate import Names, interpolate
from deltaworks.config.project import load_project
from deltaworks.config.secret_literals import secret_problems
from deltaworks.config.secret_words import is_secret_word
from deltaworks.errors import SpecError
from deltaworks.redact import MASK, scrub
from tests.architecture.source_tree import ROOT
from tests.workbench import Workbench

AWS = "AKIA" + "IOSFODNN7EXAMPLE"
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dBjftJeZ4CVPmB92K27uhbU"
JAAS = 'org.x.ScramLoginModule required username="a" password="b";'
RANDOM = "q8Zr3Xv9Lw2Tn7Bk4Ms6"


def found(text: str) -> list[str]:
    return [problem.path for problem in secret_problems(parse_document(text, Path("p.yaml")))]


@pytest.mark.parametrize(
    "text",
    [
        "load: {options: {password: hunter2}}",
        "load: {options: {password: 12345}}",
        "extract: {options: {user: bob, pwd: x}}",
        "extract: {options: {api_key: abc}}",
        "extract: {options: {'kafka.ssl.key.password': abc}}",
        "engine: {conf: {fs.s3a.secret.key: abc}}",
        "engine: {conf: {fs.azure.account.key.shop.dfs.core.windows.net: abc=}}",
        "vars: {db_password: abc}",
        "profiles: {prod: {vars: {token: abc}}}",
        "load: {options: {secretKey: abc}}",
        f"transform: [{{type: filter, condition: \"k = '{AWS}'\"}}]",
        "extract: {path: 'https://bob:hunter2@host/x.csv'}",
        "extract: {url: 'jdbc:postgresql://h/db?user=bob&password=hunter2'}",
        "extract: {options: {x: '-----BEGIN RSA PRIVATE KEY-----\n  abc'}}",
        f"description: {JWT}",
        f"description: {'ghp_' + 'a1B2' * 9}",
        f"extract: {{options: {{auth: {RANDOM}}}}}",
        f"extract: {{options: {{key: {RANDOM}}}}}",
        f"extract: {{credential: {RANDOM}}}",
        "extract: {options: {password: 'pre-${env:REST}'}}",
        f"extract: {{options: {{sasl.jaas.config: '{JAAS}'}}}}",
        "extract: {options: {c: 'AccountName=a;AccountKey=" + "abcd1234" * 4 + "=='}}",
    ],
)
def test_a_secret_in_the_clear_is_found(text: str) -> None:
    assert len(found(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "load: {options: {password: '${env:DB_PASSWORD}'}}",
        "extract: {path: 'https://${env:USER}:${env:PW}@host/x.csv'}",
        "load: {credential: lake}",
        "load: {merge_keys: [token], partition_by: [secret]}",
        "load: {key: order_id, duplicates: {keep: newest, by: token}}",
        "extract: {schema: {password: string}, columns: {token: string}}",
        "transform: [{type: cast, columns: {password: string}}]",
        "transform: [{type: fill, values: {token: none}}]",
        "checks: [{type: accepted_values, column: password, values: [a]}]",
        "extract: {query: \"SELECT password FROM users WHERE token = 'abc'\"}",
        "extract: {path: data/passwords/token.csv}",
        "extract: {path: 'hdfs://nn:8020/user@x/a'}",
        "extract: {path: 'abfss://container@account.dfs.core.windows.net/a'}",
        "engine: {conf: {fs.s3a.aws.credentials.provider: org.apache.Provider}}",
        "engine: {conf: {spark.redaction.regex: 'secret|token'}}",
        "engine: {conf: {spark.authenticate.secret.file: f}}",
        "engine: {conf: {spark.kubernetes.authenticate.driver.serviceAccountName: spark}}",
        "credentials: {backend: hashicorp, token_variable: VAULT_TOKEN}",
        "credentials: {backend: file, key_variable: MY_KEY}",
        "load: {options: {password: '', token: null, secret: false}}",
        "extract: {options: {key: customer_identifier_2026}}",
        "description: the password is asked for",
        "id: 6f0c2f4e8a7b4d0e9c1f3a5b7d9e0f12",
    ],
)
def test_what_only_looks_like_one_is_left_alone(text: str) -> None:
    assert found(text) == []


def test_no_file_of_this_project_holds_one() -> None:
    files = [*ROOT.glob("examples/**/*.yaml"), *ROOT.glob("tests/pipelines/classic/*.json")]
    assert files
    text = {path: path.read_text(encoding="utf-8") for path in files}
    assert [p.name for p in files if secret_problems(parse_document(text[p], p))] == []


def test_validate_names_the_place_and_the_command_and_not_the_value(desk: Workbench) -> None:
    desk.pipeline(
        "p",
        "extract:\n  type: csv\n  path: a.csv\n  options:\n    secret_key: hunter2hunter2\n"
        "load: {type: delta, table: t, pasword: hunter2hunter2}\n",
    )
    answer = desk.cli("validate", "--debug")
    assert answer.code == 2
    assert "pipelines/p.yaml:6: " in answer.stderr
    assert '"secret_key" holds a secret; a secret must not stand in a file' in answer.stderr
    fix = (
        "fix: store it with `deltaworks secrets set NAME secret_key`, and write `credential: NAME`"
    )
    assert fix in answer.stderr
    assert "hunter2hunter2" not in answer.stdout + answer.stderr
    (first, *_) = desk.cli("validate", "--json").json["problems"]
    assert (first["code"], first["line"], first["path"]) == (
        "secret",
        6,
        "extract.options.secret_key",
    )


def test_a_classic_file_is_told_in_its_own_words_and_once(desk: Workbench) -> None:
    params = {"format": "csv", "path": "a.csv", "password": "hunter2"}
    document = {
        "pipelineId": "p",
        "extract": {"sourceType": "S3", "connectionParams": params},
        "load": {"sinkType": "DeltaLake", "connectionParams": {"path": "out"}},
        "writeMode": "Append",
    }
    desk.write("pipelines/p.json", json.dumps(document, indent=1))
    problems = desk.cli("validate", "--json").json["problems"]
    (problem,) = [p for p in problems if p["path"].endswith("password")]
    assert problem["code"] == "secret"
    assert '"credentialId": "NAME"' in problem["hint"]


def test_the_project_file_holds_none_either(tmp_path: Path) -> None:
    (tmp_path / "deltaworks.yaml").write_text(
        "project: p\nwarehouse: w\nprofiles:\n  prod:\n    engine:\n"
        "      conf: {spark.hadoop.fs.s3a.access.key: abc}\n"
    )
    with pytest.raises(SpecError) as caught:
        load_project(tmp_path, environ={})
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("secret", 6)
    assert "secrets set NAME access_key" in problem.hint


def test_a_secret_that_comes_from_the_environment_is_kept_out_of_texts() -> None:
    text = (
        "options: {password: '${env:PW}', url: 'x://h?t=${env:API_TOKEN}'}\n"
        "dsn: '${env:DSN}'\nday: '${var:day}'\n"
    )
    environ = {"PW": "canary-pw-1", "API_TOKEN": "canary-tk-2", "DSN": "x://u:canary-dsn-3@h/d"}
    names = Names({"day": "2026-01-01-x"}, environ)
    ready, problems = interpolate(parse_document(text, Path("p.yaml")), names)
    assert problems == ()
    assert ready.value["options"]["password"] == environ["PW"]
    said = "canary-pw-1 canary-tk-2 canary-dsn-3 2026-01-01-x"
    assert scrub(said) == f"{MASK} {MASK} {MASK} 2026-01-01-x"


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("fs.s3a.secret.key", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("clientSecret", True),
        ("sasToken", True),
        ("AWS_ACCESS_KEY_ID", False),
        ("token_count", False),
        ("passwordFile", False),
        ("merge_keys", False),
        ("", False),
    ],
)
def test_words_that_name_a_secret(key: str, *, secret: bool) -> None:
    assert is_secret_word(key) is secret
