"""Credentials in an encrypted file of the project.

Names are readable, so that files can be checked without the key. Each record is one Fernet token
(AES-128-CBC with HMAC-SHA256) with its name inside. A seal over all that the file says binds the
records together, so none can be swapped, left out or put back to what it was. The keys of both are
derived by scrypt from what the user gives, with a salt and at a cost that the file names.

Files of the first format had no seal and a lower cost. They are opened as they are, and written in
this one.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.config.cache import write_atomically
from deltaworks.config.credentials.credential import Credential, parse_credential
from deltaworks.config.credentials.extras import vault_package
from deltaworks.config.credentials.system_keyring import read_entry, write_entry
from deltaworks.config.documents import shown_path
from deltaworks.errors import ConfigError, StorageError
from deltaworks.redact import know_secret

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

_FIRST_FORMAT, _FORMAT = "deltaworks-credentials-1", "deltaworks-credentials-2"
_CHECK = "is this the key?"
_KEY_ENTRY = "file-key"
_KEY_BYTES = 32
_WHY = "an encrypted file of credentials"


@dataclass(frozen=True)
class _Cost:
    """What scrypt is told; a file that names more than this machine can spare is refused."""

    n: int
    r: int = 8
    p: int = 1

    @property
    def memory(self) -> int:
        """Bytes that scrypt needs."""
        return 128 * self.r * (self.n + self.p + 2)

    def is_sane(self) -> bool:
        """Whether scrypt takes it."""
        powers = self.n > 1 and self.n & (self.n - 1) == 0
        return powers and self.r > 0 and 0 < self.p <= _MAX_ROUNDS and self.memory <= _MAX_MEMORY


_FIRST_COST, _COST = _Cost(2**14), _Cost(2**17)
_MAX_ROUNDS, _MAX_MEMORY = 16, 2**31


@dataclass(frozen=True)
class _Keys:
    """What the user's key gives: a cipher for records, and a key for the seal."""

    cipher: Fernet
    sealing: bytes


