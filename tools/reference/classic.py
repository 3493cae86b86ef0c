"""Tables of what classic files call things."""

from __future__ import annotations

from deltaworks.pipeline.classic.names import FILES, PARAMETERS, SYSTEMS, native_place

_SHAPES = {"names": "names", "flag": "flag", "number": "number", "json": "list of maps"}


def spellings() -> str:
    """Systems and parameters, each with its native name."""
    return f"\n{_systems()}\n{_parameters()}\n"


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
