"""Rows of small tables of our own, asked for in SQL; no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.schemas import arrow_table
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.redact import safe_json
from deltaworks.storage.durability import make_durable


def query_rows(
    location: str,
    columns: str,
    *,
    where: str,
    rest: str = "",
    version: int | None = None,
    stores: Stores = NO_STORES,
) -> list[dict[str, Any]]:
    """Columns of the rows that a condition covers; foreign words in it went through `text`."""
    from deltalake import QueryBuilder

    table = DeltaRsEngine(stores).open(location, version)
    with translated(location):
        sql = f"SELECT {columns} FROM t WHERE {where} {rest}"  # noqa: S608 - our own words
        answer = QueryBuilder().register("t", table).execute(sql)
        return arrow_table(answer).to_pylist()  # type: ignore[no-any-return]


def delete_rows(
    location: str, where: str, *, note: Mapping[str, Any], stores: Stores = NO_STORES
) -> int:
    """Remove rows and say why in the commit; answers how many."""
    from deltalake import CommitProperties

    from deltaworks.engines.deltars.write.int96_timestamps import refuse_misread

    table = DeltaRsEngine(stores).open(location)
    refuse_misread(table, location)
    properties = CommitProperties(custom_metadata={"userMetadata": safe_json(dict(note))})
    with translated(location):
        done = table.delete(where, commit_properties=properties)
    make_durable(location, table.version())
    return int(done["num_deleted_rows"])