@dataclass(frozen=True)
class _Envelope:
    """The file: a salt, a token that tells the right key, and a token for each name."""

    salt: str
    check: str
    records: Mapping[str, str]
    cost: _Cost = _COST
    revision: int = 0
    """How often the file was written."""
    seal: str | None = ""
    """What only the key's owner can make of all the rest; None in the first format."""

    def content(self) -> dict[str, Any]:
        """All that the seal is about."""
        return {
            "format": _FORMAT,
            "scrypt": {"n": self.cost.n, "r": self.cost.r, "p": self.cost.p},
            "salt": self.salt,
            "check": self.check,
            "revision": self.revision,
            "credentials": dict(sorted(self.records.items())),
        }

    def sealed_by(self, keys: _Keys) -> str:
        """The seal that a file with this content has."""
        said = json.dumps(self.content(), sort_keys=True, separators=(",", ":")).encode()
        return hmac.new(keys.sealing, said, hashlib.sha256).hexdigest()

    def text(self) -> str:
        return json.dumps({**self.content(), "seal": self.seal}, indent=2) + "\n"


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
        values = self._opened(self._keys(envelope), name, envelope.records[name])
        return parse_credential(values, name=name)

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
            envelope = self._renewed(self._read() or self._begin())
            keys = self._keys(envelope)
            token = _closed(keys, name, credential.values())
            self._write(replace(envelope, records={**envelope.records, name: token}), keys)

    def remove(self, name: str) -> bool:
        """Take it out; whether it was there. The key is needed, to seal what stays."""
        if not self.has(name):
            return False
        with self._alone():
            read = self._read()
            assert read is not None
            envelope = self._renewed(read)
            kept = {key: token for key, token in envelope.records.items() if key != name}
            self._write(replace(envelope, records=kept), self._keys(envelope))
        return True

    def _begin(self) -> _Envelope:
        if not self._environ.get(self._variable):
            self._require_ring()
            if read_entry(self._service, _KEY_ENTRY) is None:
                write_entry(self._service, _KEY_ENTRY, secrets.token_urlsafe(32))
        return self._sealed(_Envelope(secrets.token_hex(16), "", {}))

    def _sealed(self, envelope: _Envelope) -> _Envelope:
        """The same under the key of today, its check and its seal recreated."""
        keys = _derived(self._key(), envelope.salt, envelope.cost)
        checked = replace(envelope, check=keys.cipher.encrypt(_CHECK.encode()).decode())
        return replace(checked, seal=checked.sealed_by(keys))

    def _renewed(self, envelope: _Envelope) -> _Envelope:
        """A file of an older format or cost in today's, each record opened and closed again."""
        if envelope.seal is not None and envelope.cost.n >= _COST.n:
            return envelope
        old, new = self._keys(envelope), _Envelope(secrets.token_hex(16), "", {})
        keys = _derived(self._key(), new.salt, new.cost)
        opened = {name: self._opened(old, name, one) for name, one in envelope.records.items()}
        records = {name: _closed(keys, name, values) for name, values in opened.items()}
        return self._sealed(replace(new, records=records, revision=envelope.revision))

    def _keys(self, envelope: _Envelope) -> _Keys:
        """The keys of a file, if the user's key is its own and its seal is whole."""
        keys = _derived(self._key(), envelope.salt, envelope.cost)
        try:
            keys.cipher.decrypt(envelope.check.encode())
        except _invalid_token():
            raise ConfigError(
                f'"{shown_path(self.path)}" was encrypted with another key',
                hint=f"set {self._variable} to the key it was made with",
            ) from None
        seal = envelope.seal
        if seal is not None and not hmac.compare_digest(seal, envelope.sealed_by(keys)):
            raise ConfigError(
                f'"{shown_path(self.path)}" is damaged: its records do not belong together',
                hint="bring back a whole copy, or remove the file and set the credentials again",
            )
        return keys

    def _opened(self, keys: _Keys, name: str, token: str) -> dict[str, Any]:
        try:
            kept = json.loads(keys.cipher.decrypt(token.encode()))
        except _invalid_token():
            raise self._damaged() from None
        if kept["name"] != name:
            raise self._damaged()
        return dict(kept["values"])

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
            return _parsed(json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise StorageError(
                f'"{shown_path(self.path)}" cannot be read: {problem.strerror}',
                hint="give this user the right to read it",
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self._damaged() from None

    def _damaged(self) -> ConfigError:
        return ConfigError(
            f'"{shown_path(self.path)}" is damaged, or is no file of credentials',
            hint="bring back an older copy, or remove it and set the credentials again",
        )

    def _write(self, envelope: _Envelope, keys: _Keys) -> None:
        counted = replace(envelope, revision=envelope.revision + 1)
        sealed = replace(counted, seal=counted.sealed_by(keys))
        try:
            write_atomically(self.path, sealed.text().encode(), mode=0o600)
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


def _parsed(document: Any) -> _Envelope:
    """What a file says, if it is one of ours, and opening it costs no more than ours may."""
    records = {str(name): str(token) for name, token in document["credentials"].items()}
    salt, check = str(document["salt"]), str(document["check"])
    if document["format"] == _FIRST_FORMAT:
        return _Envelope(salt, check, records, cost=_FIRST_COST, seal=None)
    if document["format"] != _FORMAT:
        raise ValueError(document["format"])
    cost = _Cost(**{name: int(value) for name, value in document["scrypt"].items()})
    revision, seal = int(document["revision"]), str(document["seal"])
    if not (cost.is_sane() and seal.isascii()):
        raise ValueError(cost)
    return _Envelope(salt, check, records, cost=cost, revision=revision, seal=seal)


def _closed(keys: _Keys, name: str, values: Mapping[str, Any]) -> str:
    plain = json.dumps({"name": name, "values": values})
    return keys.cipher.encrypt(plain.encode()).decode()


def _invalid_token() -> type[Exception]:
    invalid: type[Exception] = vault_package("cryptography.fernet", why=_WHY).InvalidToken
    return invalid


@lru_cache(maxsize=4)  # slow on purpose, so done once for each key
def _derived(key: str, salt: str, cost: _Cost) -> _Keys:
    package = vault_package("cryptography.fernet", why=_WHY)
    raw = hashlib.scrypt(
        key.encode(),
        salt=salt.encode(),
        n=cost.n,
        r=cost.r,
        p=cost.p,
        maxmem=cost.memory,
        dklen=_KEY_BYTES * 2,
    )
    return _Keys(
        cipher=package.Fernet(base64.urlsafe_b64encode(raw[:_KEY_BYTES])),
        sealing=raw[_KEY_BYTES:],
    )
