"""Answers to queries over several tables, by delta-rs or by Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from deltaworks.config.object_stores import Stores
from deltaworks.contracts.engine import CanRead
from deltaworks.engines.deltars.read.scan import Readable, query_tables, readable
from deltaworks.errors import EngineError, UnsupportedOperation
from deltaworks.model.table_ref import TableRef
from deltaworks.tables.query import NamedTable, Query
from deltaworks.tables.rows import DELTA_RS, NO_ENGINE_HELPS, SPARK, RowsRead, limited


def answer_by_deltars(
    query: Query, refs: Mapping[str, TableRef], *, stores: Stores, limit: int | None
) -> RowsRead:
    """What DataFusion answers; refused where Spark may read other rows of a table."""
    found = {name: _readable(ref, stores) for name, ref in refs.items()}
    places = {name: f"table_{n}" for n, name in enumerate(found)}
    text = query.over(lambda table: found[table.name].relation(places[table.name]), quote='"')
    rows = query_tables(
        text,
        {places[name]: table for name, table in found.items()},
        limit=None if limit is None else limit + 1,
    )
    versions = {name: table.table.version() for name, table in found.items()}
    return limited(rows, limit, engine=DELTA_RS, versions=versions)


def answer_by_spark(
    query: Query,
    refs: Mapping[str, TableRef],
    *,
    spark: Callable[[], CanRead],
    limit: int | None,
) -> RowsRead:
    """What Spark answers, each table at one version unless the query says which."""
    engine = spark()
    versions = {
        name: engine.history(ref.location, limit=1)[0].version for name, ref in refs.items()
    }

    def relation(table: NamedTable) -> str:
        version = "" if table.is_pinned else f" VERSION AS OF {versions[table.name]}"
        return f"delta.`{refs[table.name].location.replace('`', '``')}`{version}"

    text = query.over(relation, quote="`")
    rows = engine.query(text, limit=None if limit is None else limit + 1)
    return limited(rows, limit, engine=SPARK, versions=versions)


def _readable(ref: TableRef, stores: Stores) -> Readable:
    try:
        return readable(ref.location, None, stores)
    except NO_ENGINE_HELPS:
        raise
    except EngineError as error:
        raise UnsupportedOperation(
            error.message.replace(ref.location, ref.label),
            hint="use --engine spark; the query must be in Spark's SQL then",
        ) from error
