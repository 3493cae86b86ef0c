"""A function of the user's over rows, as it runs in Spark's Python workers.

A worker may be a machine without this package, so what is here is sent along with the function.
"""

from __future__ import annotations

import json
import pickle
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from types import TracebackType
from typing import Any, Self

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from deltaworks.engines.spark.errors.row_notes import MARK

_MAX_SIGNS = 300
_PLAIN: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "tinyint": (int,),
    "smallint": (int,),
    "int": (int,),
    "bigint": (int,),
    "float": (float, int),
    "double": (float, int),
    "string": (str,),
    "binary": (bytes, bytearray),
}
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


class UserCode:
    """Around code of the user's: an error that leaves it takes along where it happened."""

    def __init__(self, *, name: str, step: str, file: str, shown_file: str) -> None:
        self.name = name
        self.step = step
        self.file = file
        self.shown_file = shown_file
        self.row: Mapping[str, Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            error.add_note(MARK + json.dumps(self._note(error, trace)))

    def _note(self, error: Exception, trace: TracebackType | None) -> dict[str, Any]:
        on_row = "" if self.row is None else f" on row {_shown(self.row)}"
        said = _first_line(str(error))
        what = f"{type(error).__name__}: {said}" if said else type(error).__name__
        return {
            "kind": "function",
            "step": self.step,
            "message": f'step "{self.step}": function {self.name} failed{on_row}: {what}',
            "hint": "correct the function" + ("" if self.row is None else ", or filter such rows"),
            "file": self.shown_file,
            "line": self._line(error, trace),
        }

    def _line(self, error: Exception, trace: TracebackType | None) -> int:
        """The line of the user's file that failed, the innermost one."""
        found = 0
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.file:
                found = trace.tb_lineno
            trace = trace.tb_next
        if not found and isinstance(error, SyntaxError) and error.filename == self.file:
            found = error.lineno or 0
        return found


def _first_line(text: str) -> str:
    """What an error says, without the codes that Spark puts around it."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return _cut(re.sub(r"^\[[A-Z_.0-9]+\]\s*|\s*SQLSTATE: .*$", "", line))


def _shown(row: Mapping[str, Any]) -> str:
    return _cut(json.dumps(row, default=str, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SIGNS else text[:_MAX_SIGNS] + "..."


class RowFunction:
    """Calls the user's function with one row, and sees that what it returns fits the columns."""

    def __init__(
        self,
        function: Callable[[dict[str, Any]], Any],
        code: UserCode,
        *,
        takes: StructType,
        gives: StructType,
        root: str,
    ) -> None:
        self.function = function
        self.code = code
        self.takes = takes
        self.gives = gives
        self.root = root

    def __call__(self, values: Any) -> tuple[Any, ...]:
        if self.root not in sys.path:  # for imports inside functions
            sys.path.append(self.root)
        row = told(values, self.takes)
        with self.code as code:
            code.row = row
            fitted: tuple[Any, ...] = fitted_to(self.function(dict(row)), self.gives, "")
        return fitted


class Packed:
    """A function that is pickled now: Spark Connect would do so when its modules are gone again."""

    def __init__(self, function: RowFunction) -> None:
        from pyspark import cloudpickle

        pickles: Any = cloudpickle
        self.content: bytes = pickles.dumps(function)

    def __call__(self, values: Any) -> Any:
        return pickle.loads(self.content)(values)  # noqa: S301 - our own bytes

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return pickle.loads, (self.content,)


def told(value: Any, kind: DataType) -> Any:
    """A value as the user's function gets it: structs are dicts, timestamps are in UTC."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        return {
            field.name: told(inner, field.dataType)
            for field, inner in zip(kind.fields, value, strict=True)
        }
    if isinstance(kind, ArrayType):
        return [told(inner, kind.elementType) for inner in value]
    if isinstance(kind, MapType):
        return {key: told(inner, kind.valueType) for key, inner in value.items()}
    return value.astimezone(UTC) if isinstance(kind, TimestampType) else value


def fitted_to(value: Any, kind: DataType, name: str) -> Any:
    """A value as Spark stores it; one of another type is refused, because Spark makes it NULL."""
    if value is None and name:
        return None
    if isinstance(kind, StructType):
        return _fitted_struct(value, kind, name)
    if isinstance(kind, ArrayType):
        _require(isinstance(value, list | tuple), value, kind, name)
        return [fitted_to(inner, kind.elementType, f"{name}[]") for inner in value]
    if isinstance(kind, MapType):
        _require(isinstance(value, Mapping), value, kind, name)
        return {
            fitted_to(key, kind.keyType, f"{name} key"): fitted_to(
                inner, kind.valueType, f"{name}[{key}]"
            )
            for key, inner in value.items()
        }
    return _fitted_plain(value, kind, name)


def _fitted_struct(value: Any, kind: StructType, name: str) -> tuple[Any, ...]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name or 'it'} returned {_described(value)}; expected a dict")
    names = kind.fieldNames()
    for key in value:
        if key not in names:
            raise ValueError(f'the schema has no column "{key}"')
    for field in names:
        if field not in value:
            raise ValueError(f'column "{field}" of the schema is missing from what it returned')
    prefix = f"{name}." if name else ""
    return tuple(
        fitted_to(value[field.name], field.dataType, prefix + field.name) for field in kind.fields
    )


def _fitted_plain(value: Any, kind: DataType, name: str) -> Any:
    word = kind.simpleString()
    if isinstance(kind, TimestampType):
        _require(isinstance(value, datetime), value, kind, name)
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(kind, TimestampNTZType):
        _require(isinstance(value, datetime) and value.tzinfo is None, value, kind, name)
    elif isinstance(kind, DateType):
        _require(isinstance(value, date) and not isinstance(value, datetime), value, kind, name)
    elif isinstance(kind, DecimalType):
        is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        _require(is_number, value, kind, name)
        exact = Decimal(value)
        whole = kind.precision - kind.scale
        fits = round(exact, kind.scale) == exact and abs(exact) < 10**whole
        _require(fits, value, kind, name)
        return exact
    elif word in _PLAIN:
        is_wanted = isinstance(value, _PLAIN[word])
        _require(is_wanted and isinstance(value, bool) == (word == "boolean"), value, kind, name)
        if word in _BITS:
            limit = 2 ** (_BITS[word] - 1)
            _require(-limit <= value < limit, value, kind, name)
        return float(value) if word in ("float", "double") else value
    return value


def _require(fits: bool, value: Any, kind: DataType, name: str) -> None:  # noqa: FBT001 - read aloud
    if not fits:
        raise TypeError(f'column "{name}" is {kind.simpleString()}, and got {_described(value)}')


def _described(value: Any) -> str:
    return "None" if value is None else _cut(f"{value!r} ({type(value).__name__})")
