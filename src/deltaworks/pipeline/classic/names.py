"""How classic files spell things: every name of theirs, and the native one it stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from deltaworks.contracts.plugin import Plugin
from deltaworks.contracts.registry import find_plugin, plugin_types

Shape = Literal["text", "flag", "number", "names", "json", "any"]
"""What the text of a parameter stands for."""

FILES = "files"
"""Stands for the type that `format` names."""
FORMATS = ("csv", "json", "parquet", "avro", "orc", "text", "delta")
MODES = {"append": "Append", "overwrite": "Overwrite", "upsert": "Upsert"}
PLACES = ("path", "query", "table")
"""What may stand beside `connectionParams`, and then wins."""
HINTS = ("header", "delimiter", "compression")
"""What any files may be said to have, whether or not their format knows of it."""
OPTIONS = "kafka."
"""Parameters that begin so are options of the client, under their own names."""

SYSTEMS = {
    "PostgreSQL": "postgres",
    "MySQL": "mysql",
    "MariaDB": "mysql",
    "JDBC": "jdbc",
    "Kafka": "kafka",
    "DeltaLake": "delta",
    "S3": FILES,
    "File": FILES,
    "Local": FILES,
}
"""Values of `sourceType` and `sinkType`."""

_OTHER_NAMES = {"postgres": "postgres", "delta": "delta", "files": FILES, "localfile": FILES}
_JDBC: dict[str, Shape] = {
    "host": "text",
    "port": "number",
    "database": "text",
    "table": "text",
    "query": "text",
}
_FILE: dict[str, Shape] = {
    "path": "text",
    "header": "flag",
    "delimiter": "text",
    "compression": "text",
    "schema": "text",
}
_DELTA_READ: dict[str, Shape] = {
    "table": "text",
    "path": "text",
    "versionAsOf": "number",
    "timestampAsOf": "text",
    "ignoreDeletes": "flag",
    "ignoreChanges": "flag",
    "skip_change_commits": "flag",
}
_CHANGES: dict[str, Shape] = {
    "table": "text",
    "path": "text",
    "startingVersion": "number",
    "endingVersion": "number",
    "startingTimestamp": "text",
    "endingTimestamp": "text",
}
_DELTA_WRITE: dict[str, Shape] = {
    "table": "text",
    "path": "text",
    "mergeKeys": "names",
    "updateCondition": "text",
    "deleteCondition": "text",
    "updateColumns": "names",
    "insertColumns": "names",
    "replaceWhere": "text",
    "mergeSchema": "flag",
    "overwriteSchema": "flag",
    "partitionBy": "names",
    "enableChangeDataFeed": "flag",
    "targetFileSize": "text",
    "optimizeWrite": "flag",
    "autoCompact": "flag",
    "dataSkippingNumIndexedCols": "text",
    "zOrderColumns": "names",
}
PARAMETERS: Mapping[tuple[str, str], Mapping[str, Shape]] = MappingProxyType(
    {
        ("source", "postgres"): _JDBC,
        ("source", "mysql"): _JDBC,
        ("source", "jdbc"): _JDBC,
        ("source", "kafka"): {"topic": "text"},
        ("source", "delta"): _DELTA_READ,
        ("source", "delta_changes"): _CHANGES,
        **{("source", name): _FILE for name in FORMATS if name != "delta"},
        ("transform", "aggregate"): {"groupBy": "names", "aggregations": "json"},
        ("sink", "postgres"): {**_JDBC, "mergeKeys": "names"},
        ("sink", "mysql"): {**_JDBC, "mergeKeys": "names"},
        ("sink", "jdbc"): {**_JDBC, "mergeKeys": "names"},
        ("sink", "kafka"): {"topic": "text", "mergeKeys": "names"},
        ("sink", "delta"): _DELTA_WRITE,
        **{
            ("sink", name): {**_FILE, "partitionBy": "names"} for name in FORMATS if name != "delta"
        },
    }
)
"""Kind and native type -> what its parameters are called, whether or not the plug-in is here."""

ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "enableChangeDataFeed": ("change_feed",),
    "dataSkippingNumIndexedCols": ("properties", "delta.dataSkippingNumIndexedCols"),
    "zOrderColumns": ("after_load", "z_order"),
}
"""Parameters whose native place is not simply their name in snake_case."""

_EXPECTED = {
    ("source", "schema"): ("json", "avro", "kafka"),
    ("sink", "header"): ("csv",),
    ("sink", "delimiter"): ("csv",),
    ("sink", "compression"): FORMATS,
    ("sink", "mode"): (*FORMATS, "postgres", "mysql", "jdbc"),
}
_PLAIN: Mapping[Any, Shape] = {str: "text", bool: "flag", int: "number", float: "number"}
_NEVER = ("type", "mode")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class ClassicNames:
    """The parameters one kind of plug-in takes in a classic file."""

    shapes: Mapping[str, Shape]
    shown: tuple[str, ...]
    """Those to suggest when another one is misspelt."""


def native_type(kind: str, name: str) -> str:
    """The type that a `sourceType` or `sinkType` stands for; empty when there is none."""
    plain = re.sub(r"[\s_\-]", "", name).lower()
    known = {system.lower(): type_name for system, type_name in SYSTEMS.items()} | _OTHER_NAMES
    known |= {type_name: type_name for type_name in FORMATS}
    own = {type_name.replace("_", ""): type_name for type_name in plugin_types(kind)}
    return {**own, **known}.get(plain, "")


def spellings(kind: str, type_name: str) -> ClassicNames:
    """What may be said of a type: what classic files always had, and all that is native."""
    classic = dict(PARAMETERS.get((kind, type_name), {}))
    plugin = find_plugin(kind, type_name)
    native = {} if plugin is None else _fields(plugin)
    humps = {camel(name): shape for name, shape in native.items()}
    shapes = {**native, **humps, **classic}
    taken = {native_place(name) for name in classic}
    further = [camel(name) for name in native if (name,) not in taken]
    return ClassicNames(shapes, (*classic, *further))


def native_place(name: str) -> tuple[str, ...]:
    """Where the native form has a parameter."""
    return ELSEWHERE.get(name, (snake(name),))


def takes(kind: str, type_name: str, field: str) -> bool:
    """Whether a plug-in has a field; for those that are not here yet, what is expected of them."""
    plugin = find_plugin(kind, type_name)
    if plugin is None:
        return type_name in _EXPECTED.get((kind, field), ())
    return any(field == (known.alias or name) for name, known in plugin.model_fields.items())


def snake(name: str) -> str:
    """`mergeKeys` as `merge_keys`; `SUM` as `sum`."""
    return _HUMP.sub("_", name).lower()


def camel(name: str) -> str:
    """`merge_keys` as `mergeKeys`."""
    first, *others = name.split("_")
    return first + "".join(other.title() for other in others)


def _fields(plugin: type[Plugin]) -> dict[str, Shape]:
    fields = {field.alias or name: field for name, field in plugin.model_fields.items()}
    return {name: _shape(f.annotation) for name, f in fields.items() if name not in _NEVER}


def _shape(annotation: Any) -> Shape:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _shape(parts[0])
    if origin is tuple:
        return "names" if _shape(parts[0]) == "text" else "json"
    if origin is Literal or annotation in _PLAIN:
        return _PLAIN.get(annotation, "text")
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "json"
    shapes = {_shape(part) for part in parts if part is not type(None)}
    return shapes.pop() if len(shapes) == 1 else "any"
