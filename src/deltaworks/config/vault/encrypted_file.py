"""Credentials in an encrypted file of the project.

Names are readable, so that files can be checked without the key. Each record is one Fernet token
(AES-128-CBC with HMAC-SHA256); its name is inside, so records cannot be swapped. The key is
derived by scrypt from what the user gives, with a salt of the file's own.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.config.cache import write_atomically
from deltaworks.config.files import shown_path
from deltaworks.config.vault.credential import Credential, parse_credential
from deltaworks.config.vault.extras import vault_package
from deltaworks.config.vault.system_keyring import read_entry, write_entry
from deltaworks.errors import ConfigError, StorageError
from deltaworks.redact import know_secret

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

_FORMAT = "deltaworks-credentials-1"
_CHECK = "is this the key?"
_KEY_ENTRY = "file-key"
_WHY = "an encrypted file of credentials"


@dataclass(frozen=True)
class _Envelope:
    """The file: a salt, a token that tells the right key, and a token for each name."""

    salt: str
    check: str
    records: Mapping[str, str]

    def text(self) -> str:
        document = {
            "format": _FORMAT,
            "salt": self.salt,
            "check": self.check,
            "credentials": dict(sorted(self.records.items())),
        }
        return json.dumps(document, indent=2) + "\n"


class FileVault:
    """Keeps the credentials of a project in one file that only its key opens."""

    name = "file"
    lists_at_once = True

    def __init__(
        self, path: Path, *, project: str, key_variable: str, environ: Mapping[str, str]
    ) -> None:
        self.path = path
        self._service = f"deltaworks/{project}"
        self._variable = key_variable
        self._environ = environ

    def get(self, name: str) -> Credential | None:
        """The credential, if the file has it and the key opens it."""
        envelope = self._read()
        if envelope is None or name not in envelope.records:
            return None
        text = self._open(self._cipher(envelope), envelope.records[name])
        kept = json.loads(text)
        if kept["name"] != name:
            raise self._damaged()
        return parse_credential(kept["values"], name=name)

    def names(self) -> tuple[str, ...]:
        """The names in the file; no key is needed."""
        envelope = self._read()
        return () if envelope is None else tuple(envelope.records)

    def has(self, name: str) -> bool:
        """Whether the file has it."""
        return name in self.names()

    def put(self, name: str, credential: Credential) -> None:
        """Keep it; the file is made at the first one, and readable by its owner only."""
        with self._alone():
            envelope = self._read() or self._begin()
            plain = json.dumps({"name": name, "values": credential.values()})
            token = self._cipher(envelope).encrypt(plain.encode()).decode()
            self._write(_Envelope(envelope.salt, envelope.check, {**envelope.records, name: token}))

    def remove(self, name: str) -> bool:
        """Take it out; whether it was there."""
        if not self.has(name):
            return False
        with self._alone():
            envelope = self._read()
            assert envelope is not None
            kept = {key: token for key, token in envelope.records.items() if key != name}
            self._write(_Envelope(envelope.salt, envelope.check, kept))
        return True

    def _begin(self) -> _Envelope:
        salt = secrets.token_hex(16)
        if not self._environ.get(self._variable):
            self._require_ring()
            if read_entry(self._service, _KEY_ENTRY) is None:
                write_entry(self._service, _KEY_ENTRY, secrets.token_urlsafe(32))
        check = _fernet(self._key(), salt).encrypt(_CHECK.encode()).decode()
        return _Envelope(salt, check, {})

    def _cipher(self, envelope: _Envelope) -> Fernet:
        cipher = _fernet(self._key(), envelope.salt)
        invalid = vault_package("cryptography.fernet", why=_WHY).InvalidToken
        try:
            cipher.decrypt(envelope.check.encode())
        except invalid:
            raise ConfigError(
                f'"{shown_path(self.path)}" was encrypted with another key',
                hint=f"set {self._variable} to the key it was made with",
            ) from None
        return cipher

    def _open(self, cipher: Fernet, token: str) -> str:
        invalid = vault_package("cryptography.fernet", why=_WHY).InvalidToken
        try:
            return cipher.decrypt(token.encode()).decode()
        except invalid:
            raise self._damaged() from None

    def _key(self) -> str:
        key = self._environ.get(self._variable) or self._ring_key()
        know_secret(key)
        return key

    def _ring_key(self) -> str:
        self._require_ring()
        key = read_entry(self._service, _KEY_ENTRY)
        if key is None:
            raise self._no_key("the keyring has none")
        return key

    def _require_ring(self) -> None:
        try:
            read_entry(self._service, _KEY_ENTRY)
        except ConfigError as error:
            raise self._no_key(error.message) from None

    def _no_key(self, reason: str) -> ConfigError:
        return ConfigError(
            f'there is no key for "{shown_path(self.path)}": {self._variable} is not set, {reason}',
            hint=f"set {self._variable} to a long passphrase, and keep it safe",
        )

    def _read(self) -> _Envelope | None:
        try:
            document: Any = json.loads(self.path.read_text(encoding="utf-8"))
            if document["format"] != _FORMAT:
                raise self._damaged()
            records = {str(k): str(v) for k, v in document["credentials"].items()}
            return _Envelope(str(document["salt"]), str(document["check"]), records)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise StorageError(
                f'"{shown_path(self.path)}" cannot be read: {problem.strerror}',
                hint="give this user the right to read it",
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._damaged() from None

    def _damaged(self) -> ConfigError:
        return ConfigError(
            f'"{shown_path(self.path)}" is damaged, or is no file of credentials',
            hint="bring back an older copy, or remove it and set the credentials again",
        )

    def _write(self, envelope: _Envelope) -> None:
        try:
            write_atomically(self.path, envelope.text().encode(), mode=0o600)
        except OSError as problem:
            raise self._unwritable(problem) from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time: each writes the whole file."""
        lock = self.path.with_name(f".{self.path.name}.lock")
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as problem:
            raise self._unwritable(problem) from None
        with os.fdopen(handle) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _unwritable(self, problem: OSError) -> StorageError:
        return StorageError(
            f'"{shown_path(self.path)}" cannot be written: {problem.strerror}',
            hint="give this user the right to write there, or name another `path`",
        )


@lru_cache(maxsize=4)  # slow on purpose, so done once for each key
def _fernet(key: str, salt: str) -> Fernet:
    package = vault_package("cryptography.fernet", why=_WHY)
    derived = hashlib.scrypt(key.encode(), salt=salt.encode(), n=2**14, r=8, p=1, dklen=32)
    cipher: Fernet = package.Fernet(base64.urlsafe_b64encode(derived))
    return cipher
