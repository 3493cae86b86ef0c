"""Write what the code knows into the pages: every plug-in's options, every classic spelling."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from deltaworks.contracts.plugin import Plugin
from deltaworks.contracts.registry import PACKAGES, find_plugin, plugin_types
from deltaworks.contracts.tolerance import Tolerance
from deltaworks.pipeline.spellings import FILES, PARAMETERS, SYSTEMS, native_place

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "pipeline-files.md"
CLASSIC_PAGE = DOCS / "classic.md"
_SPELLINGS = re.compile(r"(?<=<!-- spellings -->\n).*(?=<!-- /spellings -->)", re.DOTALL)
_SHAPES = {"names": "names", "flag": "flag", "number": "number", "json": "list of maps"}
_SECTION = re.compile(r"(?<=<!-- reference -->\n).*(?=<!-- /reference -->)", re.DOTALL)
_SINGLE = ("number", "text", "true or false")
"""What an option may be that takes several kinds of values; a whole number is a number."""
_WORDS = {
    str: "text",
    bool: "true or false",
    int: "whole number",
    float: "number",
    Tolerance: "number or share",
}


def reference() -> str:
    """A table of options for every plug-in, kind by kind."""
    parts = []
    for kind in PACKAGES:
        for name in plugin_types(kind):
            plugin = find_plugin(kind, name)
            if plugin is not None:
                parts.append(
                    f"### {kind} `{name}`\n\n{plugin.__doc__}\n\n{_example(plugin)}{_table(plugin)}"
                )
    return "\n" + "\n".join(parts) + "\n"


def with_reference(page: str) -> str:
    """The page with its reference as the plug-ins are now."""
    return _SECTION.sub(lambda _: reference(), page)


def with_spellings(page: str) -> str:
    """The page on classic files with its tables as the code has them."""
    return _SPELLINGS.sub(lambda _: f"\n{_systems()}\n{_parameters()}\n", page)


def _systems() -> str:
    rows = "| `sourceType`, `sinkType` | native `type` |\n|---|---|\n"
    for name, type_name in SYSTEMS.items():
        meant = "what `format` says" if type_name == FILES else f"`{type_name}`"
        rows += f"| `{name}` | {meant} |\n"
    return rows


def _parameters() -> str:
    """A row for each parameter, and the plug-ins that have it."""
    owners: dict[tuple[str, str], dict[str, list[str]]] = {}
    for (kind, type_name), shapes in PARAMETERS.items():
        for name, shape in shapes.items():
            value = _SHAPES.get(shape, "text")
            owners.setdefault((name, value), {}).setdefault(kind, []).append(type_name)
    rows = "| parameter | value | native option | of |\n|---|---|---|---|\n"
    for (name, value), kinds in owners.items():
        of = "; ".join(f"{kind} {', '.join(types)}" for kind, types in kinds.items())
        place = ".".join(native_place(name))
        rows += f"| `{name}` | {value} | `{place}` | {of} |\n"
    return rows + "| `kafka.*` | text | `options` | source kafka; sink kafka |\n"


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
        cells = (f"`{key}`", _kind(field.annotation), default, field.description or "")
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


if __name__ == "__main__":
    for path, filled in ((PAGE, with_reference), (CLASSIC_PAGE, with_spellings)):
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
