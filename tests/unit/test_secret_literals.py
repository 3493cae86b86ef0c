"""A secret that stands in a file is refused with the command that stores it; little else is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deltaworks.config.documents import parse_document
from deltaworks.config.interpolate import Names, interpolate
from deltaworks.config.project import load_project
from deltaworks.config.secret_scan import secret_problems
from deltaworks.config.secret_words import is_secret_word
from deltaworks.engines.spark.session.conf import command_line_conf
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
        ("DB_PASS", True),
        ("DB_PASSWORD_PROD", True),
        ("DB_PASSWORD_1", True),
        ("password2", True),
        ("dbpassword", True),
        ("SECRET_VALUE", True),
        ("privatekey", True),
        ("fs.azure.sas.fixed.token.acct.dfs.core.windows.net", True),
        ("compass", False),
        ("tokenizer", False),
        ("prod", False),
        ("", False),
    ],
)
def test_words_that_name_a_secret(key: str, *, secret: bool) -> None:
    assert is_secret_word(key) is secret


def known_after(text: str, **environ: str) -> str:
    """What is left of the environment's values after a file has named them."""
    interpolate(parse_document(text, Path("p.yaml")), Names({"stage": "canary-stage-1"}, environ))
    return scrub(" ".join(environ.values()))


CANARY_VALUE = "canary/Value-31"


@pytest.mark.parametrize(
    "text",
    [
        "mode: '${env:DB_PASS}'",
        "mode: '${env:DB_PASSWORD_PROD}'",
        "mode: '${env:PASSWORD2}'",
        "mode: '${env:dbpassword}'",
        "mode: '${env:TOKEN_PROD}'",
        "mode: '${env:MY_SECRET_VALUE}'",
        "mode: '${env:HASH_SALT}'",
        "mode: '${env:AWS_ACCESS_KEY_ID}'",
        "mode: '${secret:X}'",
        "columns: {a: \"concat(b, '${secret:X}')\"}",
        "load: {options: {password: '${env:X}'}}",
        "load: {options: {password: 'prefix-${env:X}'}}",
        "load: {auth: {password: {value: '${env:X}'}}}",
        "load: {passwords: ['${env:X}']}",
        "engine: {conf: {fs.azure.sas.fixed.token.acct.dfs.core.windows.net: '${env:X}'}}",
        "storage: {'s3://lake': {access_key: '${env:X}'}}",
        "extract: {url: 'jdbc:postgresql://h/db?user=bob&password=${env:X}'}",
        "extract: {url: 'postgresql://bob:${env:X}@h/db'}",
        "extract: {options: {jaas: 'x required password=\"${env:X}\";'}}",
        "extract: {headers: 'token: ${env:X}'}",
    ],
)
def test_a_value_at_the_place_or_under_the_name_of_a_secret_is_one(text: str) -> None:
    name = re.search(r"\$\{\w+:(\w+)", text)
    assert name is not None
    assert known_after(text, **{name[1]: CANARY_VALUE}) == MASK


@pytest.mark.parametrize(
    "text",
    [
        "warehouse: '/lake/${env:X}'",
        "mode: '${env:TOKEN_URL}'",
        "mode: '${env:DB_PASSWORD_FILE}'",
        "mode: '${env:PARTITION_KEY}'",
        "extract: {tokens: {type: csv, path: '${env:X}'}}",
        "storage: {'s3://token-lake': {region: '${env:X}'}}",
        "load: {credential: '${env:X}'}",
        "transform: [{type: cast, columns: {password: '${env:X}'}}]",
        "day: '${var:stage}'",
    ],
)
def test_a_value_elsewhere_is_left_alone(text: str) -> None:
    name = re.search(r"\$\{env:(\w+)", text)
    environ = {name[1] if name else "X": CANARY_VALUE}
    assert known_after(text, **environ) == CANARY_VALUE


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("postgresql://bob:canary-pw-9@h/db", f"postgresql://{MASK}@h/db"),
        ("jdbc:x://h/db?password=canary-pw-9&a=b", f"jdbc:x://h/db?password={MASK}&a=b"),
        (AWS, MASK),
        (JWT, MASK),
    ],
)
def test_a_value_with_the_shape_of_a_secret_is_one_anywhere(value: str, said: str) -> None:
    assert known_after("mode: '${env:X}'", X=value) == said


def test_a_random_value_is_hidden_where_a_key_may_stand() -> None:
    assert known_after("mode: '${env:SIGNING_KEY}'", SIGNING_KEY=RANDOM) == MASK
    assert known_after("mode: '${env:X}'", X=RANDOM[::-1]) == RANDOM[::-1]


@pytest.mark.parametrize("value", ["true", "1", "dev", "production"])
def test_a_common_value_is_hidden_only_where_the_user_marks_it(value: str) -> None:
    assert known_after("password: '${env:X}'", X=value) == value
    assert known_after("password: '${secret:X}'", X=value) == (value if value == "1" else MASK)


def test_a_marked_name_that_is_not_set_is_told() -> None:
    _, (problem,) = interpolate(parse_document("a: '${secret:X}'", Path("p.yaml")), Names({}, {}))
    assert problem.message == 'environment variable "X" is not set'


def test_a_setting_from_the_environment_stays_off_command_lines(tmp_path: Path) -> None:
    (tmp_path / "deltaworks.yaml").write_text(
        "project: p\nwarehouse: w\nengine: {conf: {spark.executorEnv.PG: '${env:DB_PASS}'}}\n"
    )
    conf = load_project(tmp_path, environ={"DB_PASS": CANARY_VALUE}).engine.conf
    assert conf == {"spark.executorEnv.PG": CANARY_VALUE}
    assert command_line_conf(conf) == {}
