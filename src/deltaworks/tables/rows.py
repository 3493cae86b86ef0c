"""Rows of a table: read by delta-rs where it reads what Spark reads, by Spark otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deltaworks.config.object_stores import Stores
from deltaworks.contracts.engine import CanRead
from deltaworks.contracts.expression import columns_of, expression_problem
from deltaworks.engines.deltars.read.scan import scan_rows
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import (
    ConfigError,
    DamagedTable,
    EngineError,
    StorageError,
    TableNotFound,
    UnsupportedTable,
    VersionNotFound,
)
from deltaworks.model.schema import Schema
from deltaworks.model.selection import Selection
from deltaworks.model.table_ref import TableRef
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

DELTA_RS, SPARK = "delta-rs", "spark"
NO_ENGINE_HELPS = (DamagedTable, StorageError, TableNotFound, UnsupportedTable, VersionNotFound)


@dataclass(frozen=True, kw_only=True)
class RowsRead:
    """Rows, and how they were read."""

    rows: pa.Table
    engine: str
    versions: dict[str, int]
    """The version of each table, by name."""
    more: bool = False
    """Whether there are more rows than were asked for."""


def read_rows(
    ref: TableRef, selection: Selection, *, stores: Stores, spark: Callable[[], CanRead]
) -> RowsRead:
    """The chosen rows of a table; one more than the limit is read to know whether there are."""
    if selection.where and (problem := expression_problem(selection.where)):
        raise ConfigError(f"condition {problem}")
    try:
        info = DeltaRsEngine(stores).info(ref.location, version=selection.version)
    except NO_ENGINE_HELPS:
        raise
    except EngineError:
        return _by_spark(ref, selection, spark())
    if info is None:
        raise TableNotFound(f'"{ref.label}" is not a Delta table', hint=f"looked in {ref.location}")
    chosen = replace(checked(selection, info.schema), version=info.version)
    try:
        rows = scan_rows(ref.location, _one_more(chosen), stores)
    except NO_ENGINE_HELPS:
        raise
    except EngineError:
        return _by_spark(ref, chosen, spark())
    return limited(rows, chosen.limit, engine=DELTA_RS, versions={ref.label: info.version})


def limited(
    rows: pa.Table, limit: int | None, *, engine: str, versions: dict[str, int]
) -> RowsRead:
    """The first rows of those that were read."""
    more = limit is not None and rows.num_rows > limit
    kept = rows.slice(0, limit) if more else rows
    return RowsRead(rows=kept, engine=engine, versions=versions, more=more)


def checked(selection: Selection, schema: Schema) -> Selection:
    """A selection with columns as the table spells them; refused when the table has no such."""
    names = {name.lower(): name for name in schema.columns}
    for name in (*selection.columns, *_columns_in(selection.where)):
        if name.lower() not in names:
            raise ConfigError(
                f'the table has no column "{name}"', hint=did_you_mean(name, names.values())
            )
    return replace(selection, columns=tuple(names[name.lower()] for name in selection.columns))


def _columns_in(where: str) -> tuple[str, ...]:
    """The columns that a condition names; none where it may name variables of its own."""
    if not where or "->" in where:
        return ()
    return tuple(qualifier or name for qualifier, name in columns_of(where))


def _by_spark(ref: TableRef, selection: Selection, engine: CanRead) -> RowsRead:
    version = selection.version
    if version is None:
        version = engine.history(ref.location, limit=1)[0].version
    rows = engine.rows(ref.location, _one_more(replace(selection, version=version)))
    return limited(rows, selection.limit, engine=SPARK, versions={ref.label: version})


def _one_more(selection: Selection) -> Selection:
    return selection if selection.limit is None else replace(selection, limit=selection.limit + 1)
