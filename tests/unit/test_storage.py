"""Object stores: settings come from one fixed order of places, and fit both engines (S6, A4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deltaworks.config.credentials.credential import parse_credential
from deltaworks.config.credentials.memory import MemoryVault
from deltaworks.config.object_stores import StoreAccess, store_place
from deltaworks.config.project import ProjectConfig, load_project
from deltaworks.doctor import examine_storage
from deltaworks.engines.spark.jars.s3 import S3_JARS
from deltaworks.engines.spark.session import start as session
from deltaworks.engines.spark.session.conf import SessionSettings
from deltaworks.errors import ConfigError, SpecError
from deltaworks.pipeline.locations import with_credentials
from deltaworks.redact import MASK, scrub
from deltaworks.runtime.spark import SparkStarter
from deltaworks.storage.engine_options import delta_rs_options, hadoop_settings, log_store_settings

AWS = {"AWS_ACCESS_KEY_ID": "env-access-1", "AWS_SECRET_ACCESS_KEY": "env-secret-1"}
KEYS = {"access_key": "vault-access-1", "secret_key": "vault-secret-1", "region": "eu-vault"}
LAKE = "s3a://lake/orders"


def project(
    tmp_path: Path, storage: str, environ: Mapping[str, str] | None = None, **kept: Any
) -> ProjectConfig:
    for name, values in kept.items():
        MemoryVault(tmp_path.name).put(name, parse_credential(values, name=name))
    (tmp_path / "deltaworks.yaml").write_text(
        f"project: {tmp_path.name}\nwarehouse: w\ncredentials: {{backend: memory}}\n"
        f"storage: {storage}\n"
    )
    return load_project(tmp_path, environ=environ or {})


def access(
    tmp_path: Path,
    storage: str,
    environ: Mapping[str, str] | None = None,
    *,
    location: str = LAKE,
    **kept: Any,
) -> StoreAccess:
    found = project(tmp_path, storage, environ, **kept).store_access(location)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("s3://lake", ("s3", "lake", "")),
        ("s3a://lake/a/b", ("s3", "lake", "/a/b")),
        ("gs://lake/a", ("gcs", "lake", "/a")),
        ("abfss://c@a.dfs.core.windows.net/x", ("azure", "c@a.dfs.core.windows.net", "/x")),
        ("/data/lake", None),
        ("file:///data", None),
        ("hdfs://nn:8020/x", None),
    ],
)
def test_a_location_tells_its_store(location: str, place: object) -> None:
    assert store_place(location) == place


def test_the_order_is_options_vault_environment_cloud(tmp_path: Path) -> None:
    explicit = "{s3://lake: {credential: lake, access_key: '${env:A}', secret_key: '${env:S}'}}"
    environ = {**AWS, "A": "option-access", "S": "option-secret"}
    found = access(tmp_path, explicit, environ, lake=KEYS)
    assert found.values["secret_key"] == environ["S"]
    assert found.origins == {"identity": "options", "region": 'credential "lake" (memory)'}
    found = access(tmp_path, "{s3://lake: {credential: lake}}", AWS, lake=KEYS)
    assert found.values["access_key"] == "vault-access-1"
    assert found.origins["identity"] == 'credential "lake" (memory)'
    found = access(tmp_path, "{s3://other: {credential: lake}}", {**AWS, "AWS_REGION": "eu-env"})
    assert found.values == {
        "access_key": "env-access-1",
        "secret_key": "env-secret-1",
        "region": "eu-env",
    }
    assert found.origins == {"identity": "environment", "region": "environment"}
    found = access(tmp_path, "{s3://lake: {endpoint: 'http://127.0.0.1:1'}}")
    assert found.origins == {"identity": "cloud identity", "endpoint": "options"}


def test_keys_of_two_places_are_never_mixed(tmp_path: Path) -> None:
    environ = {"AWS_SESSION_TOKEN": "env-session-1", **AWS}
    found = access(tmp_path, "{s3://lake: {credential: lake}}", environ, lake=KEYS)
    assert "session_token" not in found.values
    with pytest.raises(ConfigError, match='there is "access_key" but no "secret_key"'):
        access(tmp_path, "{}", {"AWS_ACCESS_KEY_ID": "x"})


def test_what_is_found_is_hidden_and_not_shown(tmp_path: Path) -> None:
    found = access(tmp_path, "{}", AWS)
    assert "env-secret-1" not in repr(found)
    assert scrub("env-secret-1 env-access-1") == f"{MASK} {MASK}"


def test_a_store_like_s3_is_mapped_for_both_engines(tmp_path: Path) -> None:
    storage = "{s3://lake: {credential: lake, endpoint: 'http://127.0.0.1:1', path_style: true}}"
    found = access(tmp_path, storage, lake=KEYS)
    prefix = "fs.s3a.bucket.lake"
    assert hadoop_settings(found) == {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.AbstractFileSystem.s3.impl": "org.apache.hadoop.fs.s3a.S3A",
        f"{prefix}.access.key": "vault-access-1",
        f"{prefix}.secret.key": "vault-secret-1",
        f"{prefix}.endpoint": "http://127.0.0.1:1",
        f"{prefix}.endpoint.region": "eu-vault",
        f"{prefix}.path.style.access": "true",
        f"{prefix}.connection.ssl.enabled": "false",
        f"{prefix}.aws.credentials.provider": (
            "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
        ),
    }
    assert delta_rs_options(found) == {
        "AWS_ACCESS_KEY_ID": "vault-access-1",
        "AWS_SECRET_ACCESS_KEY": "vault-secret-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_REGION": "eu-vault",
        "AWS_ALLOW_HTTP": "true",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        "aws_conditional_put": "etag",
    }
    assert log_store_settings(found) == {}


def test_temporary_keys_and_the_clouds_own_identity_have_their_providers(tmp_path: Path) -> None:
    provider = "fs.s3a.bucket.lake.aws.credentials.provider"
    found = access(tmp_path, "{}", {"AWS_SESSION_TOKEN": "env-session-1", **AWS})
    assert hadoop_settings(found)[provider].endswith("s3a.TemporaryAWSCredentialsProvider")
    assert "AWS_SESSION_TOKEN" in delta_rs_options(found)
    found = access(tmp_path, "{}")
    assert hadoop_settings(found)[provider].endswith("credentials.DefaultCredentialsProvider")
    assert delta_rs_options(found) == {"aws_conditional_put": "etag"}


def test_raw_settings_of_an_engine_win(tmp_path: Path) -> None:
    storage = "{s3://lake: {region: a, hadoop: {fs.s3a.x: y}, delta_rs: {AWS_REGION: b}}}"
    found = access(tmp_path, storage)
    assert hadoop_settings(found)["fs.s3a.x"] == "y"
    assert delta_rs_options(found)["AWS_REGION"] == "b"


def test_the_log_is_set_up_apart_from_the_data(tmp_path: Path) -> None:
    log = "{store: dynamodb, table: commits, region: eu-2, endpoint: 'http://d', options: {a.b: c}}"
    found = access(tmp_path, f"{{s3://lake: {{region: eu-1, log: {log}}}}}")
    ddb = "spark.io.delta.storage.S3DynamoDBLogStore.ddb"
    assert log_store_settings(found) == {
        "spark.delta.logStore.s3.impl": "io.delta.storage.S3DynamoDBLogStore",
        "spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore",
        f"{ddb}.tableName": "commits",
        f"{ddb}.region": "eu-2",
        f"{ddb}.endpoint": "http://d",
        "a.b": "c",
    }
    options = delta_rs_options(found)
    assert options == {
        "AWS_REGION": "eu-1",
        "AWS_S3_LOCKING_PROVIDER": "dynamodb",
        "DELTA_DYNAMO_TABLE_NAME": "commits",
        "AWS_REGION_DYNAMODB": "eu-2",
        "AWS_ENDPOINT_URL_DYNAMODB": "http://d",
    }


AZURE = "abfss://c@shop.dfs.core.windows.net/x"


@pytest.mark.parametrize(
    ("record", "hadoop", "rust"),
    [
        (
            {"account_key": "azure-key-1"},
            {"auth.type": "SharedKey", "key": "azure-key-1"},
            {"AZURE_STORAGE_ACCOUNT_KEY": "azure-key-1"},
        ),
        (
            {"client_id": "me", "client_secret": "azure-sec-1", "tenant_id": "t"},
            {
                "auth.type": "OAuth",
                "oauth.provider.type": (
                    "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
                ),
                "oauth2.client.id": "me",
                "oauth2.client.secret": "azure-sec-1",
                "oauth2.client.endpoint": "https://login.microsoftonline.com/t/oauth2/token",
            },
            {
                "AZURE_STORAGE_CLIENT_ID": "me",
                "AZURE_STORAGE_CLIENT_SECRET": "azure-sec-1",
                "AZURE_STORAGE_TENANT_ID": "t",
            },
        ),
        (
            {},
            {
                "auth.type": "OAuth",
                "oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider",
            },
            {},
        ),
    ],
    ids=["key", "client", "identity"],
)
def test_azure_is_mapped_for_both_engines(
    tmp_path: Path, record: dict[str, str], hadoop: dict[str, str], rust: dict[str, str]
) -> None:
    storage = "{'abfss://c@shop.dfs.core.windows.net': {credential: az}}"
    found = access(tmp_path, storage, location=AZURE, az=record)
    host = "shop.dfs.core.windows.net"
    assert hadoop_settings(found) == {
        f"fs.azure.account.{name}.{host}": value for name, value in hadoop.items()
    }
    assert delta_rs_options(found) == {"AZURE_STORAGE_ACCOUNT_NAME": "shop", **rust}


def test_a_shared_access_signature_of_azure_is_mapped(tmp_path: Path) -> None:
    environ = {"AZURE_STORAGE_SAS_TOKEN": "sas-token-1"}
    found = access(tmp_path, "{'az://c': {account: shop}}", environ, location="az://c/x")
    settings = hadoop_settings(found)
    assert settings["fs.azure.sas.fixed.token.shop.dfs.core.windows.net"] == "sas-token-1"
    assert "AZURE_STORAGE_SAS_TOKEN" in delta_rs_options(found)
    nobody = access(tmp_path, "{}", environ, location="az://c/x")
    with pytest.raises(ConfigError, match="no storage account"):
        hadoop_settings(nobody)


def test_google_is_mapped_for_both_engines(tmp_path: Path) -> None:
    key = {"client_email": "me@x", "private_key_id": "1", "private_key": "-----K\nabcdefgh\n---"}
    storage = "{gs://lake: {credential: g}}"
    found = access(
        tmp_path, storage, location="gs://lake/x", g={"service_account": json.dumps(key)}
    )
    settings = hadoop_settings(found)
    assert settings["fs.gs.auth.service.account.email"] == "me@x"
    assert settings["fs.gs.auth.service.account.private.key"] == key["private_key"]
    assert scrub("abcdefgh") == MASK
    assert json.loads(delta_rs_options(found)["GOOGLE_SERVICE_ACCOUNT_KEY"]) == key
    file = {"GOOGLE_APPLICATION_CREDENTIALS": "/keys/g.json"}
    found = access(tmp_path, "{}", file, location="gs://lake/x")
    assert hadoop_settings(found)["fs.gs.auth.service.account.json.keyfile"] == "/keys/g.json"
    assert delta_rs_options(found) == {"GOOGLE_SERVICE_ACCOUNT": "/keys/g.json"}
    found = access(tmp_path, "{}", location="gs://lake/x")
    assert hadoop_settings(found) == {"fs.gs.auth.type": "APPLICATION_DEFAULT"}
    found = access(tmp_path, storage, location="gs://lake/x", g={"service_account": "no json"})
    with pytest.raises(ConfigError, match="is not the JSON key"):
        hadoop_settings(found)


def test_a_local_folder_needs_nothing(tmp_path: Path) -> None:
    assert project(tmp_path, "{}").store_access("/data/lake") is None


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("{lake: {}}", "name a bucket, such as s3://lake"),
        ("{s3://lake/a: {}}", 'name the bucket alone, without "a"'),
        ("{s3://lake: {endpont: x}}", 'did you mean "endpoint"?'),
        ("{s3://lake: {log: {stor: x}}}", 'did you mean "store"?'),
        ("{s3://lake: {secret_key: abc}}", '"secret_key" holds a secret'),
        ("{s3://lake: {credential: a/b}}", "expected a name"),
    ],
)
def test_a_wrong_section_is_told_with_the_right_word(
    tmp_path: Path, storage: str, message: str
) -> None:
    with pytest.raises(SpecError) as caught:
        project(tmp_path, storage)
    assert message in str(caught.value)


def test_doctor_tells_where_settings_are_from_and_what_is_missing(tmp_path: Path) -> None:
    storage = "{s3://lake: {credential: lake, region: x}, s3://raw: {credential: nobody}}"
    lake, raw = examine_storage(project(tmp_path, storage, lake=KEYS))
    assert lake.ok
    assert lake.detail == 'identity from credential "lake" (memory), region from options'
    assert (raw.ok, raw.detail) == (False, 'there is no credential "nobody"')


def test_validate_knows_the_names_of_credentials(tmp_path: Path) -> None:
    from tests.workbench import run_cli

    project(tmp_path, "{s3://lake: {credential: lakes}}", lake=KEYS)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "p.yaml").write_text(
        "pipeline: p\nextract: {type: csv, path: a}\nload: {type: delta, table: t}\n"
    )
    (problem,) = run_cli("validate", "--project", str(tmp_path), "--json").json["problems"]
    assert problem["code"] == "unknown_credential"
    assert problem["hint"] == 'did you mean "lake"?'


def test_a_session_gets_the_settings_of_every_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = "{s3://lake: {credential: lake, log: {store: dynamodb}}, s3://raw: {region: r}}"
    given: list[SessionSettings] = []
    told: list[StoreAccess] = []
    monkeypatch.setattr(session, "start_session", lambda settings, **_: given.append(settings))
    monkeypatch.setattr(session, "reach_stores", lambda _, stores, **__: told.extend(stores))
    config = project(tmp_path, storage, lake=KEYS)
    starter = SparkStarter(config, notify=lambda _: None)
    starter.need(("s3://lake/orders", "s3://raw/in", "/tmp/here"), config.stores)
    starter.shared()
    (settings,) = given
    settled = {key: value for one in told for key, value in hadoop_settings(one).items()}
    assert settled["fs.s3a.bucket.lake.secret.key"] == KEYS["secret_key"]
    assert settled["fs.s3a.bucket.raw.endpoint.region"] == "r"
    assert settings.conf["spark.delta.logStore.s3a.impl"].endswith("S3DynamoDBLogStore")
    assert set(S3_JARS) < set(settings.jars)
    assert KEYS["secret_key"] not in repr(settings)


def test_stores_that_nothing_needs_are_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[SessionSettings] = []
    monkeypatch.setattr(session, "start_session", lambda settings, **_: given.append(settings))
    monkeypatch.setattr(session, "reach_stores", lambda *_, **__: None)
    config = project(tmp_path, "{s3://lake: {credential: nobody}}")
    starter = SparkStarter(config, notify=lambda _: None)
    starter.shared()
    assert not set(S3_JARS) & set(given[0].jars)
    starter.need(["s3://lake/orders"], config.stores)
    with pytest.raises(ConfigError, match="nobody"):
        starter.shared()


def test_a_pipeline_opens_its_buckets_by_the_credential_it_names(tmp_path: Path) -> None:
    from deltaworks.pipeline.catalog import load_plan

    storage = "{s3a://lake: {endpoint: 'http://here', access_key: '${env:OLD}'}}"
    config = project(tmp_path, storage, {"OLD": "old-key-1"}, mine=KEYS, other=KEYS)
    text = (
        "pipeline: p\nextract: {{type: csv, path: s3://lake/in, credential: mine}}\n"
        "load: {{type: delta, path: s3://lake/out, credential: {}}}\n"
    )
    path = tmp_path / "p.yaml"
    path.write_text(text.format("mine"))
    plan = load_plan(path, config.names, tmp_path)
    found = with_credentials(config, plan).store_access("s3://lake/in")
    assert found is not None
    assert found.origins["identity"] == 'credential "mine" (memory)'
    assert found.values["endpoint"] == "http://here"
    path.write_text(text.format("other"))
    with pytest.raises(ConfigError, match="cannot be opened by two credentials at once") as caught:
        with_credentials(config, load_plan(path, config.names, tmp_path))
    assert caught.value.line == 3
    path.write_text(text.replace(", credential: mine", "").replace(", credential: {}", "").format())
    assert with_credentials(config, load_plan(path, config.names, tmp_path)) is config
