"""Types and columns as SQL spells them, parsed without an engine.

`decimal(12,2)` is a type; `id bigint, amount decimal(12,2) NOT NULL` names columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from deltaworks.model.text_fault import TextFault, twin_problem
from deltaworks.suggest import did_you_mean

MAX_DIGITS = 38
_DEFAULT_DIGITS = (10, 0)
_TOKEN = re.compile(
    r"(?P<blank>\s+|--[^\n]*|/\*.*?\*/)"
    r"|(?P<quoted>`(?:[^`]|``)+`)"
    r"|(?P<text>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\")"
    r"|(?P<word>\w+)"
    r"|(?P<sign>[(),:<>])",
    re.DOTALL,
)
_NAMES = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "decimal": "decimal",
    "dec": "decimal",
    "numeric": "decimal",
    "string": "string",
    "char": "char",
    "character": "char",
    "varchar": "varchar",
    "binary": "binary",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "interval": "interval",
    "variant": "variant",
    "void": "void",
    "geometry": "geometry",
    "geography": "geography",
    "array": "array",
    "map": "map",
    "struct": "struct",
}
"""What a file may call a type, and the type."""
_SHOWN = (
    "boolean, int, bigint, double, decimal(12,2), string, binary, date, timestamp, "
    "array<...>, map<...>, struct<...>"
)
_ELSEWHERE = {
    "bool": "boolean",
    "text": "string",
    "str": "string",
    "uuid": "string",
    "number": "decimal",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
    "datetime": "timestamp",
    "timestamptz": "timestamp",
    "blob": "binary",
    "bytes": "binary",
    "list": "array",
    "object": "struct",
}
"""What other systems call a type."""
_WITH_NUMBERS = frozenset(
    ("decimal", "char", "varchar", "time", "timestamp", "timestamp_ntz", "geometry", "geography")
)
_WITH_LENGTH = ("char", "varchar")
_UNITS = frozenset(("year", "month", "day", "hour", "minute", "second"))


@dataclass(frozen=True)
class SqlType:
    """A type: its name as Spark has it, and what stands in its brackets."""

    name: str
    numbers: tuple[int, ...] = ()
    inner: tuple[SqlType, ...] = ()
    """The type of an array's items, or of a map's keys and values."""
    fields: tuple[SqlColumn, ...] = ()
    """The fields of a struct."""


@dataclass(frozen=True)
class SqlColumn:
    """A column or a field of a struct."""

    name: str
    type: SqlType
    nullable: bool = True


def parse_type(text: str) -> SqlType:
    """The type that a text such as `decimal(12,2)` names; raises `TextFault`."""
    parser = _Parser(text)
    found = parser.type()
    parser.end()
    return found


def parse_columns(text: str) -> tuple[SqlColumn, ...]:
    """The columns of `id bigint, amount double` or `struct<...>`; raises `TextFault`."""
    parser = _Parser(text)
    found = parser.type().fields if parser.is_struct() else parser.columns()
    parser.end()
    return found


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """Goes through a text once."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.place = 0

    def is_struct(self) -> bool:
        """Whether the text is one struct, whose fields are the columns."""
        return [token.text.lower() for token in self.tokens[:2]] == ["struct", "<"]

    def columns(self) -> tuple[SqlColumn, ...]:
        found = [self._column()]
        while self._took(","):
            found.append(self._column())
        if problem := twin_problem(column.name for column in found):
            raise TextFault(problem, hint="rename one of them, or leave it out")
        return tuple(found)

    def type(self) -> SqlType:
        token = self._next("a type")
        name = _NAMES.get(token.text.lower()) if token.kind == "word" else None
        if name is None:
            hint = suggested_type(token.text)
            raise TextFault(f'there is no type "{token.text}"', hint=hint, at=token.at)
        if name in ("array", "map", "struct"):
            return self._nested(name, token)
        if name == "interval":
            self._interval()
        found = SqlType(name, self._numbers(name, token))
        self._zone_and_collation()
        return found

    def end(self) -> None:
        """Refuse what stands after the end."""
        if self.place < len(self.tokens):
            self._refuse(self.tokens[self.place])

    def _column(self) -> SqlColumn:
        token = self._next("a column")
        if token.kind not in ("word", "quoted"):
            self._refuse(token)
        name = token.text
        self._took(":")
        if self.place == len(self.tokens) or self._peek() in (",", ">"):
            raise TextFault(
                f'column "{name}" has no type',
                hint="write names and types: id bigint, amount double",
                at=token.at,
            )
        try:
            kind = self.type()
        except TextFault as fault:
            raise TextFault(f'column "{name}": {fault}', hint=fault.hint, at=fault.at) from None
        not_null = self._took("not")
        if not_null and not self._took("null"):
            self._refuse(self.tokens[min(self.place, len(self.tokens) - 1)])
        if self._took("comment"):
            self._next("a comment")
        return SqlColumn(name, kind, nullable=not not_null)

    def _nested(self, name: str, token: _Token) -> SqlType:
        if not self._took("<"):
            inside = {"array": "<string>", "map": "<string, string>", "struct": "<id: bigint>"}
            hint = f"write it as {name}{inside[name]}, say"
            raise TextFault(f'"{name}" does not say what it holds', hint=hint, at=token.at)
        inner: tuple[SqlType, ...] = ()
        fields: tuple[SqlColumn, ...] = ()
        if name == "array":
            inner = (self.type(),)
        elif name == "map":
            key = self.type()
            self._expect(",")
            inner = (key, self.type())
        elif self._peek() != ">":
            fields = self.columns()
        self._expect(">")
        return SqlType(name, (), inner, fields)

    def _numbers(self, name: str, token: _Token) -> tuple[int, ...]:
        """The numbers in a type's parentheses."""
        numbers: list[int] = []
        if self._peek() == "(":
            if name not in _WITH_NUMBERS:
                message = f'"{token.text}" takes nothing in parentheses'
                raise TextFault(message, hint=f"write {token.text}", at=token.at)
            self._expect("(")
            numbers.append(self._number())
            while self._took(","):
                numbers.append(self._number())
            self._expect(")")
        if name in _WITH_LENGTH and not numbers:
            hint = f"write {token.text}(20), say, or string"
            raise TextFault(f'"{token.text}" has no length', hint=hint, at=token.at)
        if name == "decimal":
            return _digits(numbers, token)
        return tuple(numbers)

    def _number(self) -> int:
        token = self._next("a number")
        if token.text.lower() == "any":
            return 0
        if not token.text.isdecimal():
            self._refuse(token)
        return int(token.text)

    def _interval(self) -> None:
        if self._peek() in _UNITS:
            self.place += 1
            if self._took("to"):
                self._next("a unit")

    def _zone_and_collation(self) -> None:
        if self._took("collate"):
            self._next("a collation")
        elif self._took("without") or (self._took("with") and self._took("local")):
            self._expect("time")
            self._expect("zone")

    def _peek(self) -> str:
        return self.tokens[self.place].text.lower() if self.place < len(self.tokens) else ""

    def _took(self, text: str) -> bool:
        is_next = self._peek() == text
        self.place += is_next
        return is_next

    def _next(self, wanted: str) -> _Token:
        if self.place == len(self.tokens):
            after = f' after "{self.tokens[-1].text}"' if self.tokens else ""
            at = self.tokens[-1].at if self.tokens else 0
            raise TextFault(f"{wanted} is missing{after}", at=at, hint=suggested_type(""))
        self.place += 1
        return self.tokens[self.place - 1]

    def _expect(self, text: str) -> None:
        token = self._next(f'"{text}"')
        if token.text.lower() != text:
            raise TextFault(f'"{text}" is missing before "{token.text}"', at=token.at)

    def _refuse(self, token: _Token) -> NoReturn:
        hint = "put a name with other characters than letters, digits and _ in backticks"
        raise TextFault(f'cannot be parsed at "{token.text}"', hint=hint, at=token.at)


