"""Values that files write, as columns of a type; what does not fit is refused before reading."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, DecimalType

Value = bool | int | float | str
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def literal_of(value: Value, kind: DataType, *, name: str, where: str) -> Column:
    """A value as a column of the type that a column of this name has."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import DecimalType

    if not _fits(value, kind):
        raise SpecError(
            f'{where}: {_shown(value)} does not fit column "{name}", which is '
            f"{kind.simpleString()}",
            hint=_hint(value, kind),
            context={"column": name},
        )
    exact = str(value) if isinstance(kind, DecimalType) else value
    return F.lit(exact).cast(kind)


def _fits(value: Value, kind: DataType) -> bool:
    from pyspark.sql.types import DecimalType

    word = kind.simpleString()
    if isinstance(value, bool):
        return word == "boolean"
    if word in _BITS:
        limit = 2 ** (_BITS[word] - 1)
        return isinstance(value, int) and -limit <= value < limit
    if word in ("float", "double"):
        return isinstance(value, int | float)
    if isinstance(kind, DecimalType):
        return _fits_decimal(value, kind)
    if word == "string":
        return isinstance(value, str)
    return isinstance(value, str) and _fits_time(value, word)


def _fits_decimal(value: Value, kind: DecimalType) -> bool:
    try:
        exact = Decimal(str(value))
    except InvalidOperation:
        return False
    if not exact.is_finite():
        return False
    whole_digits = kind.precision - kind.scale
    return exact == round(exact, kind.scale) and abs(exact) < 10**whole_digits


def _fits_time(value: str, word: str) -> bool:
    try:
        if word == "date":
            date.fromisoformat(value)
            return True
        if word in ("timestamp", "timestamp_ntz"):
            datetime.fromisoformat(value)
            return True
    except ValueError:
        return False
    return False


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _hint(value: Value, kind: DataType) -> str:
    word = kind.simpleString()
    if word == "string":
        return f'put it in quotes: "{_shown(value)}"'
    if "<" in word or word in ("binary", "variant"):
        return "set such a column with a derive step and coalesce()"
    if word.startswith(("date", "timestamp")):
        return "write it as 2026-01-31, or 2026-01-31 12:00:00"
    return f"write a value of type {word}, or cast the column first"
