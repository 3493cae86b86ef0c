"""Columns by name: quoted for SQL, found in a frame, or missed with a suggestion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaworks.errors import SpecError
from deltaworks.model.schema import Schema
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

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
    assert isinstance(found, StructType)  # the text was parsed when the file was read
    return found


def text_columns(names: Iterable[str]) -> StructType:
    """Columns of text."""
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([StructField(name, StringType()) for name in names])


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a named column lies: the fields down to it, and its type."""

    path: tuple[str, ...]
    kind: DataType
    is_plain: bool = True
    """Whether only structs are passed on the way, so that there is one value in each row."""

    @property
    def is_nested(self) -> bool:
        """Whether it is a field of another column."""
        return len(self.path) > 1


def find_place(schema: StructType, name: str) -> Place | None:
    """A column by name, or a nested field by dots; Spark ignores case, so do we.

    A column whose own name holds the dots comes before a field.
    """
    for field in schema.fields:
        if field.name.lower() == name.lower():
            return Place(path=(field.name,), kind=field.dataType)
    for field in schema.fields:
        start, dot, rest = _parted(name, len(field.name))
        if dot and start.lower() == field.name.lower():
            found = _inside(field.dataType, rest)
            if found is not None:
                path = (field.name, *found.path)
                return Place(path=path, kind=found.kind, is_plain=found.is_plain)
    return None


def _parted(name: str, length: int) -> tuple[str, bool, str]:
    return name[:length], name[length : length + 1] == ".", name[length + 1 :]


def _inside(kind: DataType, name: str) -> Place | None:
    """A field of a struct, the same field of every struct in an array, or the value of a key."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if isinstance(kind, StructType):
        return find_place(kind, name)
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return Place(path=(name,), kind=kind.valueType, is_plain=False)
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        found = find_place(kind.elementType, name)
        if found is not None:
            return Place(path=found.path, kind=ArrayType(found.kind), is_plain=False)
    return None


def column_names(schema: StructType) -> list[str]:
    """Every name a column or nested field can be called by, columns first."""
    from pyspark.sql.types import ArrayType, StructType

    nested: list[str] = []
    for field in schema.fields:
        kind = field.dataType
        inner = kind.elementType if isinstance(kind, ArrayType) else kind
        if isinstance(inner, StructType):
            nested.extend(f"{field.name}.{name}" for name in column_names(inner))
    return [*schema.fieldNames(), *nested]


def missing_column(name: str, choices: Sequence[str], *, where: str) -> SpecError:
    """The error for a column that is not there."""
    return SpecError(
        f'{where} names column "{name}", which does not exist',
        hint=did_you_mean(name, choices),
        context={"column": name},
    )


def require_place(frame: DataFrame, name: str, *, where: str) -> Place:
    """Where a column or nested field lies; raises when it is not there."""
    found = find_place(frame.schema, name)
    if found is None:
        raise missing_column(name, column_names(frame.schema), where=where)
    return found


def require_columns(
    frame: DataFrame, names: Iterable[str], *, where: str, nested: bool = True
) -> None:
    """Refuse names that the frame does not have."""
    have = {column.lower() for column in frame.columns}
    for name in names:
        if name.lower() in have:
            continue
        if not nested:
            raise missing_column(name, frame.columns, where=where)
        require_place(frame, name, where=where)


def refuse_twins(names: Iterable[str], *, where: str, hint: str) -> None:
    """Raise when a step would give two columns of one name; no table can hold both."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise SpecError(f'{where} gives two columns named "{name}"', hint=hint)
        seen.add(name.lower())


def refuse_spelling(
    frame: DataFrame, what: str, fits: Callable[[str], bool], *, leave_out: Iterable[str] = ()
) -> None:
    """Raise when a column, or a field of one, has a name that files of a format cannot have."""
    left_out = {name.lower() for name in leave_out}
    for field in Schema.from_json(frame.schema.json()).fields:
        if field.key[0] not in left_out and not fits(field.names[-1]):
            raise SpecError(
                f'{what} cannot have a column named "{field.path}"',
                hint="give it another name with a rename step",
                context={"column": field.path},
            )


def column(frame: DataFrame, name: str) -> Column:
    """A column of the frame by name, whatever characters it holds; nested fields by dots."""
    from pyspark.sql import functions as F

    found = find_place(frame.schema, name)
    parts = name.split(".") if found is None else _spelt(name, found.path)
    return F.col(".".join(quoted(part) for part in parts))


def _spelt(name: str, path: tuple[str, ...]) -> list[str]:
    """The parts of a name as its writer spells them, because results are called so."""
    parts = []
    for part in path:
        start, _, name = _parted(name, len(part))
        parts.append(start)
    return parts


def require_condition(frame: DataFrame, rule: Column, *, text: str) -> Column:
    """A rule that is true or false for each row; a number would only look like one."""
    kind = frame.select(rule).schema.fields[0].dataType.simpleString()
    if kind in ("boolean", "void"):
        return rule
    raise SpecError(f'"{text}" is {kind}; expected a condition', hint="compare it: ... > 0")
