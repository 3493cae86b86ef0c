"""From a file to a pipeline, with every problem found on the way."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from deltaworks.config.documents import Document, Where, load_document
from deltaworks.config.interpolate import Names, interpolate, variables_in
from deltaworks.config.secret_scan import secret_problems
from deltaworks.config.validation import problems_of
from deltaworks.contracts.plugin import Plugin
from deltaworks.contracts.registry import find_plugin, plugin_types
from deltaworks.contracts.tolerance import Tolerance, limit_problems, tolerance
from deltaworks.errors import ConfigError, Problem, SpecError
from deltaworks.pipeline.classic.translate import Translation, to_native
from deltaworks.pipeline.graph import unique_names
from deltaworks.pipeline.spec import ONLY_SOURCE, Origin, Pipeline
from deltaworks.redact import holds_secret
from deltaworks.suggest import did_you_mean

KEYS = (
    "pipeline",
    "description",
    "tags",
    "variables",
    "extract",
    "transform",
    "checks",
    "load",
    "audit_columns",
    "max_failed",
)
NAME_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_\-]*"
_NAME = re.compile(NAME_PATTERN)


def read_document(path: Path, root: Path | None = None) -> Translation:
    """A file's document in the native form, whichever form the file has.

    `root` is the project's folder; a file outside any project is one of its own.
    """
    written = load_document(path)
    secrets = secret_problems(written)
    read = to_native(written, path.parent if root is None else root)
    places = {problem.path for problem in secrets}
    others = [problem for problem in read.problems if problem.path not in places]
    return replace(read, problems=(*secrets, *others), troubled=read.troubled | places)


def native_form(path: Path, root: Path) -> dict[str, Any]:
    """A pipeline file's native form, as plain values; variables stay as they are written."""
    read = read_document(path, root)
    if read.problems:
        raise SpecError(f'"{read.document.shown}" is wrong', problems=read.problems)
    if not isinstance(read.document.value, dict):
        raise ConfigError(f'"{read.document.shown}" holds no pipeline')
    return dict(read.document.value)


def read_pipeline(path: Path, names: Names, root: Path | None = None) -> Pipeline:
    """The pipeline in a file; raises with every problem of the file at once."""
    read = read_document(path, root)
    written, names, own = _with_declared(read.document, names)
    document, problems = interpolate(written, names)
    parser = _Parser(document)
    pipeline = parser.pipeline()
    # what is wrong with a variable is told of the variable, not of what its value makes wrong
    news = [] if own else parser.problems
    news = [problem for problem in news if problem.path not in read.troubled]
    found = sorted((*read.problems, *own, *problems, *news), key=lambda problem: problem.line)
    if found or pipeline is None:
        raise SpecError(f'"{document.shown}" is wrong', problems=found)
    used = frozenset((*names.declared, *variables_in(written.value)))
    return replace(pipeline, origin=replace(pipeline.origin, variables=used))


def _with_declared(document: Document, names: Names) -> tuple[Document, Names, tuple[Problem, ...]]:
    """The document without what it says of its variables, and the names with their values."""
    if not isinstance(document.value, dict) or document.value.get("variables") is None:
        return document, names, ()
    from deltaworks.config.variables import declared

    return declared(document, names)


def _names_of_steps(value: dict[str, Any]) -> list[str]:
    """What steps and sources are called; nothing when a file with problems does not tell."""
    sources, steps = value.get("extract"), value.get("transform") or []
    if not isinstance(sources, dict) or not isinstance(steps, list):
        return []
    if not all(isinstance(step, dict) for step in steps):
        return []
    names = [ONLY_SOURCE] if isinstance(sources.get("type"), str) else list(sources)
    given = [(str(one.get("name") or ""), str(one.get("type") or "")) for one in steps]
    return [*names, *unique_names(given, set(names))]


