"""Finds plug-ins by kind and type. A file in the right folder is all it takes.

Nothing is imported until it is asked for, so that checking a file loads only what it names.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import pkgutil
from functools import cache
from types import ModuleType

from deltaworks.contracts.plugin import Plugin
from deltaworks.errors import InternalError

PACKAGES = {
    "source": "deltaworks.sources",
    "transform": "deltaworks.transforms",
    "check": "deltaworks.checks",
    "sink": "deltaworks.sinks",
}


@cache
def _modules(kind: str) -> dict[str, str]:
    """Type name -> module of every plug-in of a kind; others come by entry point."""
    spec = importlib.util.find_spec(PACKAGES[kind])
    if spec is None or spec.submodule_search_locations is None:
        raise InternalError(f"package {PACKAGES[kind]} is missing from the installation")
    found = {
        module.name: f"{PACKAGES[kind]}.{module.name}"
        for module in pkgutil.iter_modules(list(spec.submodule_search_locations))
        if not module.ispkg
    }
    others = importlib.metadata.entry_points(group=f"deltaworks.{kind}s")
    return {**{point.name: point.value for point in others}, **found}


def plugin_types(kind: str) -> tuple[str, ...]:
    """Every type of a kind, by name."""
    return tuple(sorted(_modules(kind)))


@cache
def find_plugin(kind: str, type_name: str) -> type[Plugin] | None:
    """The class behind a type, or None when there is none of that name."""
    module_name = _modules(kind).get(type_name)
    if module_name is None:
        return None
    return _only_plugin(importlib.import_module(module_name), kind)


def _only_plugin(module: ModuleType, kind: str) -> type[Plugin]:
    classes = [
        member
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, Plugin) and member.__module__ == module.__name__
    ]
    if len(classes) != 1 or classes[0].kind != kind:
        raise InternalError(f"{module.__name__} must hold exactly one {kind} plug-in")
    return classes[0]
