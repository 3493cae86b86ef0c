"""A page for each kind of plug-in: every one with an example and its options."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from deltaworks.contracts.plugin import Plugin
from deltaworks.contracts.registry import PACKAGES, find_plugin, plugin_types
from deltaworks.contracts.tolerance import Tolerance

_TITLES = {"source": "Sources", "transform": "Transforms", "check": "Checks", "sink": "Sinks"}
_SINGLE = ("number", "text", "true or false")
"""What an option may be that takes several kinds of values; a whole number is a number."""
_WORDS = {
    str: "text",
    bool: "true or false",
    int: "whole number",
    float: "number",
    Tolerance: "number or share",
}


def plugin_pages() -> dict[str, str]:
    """File name -> page, one for each kind."""
    return {f"{_TITLES[kind].lower()}.md": _page(kind) for kind in PACKAGES}


def plugin_list() -> str:
    """All plug-ins in one sentence for each kind."""
    lines = [
        f"- [{_TITLES[kind]}](docs/reference/{_TITLES[kind].lower()}.md): "
        + ", ".join(f"`{name}`" for name in plugin_types(kind))
        for kind in PACKAGES
    ]
    return "\n".join(lines) + "\n"


def _page(kind: str) -> str:
    parts = [f"# {_TITLES[kind]}\n"]
    for name in plugin_types(kind):
        plugin = find_plugin(kind, name)
        if plugin is not None:
            parts.append(f"## `{name}`\n\n{plugin.__doc__}\n\n{_example(plugin)}{_table(plugin)}")
    return "\n".join(parts)


def _example(plugin: type[Plugin]) -> str:
    values = ", ".join(f"{key}: {_flow(value)}" for key, value in plugin.example.items())
    return f"Example: `{{type: {plugin.plugin_type()}, {values}}}`\n\n"


def _flow(value: Any) -> str:
    """A value as YAML writes it within one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    plain = isinstance(value, str) and re.fullmatch(r"[\w./]+", value)
    return value if plain else json.dumps(value)


def _table(model: type[BaseModel], prefix: str = "") -> str:
    rows = "" if prefix else "| option | value | default | |\n|---|---|---|---|\n"
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        default = "required" if field.is_required() else _default(field.get_default())
        said = " ".join((field.description or "").split())
        cells = (f"`{key}`", _kind(field.annotation), default, said)
        rows += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
        nested = _nested(field.annotation)
        if nested is not None:
            rows += _table(nested, f"{key}.")
    return rows


def _default(value: Any) -> str:
    if value is None or value in ("", (), {}) or not isinstance(value, str | bool | int):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _kind(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin in (Union, types.UnionType):
        kinds = [_kind(part) for part in arguments if part is not type(None)]
        some = kinds[0] if len(kinds) == 1 else " or ".join(k for k in _SINGLE if k in kinds)
        return some or kinds[0]
    if origin is tuple:
        return "list of names" if arguments[0] is str else "list"
    if origin is dict:
        return "map"
    if _nested(annotation):
        return "map"
    return _WORDS.get(annotation, "text")


def _nested(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation if issubclass(annotation, BaseModel) else None
    return next((found for part in get_args(annotation) if (found := _nested(part))), None)
