"""How object stores are reached: what the project file says, and which place each value is from.

The order is fixed: what `storage` says, then the credential it names, then environment variables,
then the cloud's own identity, for which nothing is given.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from deltaworks.config.credentials.credential import NAME, NAME_RULE, Credential
from deltaworks.config.credentials.vault import Vault
from deltaworks.errors import ConfigError
from deltaworks.redact import know_secret

_SETTINGS = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
StoreKind = Literal["s3", "azure", "gcs"]
_KINDS: Mapping[str, StoreKind] = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("abfss", "abfs", "az", "wasbs"), "azure"),
    "gs": "gcs",
}
_PLACE = re.compile(r"(?P<scheme>[a-z0-9]+)://(?P<bucket>[^/?#]+)(?P<rest>.*)")
OPTIONS, ENVIRONMENT, CLOUD = "options", "environment", "cloud identity"
_WAYS: Mapping[StoreKind, tuple[tuple[str, ...], ...]] = {
    "s3": (("access_key", "secret_key", "session_token"),),
    "azure": (("account_key",), ("sas_token",), ("client_id", "client_secret", "tenant_id")),
    "gcs": (("service_account",), ("service_account_file",)),
}
"""Ways to prove who one is; the fields of one way come from one place."""
_VARIABLES: Mapping[StoreKind, Mapping[str, tuple[str, ...]]] = {
    "s3": {
        "access_key": ("AWS_ACCESS_KEY_ID",),
        "secret_key": ("AWS_SECRET_ACCESS_KEY",),
        "session_token": ("AWS_SESSION_TOKEN",),
        "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
        "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    },
    "azure": {
        "account": ("AZURE_STORAGE_ACCOUNT_NAME",),
        "account_key": ("AZURE_STORAGE_ACCOUNT_KEY",),
        "sas_token": ("AZURE_STORAGE_SAS_TOKEN",),
        "client_id": ("AZURE_CLIENT_ID",),
        "client_secret": ("AZURE_CLIENT_SECRET",),
        "tenant_id": ("AZURE_TENANT_ID",),
    },
    "gcs": {
        "service_account": ("GOOGLE_SERVICE_ACCOUNT_KEY",),
        "service_account_file": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"),
    },
}
_PLAIN = ("endpoint", "region", "account")


class LogSettings(BaseModel):
    """How commits are kept apart, where that is set up differently from the data."""

    model_config = _SETTINGS

    store: Literal["single_driver", "dynamodb"] = "single_driver"
    """One driver at a time, or several by a table of DynamoDB."""
    table: str = "delta_log"
    """The table of DynamoDB."""
    region: str = ""
    """The region of that table, if it is another one."""
    endpoint: str = ""
    """The address of DynamoDB, if it is a service like it."""
    options: dict[str, str] = Field(default_factory=dict)
    """Further Spark settings of the log store, by their own names."""


class StorageSettings(BaseModel):
    """How one bucket or container is reached."""

    model_config = _SETTINGS

    credential: str = ""
    """The credential with its keys, by name."""
    endpoint: str = ""
    """The address of a store that is like S3."""
    region: str = ""
    """The region of the store."""
    account: str = ""
    """The storage account, for Azure."""
    path_style: bool | None = None
    """Whether the bucket is part of the path, as most stores that are like S3 want it."""
    access_key: SecretStr | None = None
    """The access key, by ${env:NAME}; a credential is better."""
    secret_key: SecretStr | None = None
    """The secret key, by ${env:NAME}; a credential is better."""
    session_token: SecretStr | None = None
    """The session token of temporary keys, by ${env:NAME}."""
    account_key: SecretStr | None = None
    """The account's key, for Azure, by ${env:NAME}; a credential is better."""
    sas_token: SecretStr | None = None
    """A shared access signature, for Azure, by ${env:NAME}."""
    log: LogSettings = Field(default_factory=LogSettings)
    """Settings of Delta's log, apart from those of the data."""
    hadoop: dict[str, str] = Field(default_factory=dict)
    """Further settings for Spark, by Hadoop's own names; they win."""
    delta_rs: dict[str, str] = Field(default_factory=dict)
    """Further options for delta-rs, by its own names; they win."""

    @field_validator("credential")
    @classmethod
    def _named(cls, name: str) -> str:
        if name and NAME.fullmatch(name) is None:
            raise ValueError(f"expected a name: {NAME_RULE}")
        return name


@dataclass(frozen=True, kw_only=True)
class StoreAccess:
    """Everything that is needed to reach one bucket or container."""

    kind: StoreKind
    bucket: str
    """The bucket; for Azure the container, with `@account...` if the location says it."""
    values: Mapping[str, str] = field(repr=False)
    """What was found, by the fields of a credential; secrets among them."""
    origins: Mapping[str, str]
    """Where each value is from, without the values: fields, and `identity` for all keys."""
    path_style: bool | None = None
    log: LogSettings = field(default_factory=LogSettings)
    hadoop: Mapping[str, str] = field(default_factory=dict, repr=False)
    delta_rs: Mapping[str, str] = field(default_factory=dict, repr=False)


