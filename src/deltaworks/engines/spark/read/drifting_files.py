"""Files whose columns differ, as rows of the same columns.

Files of one shape are a part, which Spark reads as one. The parts are compared with the columns
that are expected, conformed to them by name, and put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from deltaworks.config.documents import shown_path
from deltaworks.contracts.plugin import REJECTED
from deltaworks.engines.spark.frames.columns import column, quoted
from deltaworks.engines.spark.frames.exact_casts import exactly
from deltaworks.engines.spark.read.files import FileRows
from deltaworks.errors import InputError
from deltaworks.model.batch import FileStamp
from deltaworks.model.schema import fits
from deltaworks.storage.drift import Drift, FileDrift
from deltaworks.storage.hive_partitions import partition_keys

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

_WIDER = "name a type in `schema` that holds it, and round or cut it in a step of its own"


@dataclass(frozen=True, kw_only=True)
class Part:
    """Files of the same columns."""

    files: FileRows
    columns: StructType
    """Their own columns, in their order; not those of folders."""
    line: int = 0
    """The line that tells the columns; 0 when it is no line."""

    @property
    def path(self) -> str:
        """One of the files."""
        return self.files.bounds.files[0].path


def with_files(files: FileRows, stamps: Sequence[FileStamp]) -> FileRows:
    """Some of the files, read in the same way."""
    return replace(files, bounds=replace(files.bounds, files=tuple(stamps)))


def settled(
    parts: Sequence[Part],
    declared: StructType | None,
    drift: Drift,
    *,
    warn: Callable[[str], None],
    exact_case: bool = False,
) -> StructType:
    """The columns that all rows get; a difference that the policy does not allow is refused."""
    asked = None if declared is None else without_folders(declared, parts[0].files)
    expected = united(parts) if asked is None else asked
    found = []
    for part in parts:
        unknown, missing = differences(expected, part.columns, exact_case=exact_case)
        found.append(FileDrift(path=part.path, unknown=unknown, missing=missing, line=part.line))
    drift.judge(found, warn, against="other files" if declared is None else "schema")
    if declared is None or asked is None:
        return expected
    return extended(declared, parts) if drift.unknown == "keep" else declared


def extended(declared: StructType, parts: Sequence[Part]) -> StructType:
    """The declared columns, and those besides them that the parts have."""
    asked = without_folders(declared, parts[0].files)
    typed = [replace(part, columns=retyped(part.columns, asked)) for part in parts]
    return _in_order(united(typed, asked), declared)


def without_folders(columns: StructType, files: FileRows) -> StructType:
    """The columns that must be in the files themselves."""
    return without(columns, partition_keys(files.bounds))


def without(columns: StructType, names: Sequence[str]) -> StructType:
    """The columns but some."""
    from pyspark.sql.types import StructType

    left_out = {name.lower() for name in names}
    return StructType([field for field in columns.fields if field.name.lower() not in left_out])


def _in_order(columns: StructType, first: StructType) -> StructType:
    """The columns, beginning with those of another list, some of which only it may have."""
    from pyspark.sql.types import StructType

    rest = {field.name.lower(): field for field in columns.fields}
    named = [rest.pop(field.name.lower(), field) for field in first.fields]
    return StructType([*named, *rest.values()])


def differences(
    expected: StructType, found: StructType, *, exact_case: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns and nested fields that only the second has, and those that only the first has."""
    told = list(_compared(expected, found, "", str if exact_case else str.lower))
    return (
        tuple(path for path, is_unknown in told if is_unknown),
        tuple(path for path, is_unknown in told if not is_unknown),
    )


def _compared(
    expected: StructType, found: StructType, above: str, key: Callable[[str], str]
) -> Iterator[tuple[str, bool]]:
    wanted = {key(field.name): field for field in expected.fields}
    there = {key(field.name): field for field in found.fields}
    yield from ((f"{above}{there[name].name}", True) for name in there if name not in wanted)
    for name, field in wanted.items():
        if name not in there:
            yield f"{above}{field.name}", False
            continue
        left, right = _struct(field.dataType), _struct(there[name].dataType)
        if left is not None and right is not None:
            yield from _compared(left, right, f"{above}{field.name}.", key)


def _struct(kind: DataType) -> StructType | None:
    """The fields of a struct, or of the structs in an array."""
    from pyspark.sql.types import ArrayType, StructType

    while isinstance(kind, ArrayType):
        kind = kind.elementType
    return kind if isinstance(kind, StructType) else None


def united(parts: Sequence[Part], start: StructType | None = None) -> StructType:
    """The columns of all parts; each type takes in every value, or the difference is refused."""
    from pyspark.sql.types import StructField, StructType

    fields: dict[str, tuple[StructField, str]] = {}
    for field in start.fields if start is not None else ():
        fields[field.name.lower()] = (field, "")
    for part in parts:
        for field in part.columns.fields:
            known, path = fields.get(field.name.lower(), (field, part.path))
            kind = _merged(known.dataType, field.dataType)
            if kind is None:
                raise _type_difference((known, path), (field, part.path))
            keeps_path = kind == known.dataType
            merged = StructField(known.name, kind)
            fields[field.name.lower()] = (merged, path if keeps_path else part.path)
    return StructType([field for field, _ in fields.values()])


