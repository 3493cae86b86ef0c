"""Values of types that Spark does not compare, in a form that it does: maps and variants.

The form keeps every byte. JSON does not: it writes all text that is not UTF-8 alike.
"""

from __future__ import annotations

from typing import Any

from deltaworks.engines.spark.frames.columns import quoted


def needs_form(kind: Any) -> bool:
    """Whether a type, as a schema document has it, is or holds a map or a variant."""
    if isinstance(kind, str):
        return kind == "variant"
    if kind["type"] == "struct":
        return any(needs_form(field["type"]) for field in kind["fields"])
    return kind["type"] == "map" or needs_form(kind["elementType"])


def form(value: str, kind: Any, *, depth: int = 0) -> str:
    """SQL for a value in a form that can be compared, sorted and hashed.

    Entries of a map are sorted, because their order means nothing. A variant is told by its JSON
    and its types; in a list of several types only the JSON tells those of the items.
    """
    if not needs_form(kind):
        return value
    if isinstance(kind, str):
        return f"named_struct('json', to_json({value}), 'type', schema_of_variant({value}))"
    item, deeper = f"x{depth}", depth + 1
    if kind["type"] == "struct":
        parts = [(f"{value}.{quoted(field['name'])}", field["type"]) for field in kind["fields"]]
        fields = [f"'f{i}', {form(*part, depth=deeper)}" for i, part in enumerate(parts)]
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(fields)}) END"
    if kind["type"] == "array":
        return f"transform({value}, {item} -> {form(item, kind['elementType'], depth=deeper)})"
    key = form(f"{item}.key", kind["keyType"], depth=deeper)
    entry = form(f"{item}.value", kind["valueType"], depth=deeper)
    pairs = f"transform(map_entries({value}), {item} -> named_struct('k', {key}, 'v', {entry}))"
    return f"array_sort({pairs})"