def store_place(location: str) -> tuple[StoreKind, str, str] | None:
    """Kind, bucket and the rest of a location; None for what is on no object store."""
    match = _PLACE.fullmatch(location)
    kind = _KINDS.get(match["scheme"]) if match else None
    return (kind, match["bucket"], match["rest"]) if match and kind else None


def storage_problem(location: str) -> str:
    """Why a name in the section `storage` is none; empty when it is one."""
    place = store_place(location)
    if place is None:
        return "name a bucket, such as s3://lake, gs://lake or abfss://lake@account.dfs..."
    rest = place[2].strip("/")
    return f'name the bucket alone, without "{rest}": settings hold for all of it' if rest else ""


def resolve_storage(
    location: str,
    storage: Mapping[str, StorageSettings],
    *,
    vault: Vault,
    environ: Mapping[str, str],
) -> StoreAccess | None:
    """How a location is reached; None for what is on no object store."""
    place = store_place(location)
    if place is None:
        return None
    kind, bucket, _ = place
    places = {
        (found := store_place(name)) and found[:2]: settings for name, settings in storage.items()
    }
    settings = places.get((kind, bucket), StorageSettings())
    candidates = _candidates(kind, settings, vault, environ)
    values, origins = _identity(kind, candidates)
    for name in _PLAIN:
        for origin, offered in candidates:
            if offered.get(name):
                values[name], origins[name] = offered[name], origin
                break
    return StoreAccess(
        kind=kind,
        bucket=bucket,
        values=values,
        origins=origins,
        path_style=settings.path_style,
        log=settings.log,
        hadoop=settings.hadoop,
        delta_rs=settings.delta_rs,
    )


class Stores:
    """The object stores of a project; how one is reached is found out when it is first needed."""

    def __init__(
        self,
        storage: Mapping[str, StorageSettings] | None = None,
        *,
        vault: Callable[[], Vault] = Vault,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._storage = storage or {}
        self._vault = vault
        self._environ = environ or {}
        self._found: dict[tuple[StoreKind, str], StoreAccess | None] = {}
        self._finding = threading.Lock()

    def access(self, location: str) -> StoreAccess | None:
        """How a location is reached; None for what is on no object store."""
        place = store_place(location)
        if place is None:
            return None
        with self._finding:  # several runs may need it at the same moment
            if place[:2] not in self._found:
                self._found[place[:2]] = resolve_storage(
                    location, self._storage, vault=self._vault(), environ=self._environ
                )
            return self._found[place[:2]]


NO_STORES = Stores()
"""For tables and files on this machine."""

_Candidates = list[tuple[str, Mapping[str, str]]]


def _candidates(
    kind: StoreKind, settings: StorageSettings, vault: Vault, environ: Mapping[str, str]
) -> _Candidates:
    """What each place offers, in order."""
    offered: _Candidates = [(OPTIONS, _texts(settings))]
    if settings.credential:
        found = vault.find(settings.credential)
        origin = f'credential "{settings.credential}" ({found.backend})'
        offered.append((origin, _texts(found.credential)))
    return [*offered, (ENVIRONMENT, _from_environment(kind, environ))]


def _texts(model: StorageSettings | Credential) -> dict[str, str]:
    found = {}
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, SecretStr):
            know_secret(value.get_secret_value())
            found[name] = value.get_secret_value()
        elif isinstance(value, str) and value:
            found[name] = value
    return found


def _from_environment(kind: StoreKind, environ: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, variables in _VARIABLES[kind].items():
        value = next((environ[v] for v in variables if environ.get(v)), "")
        if value:
            found[name] = value
    know_secret(*(found[name] for way in _WAYS[kind] for name in way if name in found))
    return found


def _require_pair(found: Mapping[str, str], way: tuple[str, ...], origin: str) -> None:
    if len(way) > 1 and way[1] not in found:
        raise ConfigError(
            f'there is "{way[0]}" but no "{way[1]}" ({origin})', hint=f'give "{way[1]}" there too'
        )


def _identity(kind: StoreKind, candidates: _Candidates) -> tuple[dict[str, str], dict[str, str]]:
    """The keys of the first place that has some; fields of two places are never mixed."""
    for origin, offered in candidates:
        for way in _WAYS[kind]:
            if offered.get(way[0]):
                found = {name: offered[name] for name in way if name in offered}
                _require_pair(found, way, origin)
                return found, {"identity": origin}
    return {}, {"identity": CLOUD}
