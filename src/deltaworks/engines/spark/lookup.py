"""Rows looked up in another table, and the rows of a table that a batch does not replace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.engines.spark.columns import column, require_columns
from deltaworks.engines.spark.engine import SparkEngine
from deltaworks.errors import TableNotFound
from deltaworks.model.table_ref import TableRef

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_KEY = "__deltaworks_key_"


def stands_in(
    frame: DataFrame, rows: DataFrame, columns: Mapping[str, str], *, null_equals: bool = False
) -> Column:
    """Whether other rows hold this row's values: a condition, so that no row is doubled.

    `columns` maps columns of the frame to those of the other rows.
    """
    from pyspark.sql import functions as F

    found = _keys(rows, columns.values())
    pairs = [(F.col(f"{_KEY}{i}"), column(frame, name).outer()) for i, name in enumerate(columns)]
    equal = [key.eqNullSafe(own) if null_equals else key == own for key, own in pairs]
    return found.filter(reduce(lambda left, right: left & right, equal)).exists()


def _keys(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Columns under names of our own.

    The alias matters: without it Spark finds a name that both sides have behind the projection,
    and compares the other rows with themselves.
    """
    keys = [column(rows, name).alias(f"{_KEY}{i}") for i, name in enumerate(names)]
    return rows.select(*keys).alias("__deltaworks_keys")


def looked_up(
    spark: SparkSession, ref: TableRef, columns: Sequence[str], *, where: str
) -> DataFrame:
    """A table as it is now, which must have these columns."""
    found = DeltaRsEngine().identity(ref.location)
    if found is None:
        raise TableNotFound(
            f'"{ref.label}" is not a Delta table',
            hint=f"looked in {ref.location}; run the pipeline that makes it first",
        )
    rows = SparkEngine(spark).read(ref.location, version=found[1])
    require_columns(rows, columns, where=f'{where} on "{ref.label}"')
    return rows


def standing_rows(
    spark: SparkSession,
    location: str,
    frame: DataFrame,
    *,
    keys: Sequence[str] = (),
    replaced: str = "",
) -> DataFrame | None:
    """The rows a table keeps beside a batch that replaces those of its keys or of a condition."""
    from pyspark.sql import functions as F

    found = DeltaRsEngine().identity(location)
    if found is None:
        return None
    rows = SparkEngine(spark).read(location, version=found[1])
    if replaced:
        rows = rows.filter(F.expr(f"NOT coalesce(({replaced}\n), false)"))
    if keys:
        require_columns(frame, keys, where="merge_keys", nested=False)
        pairs = [column(rows, key) == F.col(f"{_KEY}{i}") for i, key in enumerate(keys)]
        rows = rows.join(_keys(frame, keys), pairs, "left_anti")
    return rows


def with_columns(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rows of a table that may not have a column yet: it is NULL in them."""
    from pyspark.sql import functions as F

    have = {name.lower() for name in rows.columns}
    missing = [name for name in names if name.split(".")[0].lower() not in have]
    return rows.withColumns({name: F.lit(None) for name in missing if name.lower() not in have})