def _type_difference(known: tuple[StructField, str], other: tuple[StructField, str]) -> InputError:
    (field, path), (found, place) = known, other
    return InputError(
        f'column "{field.name}" is {field.dataType.simpleString()} in {shown_path(path)} and '
        f"{found.dataType.simpleString()} in {shown_path(place)}",
        hint=f'name its type: `schema: "{quoted(field.name)} string"`, with '
        "`unknown_columns: keep` if it names no other column",
    )


def _merged(left: DataType, right: DataType) -> DataType | None:
    """The type that holds all values of both exactly; None when there is none."""
    from pyspark.sql.types import ArrayType, StructType

    if left == right:
        return left
    if isinstance(left, StructType) and isinstance(right, StructType):
        return merged_fields(left, right)
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        inner = _merged(left.elementType, right.elementType)
        return None if inner is None else ArrayType(inner)
    if fits(str(left.jsonValue()), into=str(right.jsonValue())):
        return right
    return left if fits(str(right.jsonValue()), into=str(left.jsonValue())) else None


def merged_fields(left: StructType, right: StructType) -> StructType | None:
    """The fields of both, each with a type that holds all values; None when there is none."""
    from pyspark.sql.types import StructField, StructType

    fields = {field.name.lower(): field for field in left.fields}
    for field in right.fields:
        known = fields.get(field.name.lower(), field)
        kind = _merged(known.dataType, field.dataType)
        if kind is None:
            return None
        fields[field.name.lower()] = StructField(known.name, kind)
    return StructType(list(fields.values()))


def retyped(found: StructType, declared: StructType) -> StructType:
    """The same columns with the declared types, where there is one."""
    from pyspark.sql.types import StructField, StructType

    kinds = {field.name.lower(): field.dataType for field in declared.fields}
    return StructType(
        [
            StructField(field.name, _retype(field.dataType, kinds[field.name.lower()]))
            if field.name.lower() in kinds
            else field
            for field in found.fields
        ]
    )


def _retype(found: DataType, declared: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(found, StructType) and isinstance(declared, StructType):
        return retyped(found, declared)
    if isinstance(found, ArrayType) and isinstance(declared, ArrayType):
        return ArrayType(_retype(found.elementType, declared.elementType))
    return declared


def conformed(frame: DataFrame, wanted: StructType, added: Sequence[str]) -> DataFrame:
    """The wanted columns by name, NULL where there is none, then those that are not in files."""
    from pyspark.sql import functions as F

    own = {field.name.lower(): field for field in frame.schema.fields}
    columns: list[Column] = []
    for field in wanted.fields:
        has = own.get(field.name.lower())
        if has is None:
            columns.append(F.lit(None).cast(field.dataType).alias(field.name))
            continue
        value = _conform(F.col(quoted(has.name)), has.dataType, field.dataType)
        columns.append(value.alias(field.name))
    named = {field.name.lower() for field in wanted.fields}
    rest = [name for name in (*added, REJECTED) if name.lower() in own.keys() - named]
    return frame.select(*columns, *[column(frame, name) for name in rest])


def _conform(value: Column, has: DataType, wants: DataType) -> Column:
    """The value in the wanted type, nested fields by name; one that does not fit is refused."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if has.simpleString() == wants.simpleString():
        return value
    if isinstance(has, StructType) and isinstance(wants, StructType):
        return F.when(value.isNotNull(), F.struct(*_conform_fields(value, has, wants)))
    if isinstance(has, ArrayType) and isinstance(wants, ArrayType):
        return F.transform(value, lambda item: _conform(item, has.elementType, wants.elementType))
    if isinstance(has, MapType) and isinstance(wants, MapType):
        keyed = F.transform_keys(value, lambda key, _: _conform(key, has.keyType, wants.keyType))
        return F.transform_values(
            keyed, lambda _, item: _conform(item, has.valueType, wants.valueType)
        )
    return exactly(value, has, wants, hint=_WIDER)


def _conform_fields(value: Column, has: StructType, wants: StructType) -> list[Column]:
    from pyspark.sql import functions as F

    own = {field.name.lower(): field for field in has.fields}
    found = []
    for field in wants.fields:
        given = own.get(field.name.lower())
        if given is None:
            found.append(F.lit(None).cast(field.dataType).alias(field.name))
        else:
            inner = _conform(value.getField(given.name), given.dataType, field.dataType)
            found.append(inner.alias(field.name))
    return found


def together(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all parts; their columns are the same."""
    return reduce(lambda left, right: left.unionByName(right), frames)
