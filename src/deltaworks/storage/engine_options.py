"""What the two engines call the settings of an object store.

S3 is tested against a real server that speaks its protocol. Azure and Google are mapped by the
documentation of Hadoop and delta-rs, and untested against a live store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from deltaworks.config.object_stores import StoreAccess, Stores
from deltaworks.errors import ConfigError
from deltaworks.redact import know_secret

_S3A = "org.apache.hadoop.fs.s3a"
_ABFS = "org.apache.hadoop.fs.azurebfs"
_DEFAULT_CHAIN = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
_DYNAMODB = "spark.io.delta.storage.S3DynamoDBLogStore.ddb"
_AZURE_HOST = "dfs.core.windows.net"


def hadoop_settings(access: StoreAccess) -> dict[str, str]:
    """Settings for Spark's Hadoop; they hold secrets, so they are set after the JVM's start."""
    mapped = {"s3": _hadoop_s3, "azure": _hadoop_azure, "gcs": _hadoop_gcs}[access.kind](access)
    return {**mapped, **access.hadoop}


def delta_rs_options(access: StoreAccess) -> dict[str, str]:
    """`storage_options` for delta-rs."""
    mapped = {"s3": _rust_s3, "azure": _rust_azure, "gcs": _rust_gcs}[access.kind](access)
    return {**mapped, **access.delta_rs}


def table_options(stores: Stores, location: str) -> dict[str, str]:
    """`storage_options` for the table at a location; empty for one on this machine."""
    access = stores.access(location)
    return {} if access is None else delta_rs_options(access)


def log_store_settings(access: StoreAccess) -> dict[str, str]:
    """Spark settings of Delta's log, where it is set up apart from the data; no secrets."""
    log = access.log
    if access.kind != "s3" or log.store == "single_driver":
        return dict(log.options)
    place = {"tableName": log.table, "region": log.region, "endpoint": log.endpoint}
    impl = {f"spark.delta.logStore.{s}.impl": "io.delta.storage.S3DynamoDBLogStore" for s in _S3}
    named = {f"{_DYNAMODB}.{name}": value for name, value in place.items() if value}
    return {**impl, **named, **log.options}


_S3 = ("s3", "s3a")


