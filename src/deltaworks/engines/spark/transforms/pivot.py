"""Values of a column as columns of their own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

from deltaworks.engines.spark.frames.columns import column, require_place
from deltaworks.engines.spark.frames.literals import Value, literal_of
from deltaworks.engines.spark.frames.temp_views import aside
from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PIVOT = "__deltaworks_pivot"
_MAX_COLUMNS = 1000


def typed_values(frame: DataFrame, name: str, values: Sequence[Value]) -> list[Column]:
    """The values that a file names, in the type of their column."""
    kind = require_place(frame, name, where="pivot").kind
    return [literal_of(value, kind, name=name, where="pivot") for value in values]


def value_is_none_of(value: Column, values: Sequence[Column]) -> Column:
    """Whether a row has another value, or none."""
    from pyspark.sql import functions as F

    return F.coalesce(~value.isin(*values), value.isNull())


def pivoted(
    frame: DataFrame,
    keys: Sequence[Column],
    name: str,
    *,
    values: Sequence[Value],
    figures: Sequence[Column],
) -> DataFrame:
    """Groups of rows, and the figures of each value of a column beside one another."""
    require_place(frame, name, where="pivot")
    typed_values(frame, name, values)
    wanted = list(values) if values else _values_in(frame, name)
    # a column of its own, because Spark's pivot takes a name and no expression
    named = frame.withColumn(_PIVOT, column(frame, name))
    return named.groupBy(*keys).pivot(_PIVOT, wanted).agg(*figures)


def _values_in(frame: DataFrame, name: str) -> list[Any]:
    """The values of a column, in order; this reads the rows once more."""
    with aside(frame.select(column(frame, name).alias(_PIVOT))) as rows:
        found = rows.distinct().orderBy(_PIVOT).limit(_MAX_COLUMNS + 1).collect()
    if len(found) > _MAX_COLUMNS:
        raise SpecError(
            f'pivot: column "{name}" has more than {_MAX_COLUMNS:,} values',
            hint='name those that should become columns in "values"',
        )
    if rows.dtypes[0][1] != "timestamp":
        return [row[0] for row in found]
    # Python has them in its own zone; without one Spark mixes up the two hours of a clock change
    return [row[0] and row[0].astimezone(UTC) for row in found]
