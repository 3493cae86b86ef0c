"""Credentials in HashiCorp Vault: its KV engine, version 2, over HTTP.

Tested against the shapes of answers that Vault documents, not against a live server.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import IO, Any
from urllib.parse import quote, urlsplit

from deltaworks.config.credentials.credential import Credential, parse_credential
from deltaworks.config.credentials.settings import VaultSettings
from deltaworks.errors import ConfigError
from deltaworks.redact import know_secret

_SECONDS = 10
_MISSING, _FORBIDDEN = 404, 403


class _OwnOriginOnly(urllib.request.HTTPRedirectHandler):
    """Follows a redirect of a question to the same server only: the token goes along."""

    def redirect_request(  # noqa: PLR0917 - the library's own
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """The request to make next, if it goes to the server that was asked."""
        if _origin(newurl) != _origin(req.full_url):
            fp.close()
            raise ConfigError(
                f"HashiCorp Vault at {_shown(req.full_url)} sends us on to {_shown(newurl)}; the "
                "token was not sent there",
                hint=f"if {_shown(newurl)} is yours, set `address` or VAULT_ADDR to it",
            )
        if req.get_method() != "GET":
            fp.close()
            raise ConfigError(
                f"HashiCorp Vault answers {code}, a redirect, and nothing was changed",
                hint="set `address` or VAULT_ADDR to the server itself",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname or "", parts.port or usual


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class HashicorpVault:
    """Reads and writes records below one folder of a KV engine."""

    name = "hashicorp"
    lists_at_once = False

    def __init__(self, settings: VaultSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._address = (settings.address or environ.get("VAULT_ADDR", "")).rstrip("/")
        self._namespace = settings.namespace or environ.get("VAULT_NAMESPACE", "")
        self._token = environ.get(settings.token_variable, "")

    def get(self, name: str) -> Credential | None:
        """The newest version of the record, if there is one."""
        answer = self._ask("GET", "data", name)
        values = ((answer or {}).get("data") or {}).get("data")
        return parse_credential(values, name=name) if values else None

    def names(self) -> tuple[str, ...]:
        """The records in the folder."""
        answer = self._ask("LIST", "metadata", "")
        keys = ((answer or {}).get("data") or {}).get("keys") or ()
        return tuple(sorted(key for key in keys if not key.endswith("/")))

    def has(self, name: str) -> bool:
        """Whether there is such a record."""
        return name in self.names()

    def put(self, name: str, credential: Credential) -> None:
        """Write a new version of the record."""
        self._ask("POST", "data", name, {"data": credential.values()})

    def remove(self, name: str) -> bool:
        """Remove the record with all its versions; whether it was there."""
        found = self.has(name)
        if found:
            self._ask("DELETE", "metadata", name)
        return found

    def _ask(
        self, method: str, kind: str, name: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """What the server answers; None when there is nothing at the place."""
        place = "/".join(filter(None, (self._settings.mount, kind, self._settings.folder, name)))
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked
            f"{self._checked_address()}/v1/{quote(place)}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers=self._headers(),
        )
        try:
            opener = urllib.request.build_opener(_OwnOriginOnly)
            with opener.open(request, timeout=_SECONDS) as reply:
                text = reply.read()
            return dict(json.loads(text)) if text else {}
        except urllib.error.HTTPError as refusal:
            with refusal:
                if refusal.code == _MISSING:
                    return None
                raise self._refused(refusal) from None
        except (OSError, http.client.HTTPException) as problem:
            reason = getattr(problem, "reason", None) or problem
            raise ConfigError(
                f"HashiCorp Vault at {self._address} does not answer: {reason}",
                hint="check `address` or VAULT_ADDR, and the network",
            ) from None
        except ValueError:
            raise ConfigError(
                f"what answers at {self._address} is not HashiCorp Vault",
                hint="check `address` or VAULT_ADDR",
            ) from None

    def _checked_address(self) -> str:
        if not self._address.startswith(("http://", "https://")):
            raise ConfigError(
                "the address of HashiCorp Vault is not set",
                hint="set VAULT_ADDR, or `address` of the backend, to its https:// URL",
            )
        return self._address

    def _headers(self) -> dict[str, str]:
        if not self._token:
            variable = self._settings.token_variable
            raise ConfigError(
                f"there is no token for HashiCorp Vault: {variable} is not set",
                hint=f"export {variable}=...",
            )
        know_secret(self._token)
        headers = {"X-Vault-Token": self._token, "X-Vault-Request": "true"}
        return headers | ({"X-Vault-Namespace": self._namespace} if self._namespace else {})

    def _refused(self, refusal: urllib.error.HTTPError) -> ConfigError:
        if refusal.code == _FORBIDDEN:
            return ConfigError(
                "HashiCorp Vault refuses the token, or what it may do is not enough",
                hint=f"renew {self._settings.token_variable}, or let its policy read "
                f"{self._settings.mount}/data/{self._settings.folder}/*",
            )
        return ConfigError(f"HashiCorp Vault answers {refusal.code}: {_first_error(refusal)}")


def _first_error(refusal: urllib.error.HTTPError) -> str:
    try:
        errors = json.loads(refusal.read()).get("errors") or ()
    except (ValueError, AttributeError):
        errors = ()
    return str(next(iter(errors), refusal.reason))
