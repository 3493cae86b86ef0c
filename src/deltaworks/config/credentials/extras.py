"""Packages that only some vaults need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from deltaworks.errors import MissingDependencyError


def vault_package(name: str, *, why: str) -> ModuleType:
    """A package of the extra `vault`, or the command that installs it."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise MissingDependencyError(
            f"{why} needs the package {name.partition('.')[0]}, which is not installed",
            hint="pip install 'deltaworks[vault]'",
        ) from None
