"""Structs taken apart into columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from deltaworks.engines.spark.frames.columns import quoted, require_place
from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


def require_struct(frame: DataFrame, name: str) -> None:
    """Raise when a column has no fields."""
    from pyspark.sql.types import StructType

    kind = require_place(frame, name, where="flatten").kind
    if not isinstance(kind, StructType):
        raise SpecError(
            f'flatten names column "{name}", which is {kind.simpleString()} and has no fields',
            hint="make rows of an array or a map with an explode step"
            if "<" in kind.simpleString()
            else "leave it out",
            context={"column": name},
        )


def flat_columns(
    frame: DataFrame,
    *,
    only: Collection[str],
    exclude: Collection[str],
    separator: str,
    recursive: bool,
) -> Iterator[Column]:
    """The columns of a frame, structs among them as their fields."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    wanted = {name.lower() for name in only}
    kept = {name.lower() for name in exclude}
    for field in frame.schema.fields:
        low = field.name.lower()
        is_chosen = low not in kept and (not wanted or low in wanted)
        if is_chosen and isinstance(field.dataType, StructType):
            yield from _fields((field.name,), field.dataType, separator, recursive=recursive)
        else:
            yield F.col(quoted(field.name))


def _fields(
    path: tuple[str, ...], kind: StructType, separator: str, *, recursive: bool
) -> Iterator[Column]:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    for field in kind.fields:
        here = (*path, field.name)
        if recursive and isinstance(field.dataType, StructType):
            yield from _fields(here, field.dataType, separator, recursive=recursive)
        else:
            yield F.col(".".join(map(quoted, here))).alias(separator.join(here))
