"""Credentials in the keyring of the operating system."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from deltaworks.config.credentials.credential import Credential, parse_credential
from deltaworks.config.credentials.extras import vault_package
from deltaworks.errors import ConfigError

_NAMES = "__names__"
"""A keyring cannot be listed, so the names are an entry of their own."""
T = TypeVar("T")


class KeyringVault:
    """Keeps each credential of a project as one entry."""

    name = "keyring"
    lists_at_once = False  # it may ask its user to unlock it

    def __init__(self, project: str) -> None:
        self._service = f"deltaworks/{project}"

    def get(self, name: str) -> Credential | None:
        """The credential, if the keyring has it."""
        text = read_entry(self._service, name)
        return None if text is None else parse_credential(json.loads(text), name=name)

    def names(self) -> tuple[str, ...]:
        """The names that were put here."""
        return tuple(json.loads(read_entry(self._service, _NAMES) or "[]"))

    def has(self, name: str) -> bool:
        """Whether it was put here."""
        return name in self.names()

    def put(self, name: str, credential: Credential) -> None:
        """Keep it."""
        write_entry(self._service, name, json.dumps(credential.values()))
        self._list(sorted({*self.names(), name}))

    def remove(self, name: str) -> bool:
        """Take it out; whether it was there."""
        found = self.has(name)
        if found:
            self._list([other for other in self.names() if other != name])
            _ask(lambda ring: ring.delete_password(self._service, name))
        return found

    def _list(self, names: list[str]) -> None:
        write_entry(self._service, _NAMES, json.dumps(names))


def read_entry(service: str, entry: str) -> str | None:
    """A text of the keyring."""
    text: str | None = _ask(lambda ring: ring.get_password(service, entry))
    return text


def write_entry(service: str, entry: str, text: str) -> None:
    """Keep a text in the keyring."""
    _ask(lambda ring: ring.set_password(service, entry, text))


def _ask(question: Callable[..., T]) -> T:
    ring = vault_package("keyring", why="the system's keyring")
    try:
        return question(ring)
    except ring.errors.KeyringError as problem:
        reason = str(problem).partition("\n")[0].partition(". ")[0] or type(problem).__name__
        raise ConfigError(
            f"the keyring of this system cannot be used: {reason}",
            hint="unlock it, or keep credentials elsewhere: `credentials: {backend: file}`",
        ) from None
