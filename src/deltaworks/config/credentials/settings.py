"""What the project file says about its vault."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

BackendName = Literal["env", "file", "keyring", "hashicorp", "cloud", "memory"]
_OF = {
    "path": "file",
    "key_variable": "file",
    "address": "hashicorp",
    "mount": "hashicorp",
    "folder": "hashicorp",
    "namespace": "hashicorp",
    "token_variable": "hashicorp",
}


class VaultSettings(BaseModel):
    """One place where credentials are kept."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    backend: BackendName
    """Where credentials are: env, file, keyring, hashicorp, cloud or memory."""
    path: str = "credentials.json"
    """The encrypted file, for the backend file."""
    key_variable: str = "DELTAWORKS_KEY"
    """The environment variable with the key of the encrypted file; without it, the keyring."""
    address: str = ""
    """The server's URL, for the backend hashicorp; VAULT_ADDR when left out."""
    mount: str = "secret"
    """Where the KV engine, version 2, is mounted."""
    folder: str = "deltaworks"
    """The folder of the credentials in it."""
    namespace: str = ""
    """The namespace, where the server has several; VAULT_NAMESPACE when left out."""
    token_variable: str = "VAULT_TOKEN"  # noqa: S105 - the name of a variable
    """The environment variable with the token."""

    @model_validator(mode="after")
    def _of_this_backend(self) -> Self:
        for name in sorted(self.model_fields_set):
            owner = _OF.get(name, self.backend)
            if owner != self.backend:
                raise ValueError(f'"{name}" is for the backend {owner}, not {self.backend}')
        return self


DEFAULT_VAULT = (VaultSettings(backend="env"), VaultSettings(backend="file"))


def listed(value: Any) -> Any:
    """One place, or several that are asked in order."""
    return (value,) if isinstance(value, dict) else value
