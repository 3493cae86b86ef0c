"""Numbers, dates and timestamps as texts spell them: decimal commas, thousands, day first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

_SAMPLE = re.compile(r"1([^0-9]?)234(?:([^0-9])56)?")
_NUMBERS = ("tinyint", "smallint", "int", "integer", "bigint", "long", "float", "double", "decimal")
_MOMENTS = ("date", "timestamp", "timestamp_ntz")
_WEEK_YEAR, _DAY_OF_YEAR = re.compile("Y"), re.compile("DD?(?!D)")
_LITERAL = re.compile("'[^']*'")


def format_problem(name: str, kind: str, text: str) -> str:
    """Why a format cannot be used for a column of a type; empty when it can."""
    word = kind.lower().partition("(")[0].strip()
    if word in _NUMBERS:
        if _marks(text) is None:
            return (
                f'the format of "{name}" must spell the number 1234.56, such as "1.234,56", '
                f'"1234,56" or "1,234.56"; it is "{text}"'
            )
        return ""
    if word not in _MOMENTS:
        return f'"{name}" is to be {kind}, and formats are for numbers, dates and timestamps'
    bare = _LITERAL.sub("", text)
    if _WEEK_YEAR.search(bare):
        return f'"Y" in the format of "{name}" is the year of a week: say "y"'
    if "D" in bare:
        return f'"D" in the format of "{name}" is the day of the year: say "d"'
    return "" if re.search("[a-zA-Z]", bare) else f'the format of "{name}" names no part of a date'


def _marks(sample: str) -> tuple[str, str] | None:
    """The mark between thousands and the one before the fraction, as a sample has them."""
    found = _SAMPLE.fullmatch(sample)
    if found is None or (found[1] and found[1] == found[2]):
        return None
    return found[1], found[2] or ""


def read_format(text: Column, kind: DataType, spelled: str) -> tuple[Column, bool]:
    """What a text of a format says, NULL if it is not of it; and whether that is still text."""
    from pyspark.sql import functions as F

    if kind.simpleString() in _MOMENTS:
        return F.try_to_timestamp(text, F.lit(spelled)).cast(kind), False
    marks = _marks(spelled)
    assert marks is not None
    return _plain_number(F.trim(text), *marks), True


def _plain_number(text: Column, thousands: str, point: str) -> Column:
    """A number as SQL spells it; NULL for a text that is not spelled like the sample."""
    from pyspark.sql import functions as F

    fraction = f"({re.escape(point)}[0-9]+)?" if point else ""
    whole = f"[0-9]{{1,3}}({re.escape(thousands)}[0-9]{{3}})*" if thousands else "[0-9]+"
    plain = text if not thousands else F.replace(text, F.lit(thousands), F.lit(""))
    plain = plain if not point else F.replace(plain, F.lit(point), F.lit("."))
    return F.when(text.rlike(f"^[+-]?(?:{whole}|[0-9]+){fraction}$"), plain)
