"""Setting a table back without a JVM, where its features allow it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.deltars.write.epoch_table import RESTORED
from deltaworks.errors import CommitConflict
from deltaworks.model.table_info import TableInfo
from deltaworks.redact import safe_json
from deltaworks.storage.durability import make_durable

_PLAIN_FEATURES = frozenset(
    {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}
)
_PLAIN_READER, _PLAIN_WRITER = 1, 4


def can_restore(table: TableInfo) -> bool:
    """Whether the table has nothing that delta-rs would have to know to set it back."""
    if table.features:
        return set(table.features) <= _PLAIN_FEATURES
    return table.reader_version <= _PLAIN_READER and table.writer_version <= _PLAIN_WRITER


def restore(
    location: str, version: int, *, base: int, note: Mapping[str, Any], stores: Stores = NO_STORES
) -> int:
    """Make the table what it was at a version, in one commit; answers that commit's version.

    The commit comes right after the version that the caller saw, or not at all: what somebody else
    committed meanwhile would be set back with the rest, and nobody would have said so.
    """
    from deltalake import CommitProperties, Transaction

    table = DeltaRsEngine(stores, only_sure=True).open(location)
    if table.version() != base:
        raise CommitConflict(f'"{location}" was changed meanwhile', hint="look, and try again")
    with translated(location):
        properties = CommitProperties(
            custom_metadata={"userMetadata": safe_json(dict(note))},
            app_transactions=[Transaction(RESTORED, base)],  # streams look for it
            max_commit_retries=0,
        )
        table.restore(version, commit_properties=properties)
        table.update_incremental()
        make_durable(location, table.version())
        return table.version()