def _digits(numbers: list[int], token: _Token) -> tuple[int, int]:
    """Digits of a decimal in all and after the point."""
    digits, scale = (*numbers, *_DEFAULT_DIGITS[len(numbers) :])[:2]
    written = f"{token.text}({','.join(map(str, numbers))})"
    if len(numbers) > len(_DEFAULT_DIGITS):
        message, hint = f'"{written}" has more than two numbers', "write decimal(12,2), say"
    elif not 1 <= digits <= MAX_DIGITS:
        message = f'"{written}" has {digits} digits, and a decimal has 1 to {MAX_DIGITS}'
        hint = f"write decimal({MAX_DIGITS},{min(scale, MAX_DIGITS)}), or fewer digits"
    elif scale > digits:
        message = f'"{written}" has {scale} digits after the point, and {digits} in all'
        hint = "the first number counts all digits: decimal(12,2) holds 1234567890.12"
    else:
        return digits, scale
    raise TextFault(message, hint=hint, at=token.at)


def suggested_type(word: str) -> str:
    """The type that a wrong word may stand for, or those there are."""
    known = _ELSEWHERE.get(word.lower())
    if known:
        return f'did you mean "{known}"?'
    near = did_you_mean(word, _NAMES) if word else ""
    return near if near.startswith("did") else f"available: {_SHOWN}"


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise TextFault(
                f'cannot be parsed at "{text[at]}"',
                hint="put a name with other characters than letters, digits and _ in backticks",
                at=at,
            )
        kind = str(match.lastgroup)
        if kind == "quoted":
            found.append(_Token(kind, match[0][1:-1].replace("``", "`"), at))
        elif kind != "blank":
            found.append(_Token(kind, match[0], at))
        at = match.end()
    return found
