"""YAML and JSON files as plain values that remember their lines.

YAML is read as version 1.2: `on` and `no` are text, and so are dates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from deltaworks.config.json_positions import read_json
from deltaworks.config.source_text import SourceText
from deltaworks.errors import ConfigError, Problem, SpecError
from deltaworks.suggest import did_you_mean

Where = tuple[str | int, ...]
_MAX_NODES = 100_000
_DEEPEST = 200
_SAID = re.compile(r'(?<=")\w+(?=")|\b\w+(?= ")')  # "merge_keys", and the mode in: mode "upsert"


@dataclass(frozen=True)
class Document:
    """A file's content, and the line of everything in it.

    When the content was translated from another form, problems still speak of the file: `places`
    and `words` say where and how it spells what the content has.
    """

    file: Path
    value: Any
    lines: Mapping[Where, int]
    places: Mapping[Where, Where] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[Where, SourceText] = field(default_factory=dict)
    """How the file writes its texts, where a place inside them can be found again."""

    @property
    def shown(self) -> str:
        """The file's name as the user would write it."""
        return shown_path(self.file)

    def line(self, where: Where) -> int:
        """The line of an entry, or of the nearest thing around it."""
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where, 1)

    def problem(
        self, where: Where, *, code: str, message: str, hint: str = "", at: int | None = None
    ) -> Problem:
        """A problem at a place in this file; `at` is the index of the fault in a text there."""
        line, column = (0, 0) if at is None else self._position(where, at)
        return Problem(
            code=code,
            message=message,
            hint=hint,
            file=self.shown,
            line=line or self.line(where),
            column=column,
            path=dotted(self.place(where)),
        )

    def _position(self, where: Where, at: int) -> tuple[int, int]:
        """Line and column of a character in a text; zeros when they are not known."""
        value: Any = self.value
        place: Where = ()
        while isinstance(value, dict | list) and len(place) < len(where):
            place = where[: len(place) + 1]
            value = _entry(value, place[-1])
        source = self.texts.get(self.place(place))
        return (0, 0) if source is None or not isinstance(value, str) else source.find(value, at)

    def place(self, where: Where) -> Where:
        """Where the file itself has an entry."""
        known = next((n for n in range(len(where), 0, -1) if where[:n] in self.places), 0)
        return (*self.places[where[:known]], *where[known:]) if known else where

    def key(self, where: Where) -> str:
        """What the file itself calls an entry; an entry of a list is called as the list."""
        place = self.place(where)
        name = next((part for part in reversed(place) if isinstance(part, str)), "")
        return self.word(name) if place == where else name

    def word(self, word: str) -> str:
        """How the file spells a word."""
        return self.words.get(word, word)

    def said(self, text: str) -> str:
        """A message in the file's own spelling."""
        return _SAID.sub(lambda match: self.word(match[0]), text)


def _entry(value: Any, part: str | int) -> Any:
    """An entry of a map or list; None when there is none."""
    if isinstance(value, dict):
        return value.get(part)
    return value[part] if isinstance(part, int) and part < len(value) else None


def dotted(where: Where) -> str:
    """A place as people write it: `load.merge_keys`, `transform[2].columns`."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def shown_path(path: Path | str) -> str:
    """A path relative to where the user stands, when that is shorter; an address as it is."""
    if isinstance(path, str):
        return path if "://" in path else shown_path(Path(path))
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def load_document(path: Path) -> Document:
    """Read a file, or say where it is broken."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        message = f'file "{shown_path(path)}" does not exist'
        raise ConfigError(message, hint=_nearby(path)) from None
    except UnicodeDecodeError:
        message = f'file "{shown_path(path)}" is not UTF-8 text'
        raise ConfigError(message, hint="save it as UTF-8") from None
    except OSError as problem:
        message = f'file "{shown_path(path)}" cannot be read: {problem.strerror}'
        raise ConfigError(message, hint="give this user the right to read it") from None
    return parse_document(text, path)


def _nearby(path: Path) -> str:
    """The name that was perhaps meant."""
    if not path.parent.is_dir():
        return f'folder "{shown_path(path.parent)}" does not exist either'
    names = sorted(entry.name for entry in path.parent.glob(f"*{path.suffix}"))
    return did_you_mean(path.name, names)


def parse_document(text: str, path: Path) -> Document:
    """Read a text as if it stood in a file."""
    if path.suffix != ".json":
        return _parse_yaml(text, path)
    try:
        return _parse_json(text, path)
    except JSONDecodeError as problem:
        try:
            return _parse_yaml(text, path)  # with comments, say
        except SpecError:
            raise _broken(path, problem.lineno, problem.msg, language="JSON") from None


def _parse_json(text: str, path: Path) -> Document:
    lines: dict[Where, int] = {}

    def note(where: Where, line: int) -> None:
        lines.setdefault(where, line)
        if len(where) > _DEEPEST:
            raise _broken(path, line, "it is nested too deeply", language="JSON")
        if len(lines) > _MAX_NODES:
            raise _too_many(path, line)

    return Document(path, read_json(text, note), lines)


def _parse_yaml(text: str, path: Path) -> Document:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else 1
        raise _broken(path, line, problem.problem or "it cannot be parsed") from None
    except YAMLError as problem:
        raise _broken(path, 1, str(problem).splitlines()[0]) from None
    builder = _Builder(path, text)
    value = None if root is None else builder.build(root, ())
    return Document(path, value, builder.lines, texts=builder.texts)


def _too_many(path: Path, line: int) -> SpecError:
    return _broken(path, line, f"it has more than {_MAX_NODES:,} entries")


def _broken(path: Path, line: int, what: str, *, language: str = "YAML") -> SpecError:
    problem = Problem(
        code="yaml",
        message=f"this is not valid {language}: {what}",
        hint="check the indentation, quotes and brackets here and on the line above",
        file=shown_path(path),
        line=line,
    )
    return SpecError(problem.message, problems=[problem])


class _Builder:
    """Turns YAML nodes into plain values and notes their lines and texts."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.lines: dict[Where, int] = {}
        self.texts: dict[Where, SourceText] = {}

    def build(self, node: Any, where: Where) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(where, line)
        if len(self.lines) > _MAX_NODES:
            raise _too_many(self.path, line)
        if node.id == "mapping":
            return self._mapping(node, where)
        if node.id == "sequence":
            return [self.build(child, (*where, i)) for i, child in enumerate(node.value)]
        start, end = node.start_mark, node.end_mark
        written = self.text[start.index : end.index]
        self.texts[where] = SourceText(written, node.style or "", line, start.column + 1)
        return _scalar(node)

    def _mapping(self, node: Any, where: Where) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            if key in result:
                raise _broken(self.path, line, f'"{key}" is defined twice')
            self.lines[(*where, key)] = line
            result[key] = self.build(value_node, (*where, key))
        return result


def _scalar(node: Any) -> Any:
    kind, text = node.tag.rpartition(":")[2], node.value
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if "_" in text:  # a number in YAML 1.1, and a name such as 2026_01 in 1.2
        return text
    if kind == "int":
        return _integer(text)
    if kind == "float":
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def _integer(text: str) -> int:
    is_prefixed = text.lstrip("+-").lower().startswith(("0x", "0o"))
    return int(text, 0 if is_prefixed else 10)
