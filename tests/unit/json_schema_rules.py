"""As much of JSON Schema, draft 7, as our schemas use; any other word in one is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": int | float,
    "null": type(None),
}
ABOUT = {
    *("$schema", "title", "description", "default", "definitions", "markdownEnumDescriptions"),
    *("format", "writeOnly"),  # that a value is a secret
}
NUMBERS: dict[str, Callable[[float, float], bool]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
}
RULES = {
    *("$ref", "type", "enum", "const", "pattern", "minLength", "anyOf", "allOf"),
    *("if", "then", "else", "properties", "required", "additionalProperties", "minProperties"),
    *("items", "minItems", "maxItems", "propertyNames", *NUMBERS),
}


def violations(schema: dict[str, Any], value: Any) -> list[str]:
    """What a document breaks, each as `place: rule`."""
    return list(_broken(schema, value, schema, ""))


def words(schema: Any) -> set[str]:
    """Every keyword a schema uses."""
    if isinstance(schema, list):
        return {word for item in schema for word in words(item)}
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for key, item in schema.items():
        if key in ("properties", "definitions"):
            found |= {word for inner in item.values() for word in words(inner)}
        elif key not in ("enum", "const", "default"):
            found |= words(item)
    return found


def _is(value: Any, name: str) -> bool:
    is_flag = isinstance(value, bool)
    return isinstance(value, TYPES[name]) and (not is_flag or name == "boolean")


def _broken(rule: dict[str, Any], value: Any, root: dict[str, Any], at: str) -> Iterator[str]:
    assert set(rule) <= RULES | ABOUT, set(rule) - RULES - ABOUT
    if "$ref" in rule:
        name = rule["$ref"].removeprefix("#/definitions/")
        yield from _broken(root["definitions"][name], value, root, at)
        return
    wanted = rule.get("type", [])
    listed = [wanted] if isinstance(wanted, str) else wanted
    if listed and not any(_is(value, name) for name in listed):
        yield f"{at}: type"
        return
    yield from _broken_plain(rule, value, at)
    yield from _broken_parts(rule, value, root, at)
    if isinstance(value, dict):
        yield from _broken_map(rule, value, root, at)
    if isinstance(value, list):
        if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value)):
            yield f"{at}: minItems or maxItems"
        items = rule.get("items", {})
        for i, item in enumerate(value):
            one = items if isinstance(items, dict) else (items[i] if i < len(items) else {})
            yield from _broken(one, item, root, f"{at}[{i}]")


def _broken_plain(rule: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    if "enum" in rule and value not in rule["enum"]:
        yield f"{at}: enum"
    if "const" in rule and value != rule["const"]:
        yield f"{at}: const"
    if isinstance(value, str) and not re.search(rule.get("pattern", ""), value):
        yield f"{at}: pattern"
    bounds = NUMBERS.items() if isinstance(value, int | float) else ()
    yield from (f"{at}: {n}" for n, ok in bounds if n in rule and not ok(value, rule[n]))


def _broken_parts(rule: dict[str, Any], value: Any, root: dict[str, Any], at: str) -> Iterator[str]:
    if "anyOf" in rule and all(violations_at(option, value, root) for option in rule["anyOf"]):
        yield f"{at}: anyOf"
    for part in rule.get("allOf", []):
        yield from _broken(part, value, root, at)
    if "if" in rule:
        holds = not violations_at(rule["if"], value, root)
        yield from _broken(rule.get("then" if holds else "else", {}), value, root, at)


def violations_at(rule: dict[str, Any], value: Any, root: dict[str, Any]) -> list[str]:
    return list(_broken(rule, value, root, ""))


def _broken_map(
    rule: dict[str, Any], value: dict[str, Any], root: dict[str, Any], at: str
) -> Iterator[str]:
    known = rule.get("properties", {})
    others = rule.get("additionalProperties", {})
    yield from (
        f"{at}: {name} is required" for name in rule.get("required", []) if name not in value
    )
    if len(value) < rule.get("minProperties", 0):
        yield f"{at}: minProperties"
    for name, item in value.items():
        if name not in known and others is False:
            yield f"{at}.{name}: unknown"
        elif name in known or isinstance(others, dict):
            yield from _broken(known.get(name, others), item, root, f"{at}.{name}")
