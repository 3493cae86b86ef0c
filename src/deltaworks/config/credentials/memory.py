"""Credentials that live as long as the process, for tests."""

from __future__ import annotations

from deltaworks.config.credentials.credential import Credential

_KEPT: dict[tuple[str, str], Credential] = {}


class MemoryVault:
    """Keeps credentials of a project in this process only."""

    name = "memory"
    lists_at_once = True

    def __init__(self, project: str) -> None:
        self._project = project

    def get(self, name: str) -> Credential | None:
        """The credential, if it was put here."""
        kept = _KEPT.get((self._project, name))
        return None if kept is None else kept.known()

    def names(self) -> tuple[str, ...]:
        """The names that were put here."""
        return tuple(sorted(name for project, name in _KEPT if project == self._project))

    def has(self, name: str) -> bool:
        """Whether it was put here."""
        return (self._project, name) in _KEPT

    def put(self, name: str, credential: Credential) -> None:
        """Keep it, until the process ends."""
        _KEPT[self._project, name] = credential

    def remove(self, name: str) -> bool:
        """Forget it; whether it was there."""
        return _KEPT.pop((self._project, name), None) is not None
