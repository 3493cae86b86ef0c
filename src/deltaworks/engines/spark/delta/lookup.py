"""Rows looked up in another table, and the rows of a table that a batch does not replace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.contracts.context import RunContext
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.spark.delta.tables import SparkEngine
from deltaworks.engines.spark.frames.columns import column, require_columns
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


def looked_up(ctx: RunContext, ref: TableRef, columns: Sequence[str], *, where: str) -> DataFrame:
    """A table at the version pinned for the batch, or as it is; it must have these columns."""
    found = DeltaRsEngine(ctx.project_ctx.stores).identity(ref.location)
    if found is None:
        raise TableNotFound(
            f'"{ref.label}" is not a Delta table',
            hint=f"looked in {ref.location}; run the pipeline that makes it first",
        )
    version = ctx.pinned.get(ref.location, found[1])
    rows = SparkEngine(ctx.spark).read(ref.location, version=version)
    require_columns(rows, columns, where=f'{where} on "{ref.label}"')
    return rows


def standing_rows(
    spark: SparkSession,
    location: str,
    frame: DataFrame,
    *,
    keys: Sequence[str] = (),
    replaced: str = "",
    stores: Stores = NO_STORES,
) -> DataFrame | None:
    """The rows a table keeps beside a batch that replaces those of its keys or of a condition."""
    from pyspark.sql import functions as F

    found = DeltaRsEngine(stores).identity(location)
    if found is None:
        return None
    rows = SparkEngine(spark).read(location, version=found[1])
    if replaced:
        rows = rows.filter(F.expr(f"NOT coalesce(({replaced}\n), false)"))
    if keys:
        require_columns(frame, keys, where="merge_keys", nested=False)
        rows = same_keys(rows, frame, keys, there=False)
    return rows


def same_keys(
    rows: DataFrame, others: DataFrame, keys: Sequence[str], *, there: bool = True
) -> DataFrame:
    """The rows whose keys are there in others, or are not."""
    from pyspark.sql import functions as F

    pairs = [column(rows, key) == F.col(f"{_KEY}{i}") for i, key in enumerate(keys)]
    return rows.join(_keys(others, keys), pairs, "left_semi" if there else "left_anti")


def repeated(
    lands: DataFrame, stays: DataFrame | None, columns: Sequence[str]
) -> tuple[DataFrame, dict[str, str]]:
    """Values that rows share once they have landed, and what they are called by column."""
    from pyspark.sql import functions as F

    names = {name: f"{_KEY}{i}" for i, name in enumerate(columns)}
    mine = _keys(lands, columns)
    twice = mine.groupBy(*names.values()).count().filter("count > 1").drop("count")
    if stays is None:
        return twice, names
    others = _keys(with_columns(stays, columns), columns)
    others = others.toDF(*[f"{name}_stays" for name in names.values()])
    equal = [F.col(name).eqNullSafe(F.col(f"{name}_stays")) for name in names.values()]
    return twice.unionByName(mine.join(others, equal, "left_semi")), names


def with_columns(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rows of a table that may not have a column yet: it is NULL in them."""
    from pyspark.sql import functions as F

    have = {name.lower() for name in rows.columns}
    missing = [name for name in names if name.split(".")[0].lower() not in have]
    return rows.withColumns({name: F.lit(None) for name in missing if name.lower() not in have})
