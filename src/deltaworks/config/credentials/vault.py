"""Find credentials by name, in the places that the project file lists, in its order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from deltaworks.config.credentials.cloud import CloudVault
from deltaworks.config.credentials.credential import NAME, NAME_RULE, Credential, require_name
from deltaworks.config.credentials.encrypted_file import FileVault
from deltaworks.config.credentials.environment import EnvironmentVault
from deltaworks.config.credentials.memory import MemoryVault
from deltaworks.config.credentials.settings import VaultSettings
from deltaworks.config.credentials.system_keyring import KeyringVault
from deltaworks.errors import ConfigError
from deltaworks.suggest import did_you_mean


class Backend(Protocol):
    """One place where credentials are kept."""

    name: str
    lists_at_once: bool
    """Whether names can be listed without a network, a key or a question to the user."""

    def get(self, name: str) -> Credential | None:
        """The credential, its secrets known to the redaction; None when it is not here."""
        ...

    def names(self) -> tuple[str, ...]:
        """The names that are here."""
        ...

    def has(self, name: str) -> bool:
        """Whether a name is here."""
        ...


@runtime_checkable
class CanKeep(Protocol):
    """A place that can be written."""

    name: str

    def get(self, name: str) -> Credential | None:
        """The credential as it is kept now."""
        ...

    def has(self, name: str) -> bool:
        """Whether a name is here."""
        ...

    def put(self, name: str, credential: Credential) -> None:
        """Keep a credential under a name, in place of one that is there."""
        ...

    def remove(self, name: str) -> bool:
        """Take a credential out; whether it was there."""
        ...


@dataclass(frozen=True)
class Found:
    """A credential, and the place it was in."""

    credential: Credential
    backend: str


@dataclass(frozen=True)
class Vault:
    """The project's credentials; the first place that has a name wins."""

    backends: tuple[Backend, ...] = ()

    def find(self, name: str) -> Found:
        """The credential with a name, and where it is kept."""
        require_name(name)
        for backend in self.backends:
            credential = backend.get(name)
            if credential is not None:
                return Found(credential, backend.name)
        raise self._unknown(name)

    def get(self, name: str) -> Credential:
        """The credential with a name."""
        return self.find(name).credential

    def names(self) -> tuple[tuple[str, str], ...]:
        """Every name that can be listed, each with its place."""
        found: dict[str, str] = {}
        for backend in self.backends:
            for name in backend.names():
                found.setdefault(name, backend.name)
        return tuple(sorted(found.items()))

    def problem(self, name: str) -> tuple[str, str] | None:
        """What is wrong with a name in a file, and the fix; nothing secret is looked at."""
        if NAME.fullmatch(name) is None:
            return f'"{name}" is not the name of a credential', NAME_RULE
        if not all(backend.lists_at_once for backend in self.backends):
            return None  # only asking would tell, and that is for a run
        if any(backend.has(name) for backend in self.backends):
            return None
        error = self._unknown(name)
        return error.message, error.hint

    def keeper(self, backend: str = "") -> CanKeep:
        """The first place that can be written, or the one that is named."""
        for place in self.backends:
            if isinstance(place, CanKeep) and backend in ("", place.name):
                return place
        names = ", ".join(place.name for place in self.backends) or "none"
        what = f'backend "{backend}"' if backend else "any backend of this project"
        raise ConfigError(
            f"credentials cannot be stored in {what}",
            hint=f"the project has: {names}; add `credentials: {{backend: file}}` to it",
        )

    def places(self, name: str) -> tuple[str, ...]:
        """The places that can be written and have a name; at least one."""
        found = tuple(place.name for place in self._keepers() if place.has(name))
        if not found:
            raise self._unknown(require_name(name))
        return found

    def remove(self, name: str) -> tuple[str, ...]:
        """Take a name out of every place that can be written; those it was in."""
        return tuple(place.name for place in self._keepers() if place.remove(name))

    def _keepers(self) -> list[CanKeep]:
        return [place for place in self.backends if isinstance(place, CanKeep)]

    def _unknown(self, name: str) -> ConfigError:
        listed = [place for place in self.backends if place.lists_at_once]
        known = sorted({other for place in listed for other in place.names()})
        hint = did_you_mean(name, known) or f"store it: deltaworks secrets set {name}"
        return ConfigError(f'there is no credential "{name}"', hint=hint)


def open_vault(
    settings: Sequence[VaultSettings], *, root: Path, project: str, environ: Mapping[str, str]
) -> Vault:
    """The vault that a project file describes; nothing is opened yet."""

    def place(one: VaultSettings) -> Backend:
        if one.backend == "env":
            return EnvironmentVault(environ)
        if one.backend == "file":
            path = root / Path(one.path).expanduser()
            variable = one.key_variable
            return FileVault(path, project=project, key_variable=variable, environ=environ)
        if one.backend == "keyring":
            return KeyringVault(project)
        if one.backend == "hashicorp":
            from deltaworks.config.credentials.hashicorp import HashicorpVault  # brings HTTP along

            return HashicorpVault(one, environ)
        return CloudVault() if one.backend == "cloud" else MemoryVault(project)

    return Vault(tuple(place(one) for one in settings))
