"""A credential: everything about a connection that does not belong into a file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from deltaworks.config.secret_shapes import secrets_in
from deltaworks.config.secret_words import may_be_secret_word
from deltaworks.errors import ConfigError
from deltaworks.redact import know_secret
from deltaworks.suggest import did_you_mean

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
NAME_RULE = 'letters, digits, "_", "-" and ".", such as lake or crm.reader'
_OPTION = "options."


class Credential(BaseModel):
    """A typed record; what it leaves out, the pipeline or the project file says."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    host: str = ""
    """The server."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """The server's port."""
    database: str = ""
    """The database on the server."""
    user: str = ""
    """Who connects."""
    password: SecretStr | None = None
    """The user's password."""
    token: SecretStr | None = None
    """A bearer or access token, where one is used instead of a password."""
    access_key: SecretStr | None = None
    """The access key id of S3 and stores like it."""
    secret_key: SecretStr | None = None
    """The secret access key of S3 and stores like it."""
    session_token: SecretStr | None = None
    """The session token that goes with temporary keys."""
    account: str = ""
    """The storage account, for Azure."""
    account_key: SecretStr | None = None
    """The account's key, for Azure."""
    sas_token: SecretStr | None = None
    """A shared access signature, for Azure."""
    tenant_id: str = ""
    """The directory of a client, for Azure."""
    client_id: str = ""
    """The client's id."""
    client_secret: SecretStr | None = None
    """The client's secret."""
    service_account: SecretStr | None = None
    """The JSON key of a service account, for Google."""
    endpoint: str = ""
    """The address of a store that is like S3."""
    region: str = ""
    """The region of a store."""
    options: dict[str, str] = Field(default_factory=dict)
    """Further options of the driver, by its own names."""

    @field_validator("service_account", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return json.dumps(value) if isinstance(value, dict) else value

    def secret(self, field: str) -> str:
        """The value of a secret field; empty when it has none."""
        value = getattr(self, field)
        return value.get_secret_value() if isinstance(value, SecretStr) else ""

    def present(self) -> tuple[str, ...]:
        """The names of the fields that have a value."""
        filled = [name for name in type(self).model_fields if name != "options"]
        named = [name for name in filled if getattr(self, name) not in ("", None)]
        return (*named, *(f"{_OPTION}{name}" for name in self.options))

    def values(self) -> dict[str, Any]:
        """The record as it is kept: secrets in the clear, so only for a vault."""
        kept: dict[str, Any] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            value = value.get_secret_value() if isinstance(value, SecretStr) else value
            if value not in ("", None, {}):
                kept[name] = value
        return kept

    def known(self) -> Credential:
        """The same, its secrets kept out of every text from now on."""
        fields = [name for name in type(self).model_fields if self.secret(name)]
        know_secret(*(self.secret(name) for name in fields))
        know_secret(*(value for name, value in self.options.items() if may_be_secret_word(name)))
        for value in (self.endpoint, self.host, *self.options.values()):
            know_secret(*secrets_in(value))
        return self


FIELDS = tuple(Credential.model_fields)
SECRET_FIELDS = tuple(
    name for name, field in Credential.model_fields.items() if "SecretStr" in str(field.annotation)
)


def require_name(name: str) -> str:
    """The name, if a credential can have it."""
    if NAME.fullmatch(name) is None:
        raise ConfigError(f'"{name}" is not the name of a credential', hint=NAME_RULE)
    return name


def parse_credential(values: Mapping[str, Any], *, name: str) -> Credential:
    """The record in plain values; a wrong field is named, its value is not."""
    know_secret(*(str(values[field]) for field in SECRET_FIELDS if values.get(field)))
    try:
        return Credential.model_validate(_nested(values)).known()
    except ValidationError as error:
        raise _wrong(error, name) from None


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """`options.fetchsize` as an entry of `options`."""
    plain = {key: value for key, value in values.items() if not key.startswith(_OPTION)}
    dotted = {k.removeprefix(_OPTION): v for k, v in values.items() if k.startswith(_OPTION)}
    if dotted:
        plain["options"] = {**plain.get("options", {}), **dotted}
    return plain


def _wrong(error: ValidationError, name: str) -> ConfigError:
    detail = error.errors(include_input=False, include_url=False)[0]
    field = ".".join(map(str, detail["loc"]))
    if detail["type"] == "extra_forbidden":
        hint = did_you_mean(field, FIELDS)
        return ConfigError(f'credential "{name}": there is no field "{field}"', hint=hint)
    said = detail["msg"].replace("Input should be", "it must be")
    return ConfigError(f'credential "{name}": the value of "{field}" is wrong: {said}')