def _named(values: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """The values that are there, by other names."""
    return {names[field]: values[field] for field in names if values.get(field)}


def _hadoop_s3(access: StoreAccess) -> dict[str, str]:
    values = access.values
    prefix = f"fs.s3a.bucket.{access.bucket}"
    found = dict(_S3_SCHEME)
    found |= {f"{prefix}.{key}": value for key, value in _named(values, _S3A_KEYS).items()}
    found[f"{prefix}.aws.credentials.provider"] = _s3a_provider(values)
    if values.get("endpoint", "").startswith("http://"):
        found[f"{prefix}.connection.ssl.enabled"] = "false"
    if access.path_style is not None:
        found[f"{prefix}.path.style.access"] = str(access.path_style).lower()
    return found


_S3_SCHEME = {
    "fs.s3.impl": f"{_S3A}.S3AFileSystem",
    "fs.AbstractFileSystem.s3.impl": f"{_S3A}.S3A",
}
"""s3:// is the spelling that both engines are given; Hadoop by itself knows s3a:// only."""
_S3A_KEYS = {
    "access_key": "access.key",
    "secret_key": "secret.key",
    "session_token": "session.token",
    "endpoint": "endpoint",
    "region": "endpoint.region",
}


def _s3a_provider(values: Mapping[str, str]) -> str:
    if not values.get("access_key"):
        return _DEFAULT_CHAIN
    kind = "Temporary" if values.get("session_token") else "Simple"
    return f"{_S3A}.{kind}AWSCredentialsProvider"


def _rust_s3(access: StoreAccess) -> dict[str, str]:
    found = _named(access.values, _RUST_S3_KEYS)
    if access.values.get("endpoint", "").startswith("http://"):
        found["AWS_ALLOW_HTTP"] = "true"
    if access.path_style is not None:
        found["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = str(not access.path_style).lower()
    log = access.log
    if log.store == "single_driver":
        return {**found, "aws_conditional_put": "etag"}
    found |= {"AWS_S3_LOCKING_PROVIDER": "dynamodb", "DELTA_DYNAMO_TABLE_NAME": log.table}
    found |= {"AWS_REGION_DYNAMODB": log.region} if log.region else {}
    return found | ({"AWS_ENDPOINT_URL_DYNAMODB": log.endpoint} if log.endpoint else {})


_RUST_S3_KEYS = {
    "access_key": "AWS_ACCESS_KEY_ID",
    "secret_key": "AWS_SECRET_ACCESS_KEY",
    "session_token": "AWS_SESSION_TOKEN",
    "endpoint": "AWS_ENDPOINT_URL",
    "region": "AWS_REGION",
}


def _account(access: StoreAccess) -> str:
    """The storage account: the location says it after an @, or the settings do."""
    account = access.bucket.partition("@")[2].partition(".")[0] or access.values.get("account", "")
    if not account:
        raise ConfigError(
            f'no storage account is set for "{access.bucket}"',
            hint="set `account` in `storage`, or write abfss://container@account.dfs...",
        )
    return account


def _hadoop_azure(access: StoreAccess) -> dict[str, str]:
    values = access.values
    account = f"{_account(access)}.{_AZURE_HOST}"
    kind = f"fs.azure.account.auth.type.{account}"
    if key := values.get("account_key"):
        return {kind: "SharedKey", f"fs.azure.account.key.{account}": key}
    if token := values.get("sas_token"):
        provider = f"fs.azure.sas.token.provider.type.{account}"
        fixed = {f"fs.azure.sas.fixed.token.{account}": token}
        return {kind: "SAS", provider: f"{_ABFS}.sas.FixedSASTokenProvider", **fixed}
    provider = f"fs.azure.account.oauth.provider.type.{account}"
    if not values.get("client_secret"):
        return {kind: "OAuth", provider: f"{_ABFS}.oauth2.MsiTokenProvider"}
    client = "fs.azure.account.oauth2.client"
    tenant = values.get("tenant_id", "common")
    return {
        kind: "OAuth",
        provider: f"{_ABFS}.oauth2.ClientCredsTokenProvider",
        f"{client}.id.{account}": values["client_id"],
        f"{client}.secret.{account}": values["client_secret"],
        f"{client}.endpoint.{account}": f"https://login.microsoftonline.com/{tenant}/oauth2/token",
    }


def _rust_azure(access: StoreAccess) -> dict[str, str]:
    found = _named(access.values, _RUST_AZURE_KEYS)
    return {"AZURE_STORAGE_ACCOUNT_NAME": _account(access), **found}


_RUST_AZURE_KEYS = {
    "account_key": "AZURE_STORAGE_ACCOUNT_KEY",
    "sas_token": "AZURE_STORAGE_SAS_TOKEN",
    "client_id": "AZURE_STORAGE_CLIENT_ID",
    "client_secret": "AZURE_STORAGE_CLIENT_SECRET",
    "tenant_id": "AZURE_STORAGE_TENANT_ID",
    "endpoint": "AZURE_STORAGE_ENDPOINT",
}


def _hadoop_gcs(access: StoreAccess) -> dict[str, str]:
    values = access.values
    if path := values.get("service_account_file"):
        name = "fs.gs.auth.service.account.json.keyfile"
        return {"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", name: path}
    if "service_account" not in values:
        return {"fs.gs.auth.type": "APPLICATION_DEFAULT"}
    key = _service_account(values["service_account"])
    prefix = "fs.gs.auth.service.account"
    return {
        f"{prefix}.enable": "true",
        f"{prefix}.email": key.get("client_email", ""),
        f"{prefix}.private.key.id": key.get("private_key_id", ""),
        f"{prefix}.private.key": key.get("private_key", ""),
    }


def _service_account(text: str) -> dict[str, str]:
    try:
        key: dict[str, str] = dict(json.loads(text))
    except (ValueError, TypeError):
        raise ConfigError(
            "`service_account` is not the JSON key of a service account",
            hint="store the whole file: deltaworks secrets set NAME service_account --stdin",
        ) from None
    know_secret(key.get("private_key", ""))
    return key


def _rust_gcs(access: StoreAccess) -> dict[str, str]:
    return _named(access.values, _RUST_GCS_KEYS)


_RUST_GCS_KEYS = {
    "service_account": "GOOGLE_SERVICE_ACCOUNT_KEY",
    "service_account_file": "GOOGLE_SERVICE_ACCOUNT",
}
