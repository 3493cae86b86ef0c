"""Append-only event tables of our own: small rows, committed in milliseconds, no JVM.

Every command writes some, so they are made and read in ways for which Arrow needs no pandas:
that alone would take longer to load than all else here.
"""

from __future__ import annotations

import fcntl
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.schemas import arrow_table
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.deltars.text import text
from deltaworks.engines.deltars.write.statistics import writer_properties
from deltaworks.errors import CommitConflict, TableNotFound
from deltaworks.model.commit import Txn
from deltaworks.model.table_ref import is_url
from deltaworks.storage.durability import make_durable
from deltaworks.storage.engine_options import table_options
from deltaworks.storage.folders import make_folder, refuse_unwritable

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

    from deltaworks.engines.deltars.event_table.on_objects import ObjectEvents

_MAX_FILES = 64
_CHECKPOINT_EVERY = "20"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EventTable:
    """One event table, held open so that what was read is what is added to."""

    def __init__(self, location: str, schema: pa.Schema, *, stores: Stores = NO_STORES) -> None:
        self.location = location
        self.schema = schema
        self._engine = DeltaRsEngine(stores)
        self._table: DeltaTable | None = None

    @cached_property
    def _objects(self) -> ObjectEvents | None:
        """The table by way of its objects, where it has such a log."""
        if not is_url(self.location):
            return None
        from deltaworks.engines.deltars.event_table.on_objects import ObjectEvents
        from deltaworks.engines.deltars.log.object_tail import object_log

        log = object_log(self.location, self._engine.stores)
        if log is None:
            return None
        return ObjectEvents(
            log,
            open_or_none=lambda: self._engine.open_or_none(self.location),
            open_or_create=self._open_or_create,
        )

    @property
    def table_id(self) -> str:
        """The table's own id, which no other table will ever have."""
        if self._objects is not None:
            return self._objects.seen().table_id
        return str(self._handle().metadata().id)

    def exists(self) -> bool:
        """Whether anything was ever recorded here."""
        if self._objects is not None:
            return self._objects.look() is not None
        return self._engine.identity(self.location) is not None

    def read(self, **equals: str) -> list[dict[str, Any]]:
        """Events whose columns have the given values, as they are now, in no order.

        A table that was never written has none, and is not made.
        """
        if self._objects is not None:
            found = self._objects.rows(equals)
            rows = [] if found is None else _as_rows(found.cast(self.schema))
            return [row for row in rows if equals.items() <= row.items()]
        return self._queried(equals) if self.exists() else []

    def _queried(self, equals: Mapping[str, str]) -> list[dict[str, Any]]:
        from deltalake import QueryBuilder

        with translated(self.location):
            table = self._handle()
            table.update_incremental()
            where = " AND ".join(f"{name} = {text(value)}" for name, value in equals.items())
            query = f"SELECT * FROM t WHERE {where or 'true'}"  # noqa: S608 - our own words
            answer = QueryBuilder().register("t", table).execute(query)
            return _as_rows(arrow_table(answer).cast(self.schema))

    def append(self, row: Mapping[str, Any], *, txn: Txn | None = None) -> None:
        """Add one event from the handle last read; a second writer with this txn fails."""
        data = _as_table(row, self.schema)
        if self._objects is not None:
            self._objects.append(data, txn)
            return
        refuse_unwritable(self.location)
        self._write(data, txn)

    def _write(self, data: pa.Table, txn: Txn | None) -> None:
        from deltalake import CommitProperties, Transaction, write_deltalake

        properties = None
        if txn is not None:
            properties = CommitProperties(
                app_transactions=[Transaction(txn.app_id, txn.version)], max_commit_retries=15
            )
        table = self._handle()
        before = table.version()
        with translated(self.location):
            write_deltalake(
                table,
                data,
                mode="append",
                writer_properties=writer_properties(self.schema),
                commit_properties=properties,
            )
            table.update_incremental()
        make_durable(self.location, before + 1)

    def compact(self) -> None:
        """Join small files when there are many, so that reading stays quick."""
        if self._objects is not None:
            self._objects.join(_MAX_FILES)
            return
        table = self._handle()
        if len(table.file_uris()) <= _MAX_FILES:
            return
        with translated(self.location), _alone(self.location):
            table.update_incremental()  # of two who join the same files, both would succeed
            if len(table.file_uris()) > _MAX_FILES:
                table.optimize.compact(writer_properties=writer_properties(self.schema))
                table.update_incremental()
                table.create_checkpoint()
                make_durable(self.location, table.version())

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


def _as_table(row: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """One row, by way of JSON."""
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    line = json.dumps(dict(row), default=_moment, ensure_ascii=False).encode()
    return read_json(
        io.BytesIO(line),
        read_options=ReadOptions(use_threads=False, block_size=len(line) + 1),
        parse_options=ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _as_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with timestamps as Python has them, by way of numbers."""
    import pyarrow as pa
    import pyarrow.types as kinds

    columns = []
    for column in table.columns:
        if kinds.is_timestamp(column.type):
            counted = column.cast(pa.int64()).to_pylist()
            columns.append(
                [None if n is None else _EPOCH + timedelta(microseconds=n) for n in counted]
            )
        else:
            columns.append(column.to_pylist())
    return [
        dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)
    ]


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


def event_schema(fields: Sequence[tuple[str, str]]) -> pa.Schema:
    """A schema from names and Arrow type names; times are UTC."""
    import pyarrow as pa

    kinds = {"text": pa.string(), "number": pa.int64(), "time": pa.timestamp("us", tz="UTC")}
    return pa.schema([pa.field(name, kinds[kind]) for name, kind in fields])
