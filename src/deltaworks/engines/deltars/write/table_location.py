"""Where a table is: to be opened, or made."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.log.commits import open_table
from deltaworks.engines.deltars.schemas import as_delta
from deltaworks.engines.deltars.write.write_support import refuse_properties
from deltaworks.errors import UnsupportedOperation
from deltaworks.model.table_ref import is_url
from deltaworks.storage.folders import make_folder
from deltaworks.storage.listing import fsync_commit

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable


_MISREAD = re.compile(r"[\[\]^|\\\x00-\x1f\x7f]|%[0-9A-Fa-f]{2}")
"""What delta-rs takes for something else in the name of a folder, or does not survive."""


def refuse_misread(location: str) -> None:
    """Refuse a folder that delta-rs would take for another one."""
    found = None if is_url(location) else _MISREAD.search(location)
    if found is not None:
        raise UnsupportedOperation(
            f'"{location}" has {found[0]!r} in its path, which delta-rs does not read as it is',
            hint="use a folder of another name",
        )


@dataclass(frozen=True)
class TableLocation:
    """Where a table is, and how to get there."""

    location: str
    storage_options: Mapping[str, str]

    def open(self, version: int | None = None) -> DeltaTable:
        """The table itself, its log looked at first."""
        return open_table(self.location, version, self.storage_options)

    def create(
        self,
        schema: pa.Schema,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """A new table, without rows; of two who make it at once the later fails."""
        from deltalake import CommitProperties, DeltaTable

        wanted = dict(properties or {})
        refuse_properties(wanted)
        known = {name: value for name, value in wanted.items() if name.startswith("delta.")}
        own = {name: value for name, value in wanted.items() if name not in known}
        if not is_url(self.location):
            make_folder(self.location)
        with translated(self.location):
            table = DeltaTable.create(
                self.location,
                schema=as_delta(schema),
                mode="error",
                partition_by=list(partition_by),
                configuration=known,
                storage_options=dict(self.storage_options),
                commit_properties=CommitProperties(max_commit_retries=0),
            )
            if own:  # of these delta-rs knows nothing, and in `create` it would ask for no feature
                table.alter.set_table_properties(own, raise_if_not_exists=False)
                table.update_incremental()
        for version in range(table.version() + 1):
            fsync_commit(self.location, version)
        return table
