"""Columns by name: quoted for SQL, found in a frame, or missed with a suggestion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from deltaworks.errors import SpecError
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

EXACT_TIMES = {
    "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS",
}
"""Options of Spark's JSON that keep microseconds, which its own format cuts off."""


def quoted(name: str) -> str:
    """An identifier that SQL takes as it is."""
    return f"`{name.replace('`', '``')}`"


def literal(text: str) -> str:
    """A text that SQL takes as it is."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def exact_json(column: str) -> str:
    """SQL for a column as JSON that keeps microseconds, which Spark's own format cuts off."""
    formats = ", ".join(f"'{name}', '{value}'" for name, value in EXACT_TIMES.items())
    return f"to_json(struct({column}), map({formats}))"


def declared_columns(text: str) -> StructType:
    """Columns and types as a file spells them, such as `id bigint, amount double`."""
    from pyspark.sql.types import DataType, StructType

    found = DataType.fromDDL(text)
    if isinstance(found, StructType):
        return found
    raise SpecError(
        f'schema "{text}" names no column', hint="write names and types: id bigint, amount double"
    )


def missing_column(name: str, choices: Sequence[str], *, where: str) -> SpecError:
    """The error for a column that is not there."""
    return SpecError(
        f'{where} names column "{name}", which does not exist',
        hint=did_you_mean(name, choices),
        context={"column": name},
    )


def require_columns(
    frame: DataFrame, names: Iterable[str], *, where: str, nested: bool = True
) -> None:
    """Refuse names that the frame does not have; Spark ignores case, so do we."""
    have = {column.lower() for column in frame.columns}
    for name in names:
        inside = nested and name.split(".")[0].lower() in have
        if name.lower() not in have and not inside:
            raise missing_column(name, frame.columns, where=where)


def column(frame: DataFrame, name: str) -> Column:
    """A column of the frame by name, whatever characters it holds; nested fields by dots."""
    from pyspark.sql import functions as F

    if name.lower() in {known.lower() for known in frame.columns}:
        return F.col(quoted(name))
    return F.col(".".join(quoted(part) for part in name.split(".")))
