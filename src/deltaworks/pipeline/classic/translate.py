"""Classic pipeline files: translated to the native form, so that nothing past here knows of two.

A file that has a `pipelineId` is classic. Problems name its own lines and spellings, those found
later included: the translated document remembers where everything in it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deltaworks.config.documents import Document, Where, dotted
from deltaworks.contracts.registry import find_plugin, plugin_types
from deltaworks.errors import Problem
from deltaworks.pipeline.classic.merge_order import order_of
from deltaworks.pipeline.classic.names import (
    FILES,
    FORMATS,
    HINTS,
    MODES,
    OPTIONS,
    PARAMETERS,
    PLACES,
    SYSTEMS,
    ClassicNames,
    Shape,
    native_place,
    native_type,
    snake,
    spellings,
    takes,
)
from deltaworks.pipeline.classic.values import WrongText, meant, schema_text
from deltaworks.pipeline.spec import ONLY_SOURCE
from deltaworks.suggest import did_you_mean

MARK = "pipelineId"
KEYS = (MARK, "description", "extract", "transform", "load", "writeMode")
_PARAMS = "connectionParams"
_ENDS = {"source": ("extract", "sourceType"), "sink": ("load", "sinkType")}
_ALTERNATIVES = {"delta": ("path", "table"), "delta_changes": ("path", "table")}
_JDBC_ALTERNATIVES = ("query", "table")
_SECRETS = ("user", "username", "password", "token", "accessKey", "secretKey")
_SWITCHES = ("ignore_deletes", "ignore_changes", "skip_change_commits")
_ORDER = (
    *("type", "name", "input", "host", "port", "database", "table", "path", "query", "topic"),
    *("credential", "mode", "merge_keys", "update_condition", "delete_condition", "duplicates"),
)


@dataclass(frozen=True)
class Translation:
    """A document in the native form, and what could not be translated."""

    document: Document
    problems: tuple[Problem, ...] = ()
    troubled: frozenset[str] = frozenset()
    """Parts of the file that lack something for that reason, so that missing it is no news."""


def is_classic(document: Document) -> bool:
    """Whether a document is in the classic form."""
    return isinstance(document.value, dict) and MARK in document.value


def to_native(document: Document, root: Path) -> Translation:
    """The native form of a document; `root` is the project's folder."""
    if not is_classic(document):
        return Translation(document)
    translator = _Translator(document, root)
    value = translator.translate()
    places = translator.places
    ready = replace(document, value=value, places=places, words=translator.words)
    lines = {where: document.line(ready.place(where)) for where in _all_places(value, ())}
    troubled = frozenset(translator.troubled)
    return Translation(replace(ready, lines=lines), tuple(translator.problems), troubled)


def _all_places(value: Any, where: Where) -> Iterator[Where]:
    yield where
    inside: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for part, item in inside:
        yield from _all_places(item, (*where, part))


@dataclass(frozen=True)
class _Piece:
    """One plug-in on its way: what it is, where it goes, and its native fields so far."""

    kind: str
    type_name: str
    where: Where
    spelled: ClassicNames
    fields: dict[str, Any] = field(default_factory=dict)

    def native(self) -> dict[str, Any]:
        """The fields in the order in which people read them."""
        known = {name: self.fields[name] for name in _ORDER if name in self.fields}
        return {"type": self.type_name, **known, **self.fields}


