"""The JSON Schema of files, for editors: made from the plug-ins themselves.

Draft 7, which is what the YAML language server reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from deltaworks.config.project import ProjectFile
from deltaworks.config.variables import Variable
from deltaworks.contracts.plugin import Plugin
from deltaworks.contracts.registry import PACKAGES, find_plugin, plugin_types
from deltaworks.pipeline.parse import NAME_PATTERN

if TYPE_CHECKING:
    from pydantic import BaseModel

Schema = dict[str, Any]
DRAFT = "http://json-schema.org/draft-07/schema#"
_DEFINITIONS = "#/definitions/"
_INTERPOLATED: Schema = {"type": "string", "pattern": r"\$\{"}
_OLDER = {"prefixItems": "items"}  # what a later draft calls it
_NOT_TEXT = ("boolean", "integer", "number")


def pipeline_schema() -> Schema:
    """What a pipeline file may say, whatever plug-ins are installed."""
    definitions: Schema = {}
    for kind in PACKAGES:
        definitions[kind] = _union(kind)
        for name in plugin_types(kind):
            plugin = find_plugin(kind, name)
            if plugin is not None:
                definitions |= _plugin(kind, name, plugin)
    return {
        "$schema": DRAFT,
        "title": "Deltaworks pipeline",
        "type": "object",
        "properties": _parts(),
        "required": ["pipeline", "extract", "load"],
        "additionalProperties": False,
        "definitions": definitions,
    }


def project_schema() -> Schema:
    """What the project file may say."""
    schema, definitions = _model(ProjectFile, "project.")
    loose = {**schema["properties"]["profiles"], "additionalProperties": {"type": "object"}}
    properties = {**schema["properties"], "profiles": loose}
    # numbers and booleans are taken as the texts they were written as
    settings = definitions["project.EngineSettings"]["properties"]
    for holder, name in ((properties, "vars"), (settings, "conf")):
        holder[name] = {**holder[name], "additionalProperties": _texts()}
    titled = {**schema, "title": "Deltaworks project", "properties": properties}
    return {"$schema": DRAFT, **titled, "definitions": definitions}


def _parts() -> Schema:
    one_source, one_sink = _ref("source"), _ref("sink")
    named = {"type": "object", "minProperties": 1, "additionalProperties": one_source}
    word = {"type": "string", "pattern": f"^({NAME_PATTERN})$|\\$\\{{"}
    has_type = {"properties": {"type": {"type": "string"}}, "required": ["type"]}
    return {
        "pipeline": {"description": "The pipeline's name, unique in its project.", **word},
        "description": {"description": "What it is for, in a sentence.", "type": "string"},
        "tags": {
            "description": "Words by which `run --select tag:...` finds the pipeline.",
            "anyOf": [word, {"type": "array", "items": word}],
        },
        "audit_columns": {
            "description": "Whether rows in Delta tables say which run and batch brought them.",
            "type": "boolean",
        },
        "max_failed": {
            "description": "How many rows of a batch may go into quarantine: 10, or 0.1%.",
            "type": ["string", "integer", "null"],
        },
        "variables": {
            "description": "What ${var:NAME} may stand for: a type, or a type and more.",
            "type": "object",
            "additionalProperties": {
                "if": {"type": "string"},
                "then": {"enum": list(_variable_types())},
                "else": _model(Variable, "variable.")[0],
            },
        },
        "extract": {
            "description": "One source, or several under names of your choice.",
            "type": "object",
            "if": has_type,
            "then": one_source,
            "else": named,
        },
        "transform": _list_of("transform", "Steps, each of which takes the previous one's rows."),
        "checks": _list_of("check", "What must be true before anything is written."),
        "load": {
            "description": "One sink, or a list of them.",
            "type": ["object", "array"],
            "if": {"type": "array"},
            "then": {"minItems": 1, "items": one_sink},
            "else": one_sink,
        },
    }


def _variable_types() -> tuple[str, ...]:
    found: tuple[str, ...] = get_args(Variable.model_fields["type"].annotation)
    return found


def _list_of(kind: str, description: str) -> Schema:
    return {"description": description, "type": "array", "items": _ref(kind)}


def _union(kind: str) -> Schema:
    """Any plug-in of a kind: its `type` says which rules apply to the rest."""
    types = plugin_types(kind)
    docs = [(plugin.__doc__ or "").strip() for n in types if (plugin := find_plugin(kind, n))]
    listed = {"enum": list(types), "description": f"Which {kind} it is."}
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {**listed, "markdownEnumDescriptions": docs}},
        "allOf": [
            {
                "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
                "then": _ref(f"{kind}.{name}"),
            }
            for name in types
        ],
    }


def _plugin(kind: str, name: str, plugin: type[Plugin]) -> Schema:
    own = f"{kind}.{name}"
    schema, definitions = _model(plugin, f"{own}.")
    properties = {"type": {"const": name}, **schema["properties"]}
    required = ["type", *schema.get("required", [])]
    return {own: {**schema, "properties": properties, "required": required}, **definitions}


def _model(model: type[BaseModel], prefix: str) -> tuple[Schema, Schema]:
    """A model's schema and those of the models within it, whose names get a prefix."""
    schema = _for_files(model.model_json_schema(by_alias=True, mode="validation"), prefix)
    definitions = {f"{prefix}{name}": inner for name, inner in schema.pop("$defs", {}).items()}
    return schema, definitions


def _for_files(value: Any, prefix: str) -> Any:
    """What pydantic says, as files have it: `${...}` may stand for anything, titles say nothing."""
    if isinstance(value, list):
        return [_for_files(item, prefix) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        name = str(value["$ref"]).rpartition("/")[2]
        more = {key: item for key, item in value.items() if key not in ("$ref", "default")}
        return {"allOf": [_ref(f"{prefix}{name}")], **more} if more else _ref(f"{prefix}{name}")
    result = {
        _OLDER.get(str(key), str(key)): (
            _each(item, prefix) if key in ("properties", "$defs") else _for_files(item, prefix)
        )
        for key, item in value.items()
        if not (key == "title" and isinstance(item, str))
    }
    return _or_interpolated(result)


def _each(entries: Mapping[str, Any], prefix: str) -> Schema:
    return {name: _for_files(item, prefix) for name, item in entries.items()}


def _or_interpolated(schema: Schema) -> Schema:
    is_choice = "enum" in schema or "const" in schema
    if not is_choice and schema.get("type") not in _NOT_TEXT:
        return schema
    about = {key: item for key, item in schema.items() if key in ("description", "default")}
    rule = {key: item for key, item in schema.items() if key not in about}
    return {**about, "anyOf": [rule, _INTERPOLATED]}


def _texts() -> Schema:
    return {"type": ["string", "boolean", "number"]}


def _ref(name: str) -> Schema:
    return {"$ref": f"{_DEFINITIONS}{name}"}
