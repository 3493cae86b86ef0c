"""Rows that a table of our own held at an older version, appended to it once more; no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.schemas import arrow_table
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.redact import safe_json
from deltaworks.storage.durability import make_durable

if TYPE_CHECKING:
    import pyarrow as pa


def rows_at(location: str, where: str, *, version: int, stores: Stores = NO_STORES) -> pa.Table:
    """The rows that a condition covers, as a version of the table has them."""
    from deltalake import QueryBuilder

    table = DeltaRsEngine(stores).open(location, version)
    with translated(location):
        sql = f"SELECT * FROM t WHERE {where}"  # noqa: S608 - our own words
        return arrow_table(QueryBuilder().register("t", table).execute(sql))


def return_rows(
    location: str,
    where: str,
    *,
    version: int,
    key: str,
    note: Mapping[str, Any],
    stores: Stores = NO_STORES,
) -> int:
    """Append such rows, in a commit that carries a key; with the same key it happens once."""
    from deltalake import CommitProperties, Transaction, write_deltalake

    rows = rows_at(location, where, version=version, stores=stores)
    table = DeltaRsEngine(stores).open(location)
    with translated(location):
        if table.transaction_version(key) is not None or not rows.num_rows:
            return 0
        properties = CommitProperties(
            custom_metadata={"userMetadata": safe_json(dict(note))},
            app_transactions=[Transaction(key, 1)],
        )
        write_deltalake(
            table, rows, mode="append", schema_mode="merge", commit_properties=properties
        )
        table.update_incremental()
        make_durable(location, table.version())
    return int(rows.num_rows)