class _Translator:
    """Collects problems while it goes through a classic document."""

    def __init__(self, document: Document, root: Path) -> None:
        self.document = document
        self.root = root
        self.given: dict[str, Any] = document.value
        self.problems: list[Problem] = []
        self.troubled: set[str] = set()
        self.places: dict[Where, Where] = {("pipeline",): (MARK,), ("load", "mode"): ("writeMode",)}
        self.words: dict[str, str] = {"mode": "writeMode", "credential": "credentialId", **MODES}
        self.schemas: dict[str, tuple[str, Where]] = {}

    def problem(self, where: Where, code: str, message: str, hint: str = "") -> None:
        section = where[:2] if where[:1] == ("transform",) else where[:1]
        self.troubled.add(dotted(section))
        self.problems.append(self.document.problem(where, code=code, message=message, hint=hint))

    def translate(self) -> dict[str, Any]:
        self._refuse_others(self.given, KEYS, ())
        name = self.given[MARK]
        is_number = isinstance(name, int) and not isinstance(name, bool)
        value: dict[str, Any] = {"pipeline": str(name) if is_number else name}
        if self.given.get("description"):
            value["description"] = self.given["description"]
        source = self._end("source")
        steps = self._steps()
        sink = self._end("sink")
        if source is not None:
            self._incremental(source)
            self._messages(source, None if steps else sink)
            value["extract"] = source.native()
        if steps:
            value["transform"] = steps
        if sink is not None:
            self._mode(sink)
            self._winner(sink)
            value["load"] = sink.native()
        if checks := self._schema_checks(named=bool(steps)):
            value["checks"] = checks
        order = ("pipeline", "description", "extract", "transform", "checks", "load")
        return {key: value[key] for key in order if key in value}

    def _refuse_others(self, given: Mapping[str, Any], known: Iterable[str], where: Where) -> None:
        names = tuple(known)
        for key in given:
            if key not in names:
                hint = did_you_mean(key, names)
                self.problem((*where, key), "unknown_key", f'unknown key "{key}"', hint)

    def _end(self, kind: str) -> _Piece | None:
        """The source or the sink."""
        section, type_key = _ENDS[kind]
        entry = self.given.get(section)
        if not isinstance(entry, dict):
            hint = f'"{section}": {{"{type_key}": "DeltaLake", "{_PARAMS}": {{"path": "..."}}}}'
            self.problem((section,), "missing_key", f'"{section}" must be a map', hint)
            return None
        known = (type_key, _PARAMS, "credentialId", *PLACES, "schemaName")
        self._refuse_others(entry, known, (section,))
        params = entry.get(_PARAMS) or {}
        if not isinstance(params, dict):
            message = f'"{_PARAMS}" must be a map'
            self.problem((section, _PARAMS), "wrong_value", message, '{"path": "..."}')
            return None
        type_name = self._type(kind, entry, params)
        if not type_name:
            return None
        piece = self._piece(kind, type_name, (section,), (section, _PARAMS))
        self._parameters(piece, self._standing(piece, entry, params))
        if entry.get("credentialId") is not None:
            self._put(piece, ("credential",), str(entry["credentialId"]), (section, "credentialId"))
        if entry.get("schemaName") is not None:
            self._schema(piece, entry["schemaName"], (section, "schemaName"))
        return piece

    def _type(self, kind: str, entry: Mapping[str, Any], params: Mapping[str, Any]) -> str:
        section, type_key = _ENDS[kind]
        system = entry.get(type_key)
        if system is None:
            hint = did_you_mean("", SYSTEMS)
            self.problem((section,), "missing_key", f'"{type_key}" is missing', hint)
            return ""
        found = native_type(kind, str(system))
        self.places[section, "type"] = (section, type_key)
        if not found:
            hint = did_you_mean(str(system), SYSTEMS)
            message = f'there is no {kind} of type "{system}"'
            self.problem((section, type_key), "unknown_type", message, hint)
            return ""
        if found == FILES:
            return self._format(kind, params)
        if found in FORMATS and str(params.get("format") or found).lower() != found:
            message = f'"format" is always "{found}" where "{type_key}" is "{system}"'
            self.problem((section, _PARAMS, "format"), "wrong_value", message, "leave it out")
        return self._feed(kind, params) if found == "delta" else found

    def _format(self, kind: str, params: Mapping[str, Any]) -> str:
        section, _ = _ENDS[kind]
        where = (section, _PARAMS, "format")
        wanted = params.get("format")
        if wanted is None:
            self.problem(where[:-1], "missing_key", '"format" is missing', _listed(FORMATS))
            return ""
        self.places[section, "type"] = where
        known = (*FORMATS, *plugin_types(kind))
        if str(wanted).lower() not in known:
            hint = did_you_mean(str(wanted), FORMATS)
            self.problem(where, "wrong_value", f'"format" cannot be "{wanted}"', hint)
            return ""
        return str(wanted).lower()

    def _feed(self, kind: str, params: Mapping[str, Any]) -> str:
        """Delta, or the feed of its changes."""
        section, _ = _ENDS[kind]
        wanted = meant(params.get("readChangeFeed", False), "flag")
        if kind == "sink" or wanted is False:
            return "delta"
        if wanted is not True:
            message = f'"readChangeFeed" must be true or false, not "{wanted}"'
            self.problem((section, _PARAMS, "readChangeFeed"), "wrong_value", message)
        return "delta_changes"

    def _piece(self, kind: str, type_name: str, where: Where, params: Where) -> _Piece:
        spelled = spellings(kind, type_name)
        for name in spelled.shown:
            place = native_place(name)
            self.places.setdefault((*where, *place), (*params, name))
            if len(place) == 1:
                self.words.setdefault(place[0], name)
        return _Piece(kind, type_name, where, spelled)

    def _standing(
        self, piece: _Piece, entry: Mapping[str, Any], params: Mapping[str, Any]
    ) -> dict[str, tuple[Any, Where]]:
        """Every parameter with its place; what stands beside the others wins over them."""
        section = piece.where
        found = {name: (value, (*section, _PARAMS, name)) for name, value in params.items()}
        if piece.type_name in (*FORMATS, "delta_changes"):
            found = {name: item for name, item in found.items() if name != "format"}
        if piece.kind == "source" and piece.type_name in ("delta", "delta_changes"):
            found.pop("readChangeFeed", None)
        beside = {name: entry[name] for name in PLACES if entry.get(name) is not None}
        others = _ALTERNATIVES.get(piece.type_name, _JDBC_ALTERNATIVES)
        if any(name in beside for name in others):
            found = {name: item for name, item in found.items() if name not in others}
        if entry.get("schemaName") is not None:
            found.pop("schema", None)
        return {**found, **{name: (value, (*section, name)) for name, value in beside.items()}}

    def _parameters(self, piece: _Piece, given: Mapping[str, tuple[Any, Where]]) -> None:
        listed = {name: n for n, name in enumerate(piece.spelled.shown)}
        for name in sorted(given, key=lambda name: listed.get(name, len(listed))):
            value, where = given[name]
            if value is None:
                continue
            if piece.type_name == "kafka" and name.startswith(OPTIONS):
                self._put(piece, ("options", name), meant(value, "text"), where)
            elif name in piece.spelled.shapes:
                self._parameter(piece, name, value, where)
            else:
                self._unknown(piece, name, where)

    def _parameter(self, piece: _Piece, name: str, value: Any, where: Where) -> None:
        if name == "schema":
            self._schema(piece, value, where)
            return
        try:
            ready = meant(value, piece.spelled.shapes[name])
        except WrongText as wrong:
            self.problem(where, "wrong_value", f'"{name}": {wrong.message}', wrong.hint)
            return
        place = native_place(name)
        if name in HINTS and not takes(piece.kind, piece.type_name, name):
            place = ("options", name)  # Spark leaves alone what a format has no use for
        if place == ("aggregations",):
            ready = _figures(ready)
        self._put(piece, place, ready, where)

    def _unknown(self, piece: _Piece, name: str, where: Where) -> None:
        hint = did_you_mean(name, piece.spelled.shown)
        message = f'unknown key "{name}"'
        if name in _SECRETS:
            hint = 'keep it in a credential and name that: "credentialId": "..."'
        elif name in PARAMETERS["source", "delta_changes"] and piece.type_name == "delta":
            message = f'"{name}" needs "readChangeFeed": "true"'
            hint = "without it the table is read as it is"
        elif name in PARAMETERS["source", "delta"] and piece.type_name == "delta_changes":
            message = f'"{name}" and "readChangeFeed" exclude each other'
        self.problem(where, "unknown_key", message, hint)

    def _put(self, piece: _Piece, place: tuple[str, ...], value: Any, where: Where) -> None:
        """Set a native field, which may lie within another one."""
        full, first = (*piece.where, *place), place[0]
        holder = piece.fields if len(place) == 1 else piece.fields.setdefault(first, {})
        if not isinstance(holder, dict) or place[-1] in holder:
            other = (self.places.get(full) or self.places[full[:-1]])[-1]
            self.problem(where, "twice", f'"{other}" says this already', "leave one of them out")
            return
        holder[place[-1]] = value
        self.places[full] = where
        if len(place) > 1:
            self.places.setdefault(full[:-1], where)

    def _schema(self, piece: _Piece, text: Any, where: Where) -> None:
        """The columns the data must have: read so, or else checked."""
        try:
            columns = schema_text(str(text), self.root)
        except WrongText as wrong:
            key = where[-1]
            self.problem(where, "wrong_value", f'"{key}": {wrong.message}', wrong.hint)
            return
        if takes(piece.kind, piece.type_name, "schema"):
            self._put(piece, ("schema",), columns, where)
        else:
            self.schemas[piece.kind] = (columns, where)

    def _schema_checks(self, *, named: bool) -> list[dict[str, Any]]:
        checks: list[dict[str, Any]] = []
        for kind, (columns, where) in self.schemas.items():
            self.places["checks", len(checks)] = where
            self.places["checks", len(checks), "columns"] = where
            source = {"input": ONLY_SOURCE} if kind == "source" and named else {}
            checks.append({"type": "schema", **source, "columns": columns})
        return checks

    def _incremental(self, source: _Piece) -> None:
        """The switches for rewritten history speak of reading on, so that is what they ask for."""
        given = [name for name in _SWITCHES if source.fields.get(name) is True]
        if source.type_name == "delta" and given and "incremental" not in source.fields:
            where = self.places["extract", given[0]]
            self._put(source, ("incremental",), value=True, where=where)

    def _messages(self, source: _Piece, sink: _Piece | None) -> None:
        """Messages are read on from the last batch, with the types of the table they go to."""
        if source.type_name != "kafka":
            return
        where = ("extract",)
        source.fields.setdefault("incremental", True)
        self.places.setdefault(("extract", "incremental"), where)
        told = ("schema", "schema_of", "avro_schema")
        plain = source.fields.get("format", "json") == "json"
        if sink is None or sink.type_name != "delta" or not plain:
            return
        path = str(sink.fields.get("path", ""))
        table = sink.fields.get("table") or (path if "/" in path or not path else f"./{path}")
        if table and not any(name in source.fields for name in told):
            source.fields["schema_of"] = table
            self.places.setdefault(("extract", "schema_of"), where)

    def _mode(self, sink: _Piece) -> None:
        given = self.given.get("writeMode")
        mode = "append" if given is None else str(given).strip().lower()
        if mode not in MODES:
            hint = did_you_mean(str(given), MODES.values())
            self._wrong_mode(f'"writeMode" cannot be "{given}"', hint)
        elif takes("sink", sink.type_name, "mode"):
            sink.fields["mode"] = mode
        elif mode == "overwrite":
            message = f'"writeMode" cannot be "{given}" for a sink that only adds'
            self._wrong_mode(message, "available: Append, Upsert")

    def _wrong_mode(self, message: str, hint: str) -> None:
        self.problem(("writeMode",), "wrong_value", message, hint)
        self.troubled.add("load")

    def _winner(self, sink: _Piece) -> None:
        """Of several rows with one key the one that the update condition prefers."""
        condition = sink.fields.get("update_condition")
        is_upsert = sink.type_name == "delta" and sink.fields.get("mode") == "upsert"
        if not is_upsert or not isinstance(condition, str) or "duplicates" in sink.fields:
            return
        if order := order_of(condition):
            where = self.places["load", "update_condition"]
            self._put(sink, ("duplicates",), {"keep": order.keep, "by": order.by}, where)

    def _steps(self) -> list[Any]:
        entries = self.given.get("transform")
        if entries is None:
            return []
        if not isinstance(entries, list):
            hint = 'put it in brackets: [{"type": "..."}]'
            self.problem(("transform",), "wrong_value", '"transform" must be a list', hint)
            return []
        return [self._step(entry, ("transform", i)) for i, entry in enumerate(entries)]

    def _step(self, entry: Any, where: Where) -> Any:
        if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
            hint = '{"type": "aggregation", "parameters": {...}}'
            self.problem(where, "missing_key", 'a transform is a map with a "type"', hint)
            return {}
        self._refuse_others(entry, ("type", "parameters"), where)
        params = entry.get("parameters") or {}
        if not isinstance(params, dict):
            message = '"parameters" must be a map'
            self.problem((*where, "parameters"), "wrong_value", message, '{"groupBy": "day"}')
            params = {}
        type_name = _step_type(entry["type"])
        inside = (*where, "parameters")
        piece = self._piece("transform", type_name, where, inside)
        given = {name: (value, (*inside, name)) for name, value in params.items()}
        if find_plugin("transform", type_name) is None:  # it may come; until then anything goes
            shapes: dict[str, Shape] = dict.fromkeys(given, "any")
            piece = replace(piece, spelled=ClassicNames(shapes, ()))
        self._parameters(piece, given)
        return piece.native()


def _step_type(name: str) -> str:
    plain = snake(name.strip())
    known = {"aggregation": "aggregate", **{own: own for own in plugin_types("transform")}}
    return known.get(plain, name)


def _figures(value: Any) -> Any:
    """Aggregations with functions as the native form spells them; `count` of `*` counts rows."""
    entries = [value] if isinstance(value, dict) else value
    if not isinstance(entries, list):
        return entries
    return [_figure(entry) if isinstance(entry, dict) else entry for entry in entries]


def _figure(entry: dict[str, Any]) -> dict[str, Any]:
    function = entry.get("function")
    spelled = snake(function) if isinstance(function, str) else function
    counts_rows = spelled == "count" and entry.get("column") == "*"
    kept = {name: item for name, item in entry.items() if not (counts_rows and name == "column")}
    return {**kept, **({"function": spelled} if "function" in kept else {})}


def _listed(names: Iterable[str]) -> str:
    return f"available: {', '.join(names)}"
