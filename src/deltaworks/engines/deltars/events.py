"""Append-only event tables of our own: small rows, committed in milliseconds, no JVM."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.object_stores import table_options
from deltaworks.errors import CommitConflict, StorageError, TableNotFound
from deltaworks.model.commit import Txn
from deltaworks.model.table_ref import is_url

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

_MOST_FILES = 64
_CHECKPOINT_EVERY = "20"
_LEAST_FREE_BYTES = 256 * 1024


class EventTable:
    """One event table, held open so that what was read is what is added to."""

    def __init__(self, location: str, schema: pa.Schema, *, stores: Stores = NO_STORES) -> None:
        self.location = location
        self.schema = schema
        self._engine = DeltaRsEngine(stores)
        self._table: DeltaTable | None = None

    @property
    def table_id(self) -> str:
        """The table's own id, which no other table will ever have."""
        return str(self._handle().metadata().id)

    def exists(self) -> bool:
        """Whether anything was ever recorded here."""
        return self._engine.identity(self.location) is not None

    def read(self, **equals: str) -> list[dict[str, Any]]:
        """Events whose columns have the given values, as they are now."""
        with translated(self.location):
            table = self._handle()
            table.update_incremental()
            filters = [(name, "=", value) for name, value in equals.items()] or None
            rows: list[dict[str, Any]] = table.to_pyarrow_table(filters=filters).to_pylist()
            return rows

    def append(self, row: Mapping[str, Any], *, txn: Txn | None = None) -> None:
        """Add one event from the handle last read; a second writer with this txn fails."""
        import pyarrow as pa
        from deltalake import CommitProperties, Transaction, write_deltalake

        properties = None
        if txn is not None:
            properties = CommitProperties(
                app_transactions=[Transaction(txn.app_id, txn.version)], max_commit_retries=15
            )
        data = pa.Table.from_pylist([dict(row)], schema=self.schema)
        refuse_full_disk(self.location)
        table = self._handle()
        with translated(self.location):
            write_deltalake(table, data, mode="append", commit_properties=properties)
            table.update_incremental()

    def compact(self) -> None:
        """Join small files when there are many, so that reading stays quick."""
        table = self._handle()
        if len(table.file_uris()) <= _MOST_FILES:
            return
        with translated(self.location), _alone(self.location):
            table.update_incremental()  # of two who join the same files, both would succeed
            if len(table.file_uris()) > _MOST_FILES:
                table.optimize.compact()
                table.create_checkpoint()
                table.update_incremental()

    def _handle(self) -> DeltaTable:
        if self._table is None:
            self._table = self._open_or_create()
        return self._table

    def _open_or_create(self) -> DeltaTable:
        with suppress(TableNotFound):
            return self._engine.open(self.location)
        if not is_url(self.location):
            make_folder(self.location)
        with translated(self.location), _alone(self.location):
            with suppress(TableNotFound):  # another run made it in the meantime
                return self._engine.open(self.location)
            try:
                return self._create()
            except CommitConflict:  # there is no lock on an object store, only one first commit
                return self._engine.open(self.location)

    def _create(self) -> DeltaTable:
        from deltalake import CommitProperties, DeltaTable

        with translated(self.location):
            return DeltaTable.create(
                self.location,
                schema=self.schema,
                mode="error",
                configuration={"delta.checkpointInterval": _CHECKPOINT_EVERY},
                storage_options=table_options(self._engine.stores, self.location) or None,
                # Tried again, the later of two makers would put its table over the other's.
                commit_properties=CommitProperties(max_commit_retries=0),
            )


@contextmanager
def _alone(location: str) -> Iterator[None]:
    """One at a time: of two makers the later would replace the table, of two joiners both land."""
    if is_url(location):
        yield
        return
    path = Path(location)
    with path.with_name(f".{path.name}.lock").open("a", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def refuse_full_disk(location: str) -> None:
    """delta-rs panics, on the user's screen, when a disk fills up under it."""
    if is_url(location):
        return
    place = next((p for p in (Path(location), *Path(location).parents) if p.exists()), None)
    if place is not None and shutil.disk_usage(place).free < _LEAST_FREE_BYTES:
        raise StorageError(
            f'no space left on the disk of "{location}"', hint="free some space and run it again"
        )


def make_folder(location: str) -> None:
    """Make a table's folder, or say why it cannot be made."""
    try:
        Path(location).mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StorageError(
            f'"{location}" cannot be made: {problem.strerror}',
            hint="give this user the right to write in the warehouse, or choose another one",
        ) from problem


def event_schema(fields: Sequence[tuple[str, str]]) -> pa.Schema:
    """A schema from names and Arrow type names; times are UTC."""
    import pyarrow as pa

    kinds = {"text": pa.string(), "number": pa.int64(), "time": pa.timestamp("us", tz="UTC")}
    return pa.schema([pa.field(name, kinds[kind]) for name, kind in fields])