class _Parser:
    """Collects problems while it turns plain values into plug-ins."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []

    def problem(self, where: Where, code: str, message: str, hint: str = "") -> None:
        self.problems.append(self.document.problem(where, code=code, message=message, hint=hint))

    def pipeline(self) -> Pipeline | None:
        value = self.document.value
        if not isinstance(value, dict):
            self.problem((), "wrong_value", "a pipeline file holds names and values")
            return None
        for key in value:
            if key not in KEYS:
                hint = did_you_mean(key, KEYS)
                self.problem((key,), "unknown_key", f'unknown key "{key}"', hint)
        name = self._name(value)
        extract = self._extract(value)
        transform = self._plugins("transform", "transform", value)
        checks = self._plugins("checks", "check", value)
        load = self._load(value)
        tags = self._tags(value)
        audit_columns = self._audit_columns(value)
        max_failed = self._max_failed(value)
        if self.problems:
            self._refuse_unknown_inputs(value, transform, checks, load)
            return None
        origin = Origin(self.document.shown, self.document.lines, self.document.words)
        return Pipeline(
            name=name,
            extract=extract,
            transform=tuple(transform),
            checks=tuple(checks),
            load=tuple(load),
            description=str(value.get("description") or ""),
            tags=tags,
            audit_columns=audit_columns,
            max_failed=max_failed,
            origin=origin,
        )

    def _refuse_unknown_inputs(
        self, value: dict[str, Any], steps: list[Any], checks: list[Any], sinks: list[Any]
    ) -> None:
        """Names of steps, where the plan that would check them cannot be made."""
        known = _names_of_steps(value)
        many = isinstance(value.get("load"), list)
        read: list[tuple[Where, str]] = []
        for i, step in enumerate(steps):
            named = () if step is None else (step.input, *step.other_inputs())
            read += [(("transform", i), name) for name in named]
        read += [(("checks", i), check.input) for i, check in enumerate(checks) if check]
        places: list[Where] = [("load", i) if many else ("load",) for i in range(len(sinks))]
        read += [(where, sink.input) for where, sink in zip(places, sinks, strict=True) if sink]
        for where, name in read:
            if known and name and "${" not in name and name not in known:
                message = f'there is no step or source "{name}"'
                self.problem(where, "unknown_step", message, did_you_mean(name, known))

    def _name(self, value: dict[str, Any]) -> str:
        name = value.get("pipeline")
        if name is None:
            self.problem((), "missing_key", '"pipeline" is missing', "pipeline: a_name")
        elif not isinstance(name, str) or not _NAME.fullmatch(name):
            self.problem(
                ("pipeline",),
                "wrong_value",
                f'"{name}" is not a pipeline name',
                'letters, digits, "_" and "-"',
            )
        return str(name)

    def _tags(self, value: dict[str, Any]) -> tuple[str, ...]:
        given = value.get("tags")
        tags = given if isinstance(given, list) else [] if given is None else [given]
        right = all(isinstance(tag, str) and _NAME.fullmatch(tag) for tag in tags)
        if not right or len(set(tags)) < len(tags):
            message = '"tags" must be a list of different words'
            hint = 'letters, digits, "_" and "-", such as tags: [daily]'
            self.problem(("tags",), "wrong_value", message, hint)
            return ()
        return tuple(tags)

    def _audit_columns(self, value: dict[str, Any]) -> bool:
        wanted = value.get("audit_columns", False)
        if not isinstance(wanted, bool):
            message = '"audit_columns" must be true or false'
            self.problem(("audit_columns",), "wrong_value", message)
        return bool(wanted)

    def _max_failed(self, value: dict[str, Any]) -> Tolerance | None:
        try:
            return None if value.get("max_failed") is None else tolerance(value["max_failed"])
        except ValueError as problem:
            self.problem(("max_failed",), "wrong_value", f'"max_failed": {problem}')
            return None

    def _extract(self, value: dict[str, Any]) -> dict[str, Any]:
        sources = value.get("extract")
        if not isinstance(sources, dict) or not sources:
            self.problem(
                ("extract",),
                "missing_key",
                '"extract" must name a source',
                "extract: {type: csv, path: data/*.csv}",
            )
            return {}
        if isinstance(sources.get("type"), str):
            return {ONLY_SOURCE: self._plugin("source", sources, ("extract",))}
        return {
            name: self._plugin("source", source, ("extract", name))
            for name, source in sources.items()
        }

    def _load(self, value: dict[str, Any]) -> list[Any]:
        sinks = value.get("load")
        if isinstance(sinks, dict):
            return [self._plugin("sink", sinks, ("load",))]
        if not isinstance(sinks, list) or not sinks:
            self.problem(
                ("load",), "missing_key", '"load" must name a sink', "load: {type: delta, table: t}"
            )
            return []
        return self._plugins("load", "sink", value)

    def _plugins(self, key: str, kind: str, value: dict[str, Any]) -> list[Any]:
        entries = value.get(key)
        if entries is None:
            return []
        if not isinstance(entries, list):
            self.problem((key,), "wrong_value", f'"{key}" must be a list', "start each with `- `")
            return []
        return [self._plugin(kind, entry, (key, i)) for i, entry in enumerate(entries)]

    def _plugin(self, kind: str, entry: Any, where: Where) -> Plugin | None:
        types = plugin_types(kind)
        if not isinstance(entry, dict):
            self.problem(where, "wrong_value", f"a {kind} is a map with a type", "{type: ...}")
            return None
        type_name = entry.get("type")
        if type_name is None:
            self.problem(
                where, "missing_key", f'this {kind} has no "type"', did_you_mean("", types)
            )
            return None
        model = find_plugin(kind, str(type_name))
        if model is None:
            self._unknown_type(kind, str(type_name), (*where, "type"))
            return None
        return self._valid(model, entry, where)

    def _unknown_type(self, kind: str, type_name: str, where: Where) -> None:
        message = f'there is no {kind} of type "{type_name}"'
        if where in self.document.places:  # a file may well know more than this release
            message += " in this release"
        self.problem(where, "unknown_type", message, did_you_mean(type_name, plugin_types(kind)))

    def _valid(self, model: type[Plugin], entry: dict[str, Any], where: Where) -> Plugin | None:
        fields = {key: value for key, value in entry.items() if key != "type"}
        try:
            plugin = model.model_validate(fields)
        except ValidationError as error:
            self.problems.extend(problems_of(error, model, self.document, where))
            return None
        if plugin.kind == "check" and holds_secret(json.dumps(plugin.document())):
            message = "a check holds a secret, and its results and the quarantine would show it"
            self.problem(where, "secret", message, "compute what it needs in a step before it")
        for message in (*plugin.problems(), *limit_problems(plugin)):
            place = (*where, *self._first_named(message, where))
            said = self.document.said(message)
            self.problem(place, "wrong_value", f"{plugin.plugin_type()}: {said}")
        return plugin

    def _first_named(self, message: str, where: Where) -> Where:
        """The key that a message begins with, where a file's own spelling tells it apart."""
        word = message.partition('"')[2].partition('"')[0] if message.startswith('"') else ""
        given = (*where, word) in self.document.lines
        return (word,) if given and self.document.places else ()
