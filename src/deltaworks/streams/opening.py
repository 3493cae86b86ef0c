"""Opens a stream: the table, made if it is not there, the writer's lock, what a crash left."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from deltaworks.engines.commit_protocol import require_stream
from deltaworks.engines.deltars.log.commits import check_log, refuse_disputed
from deltaworks.engines.deltars.schemas import delta_schema, refuse_nameless_types
from deltaworks.engines.deltars.write.data_files import DataFolder
from deltaworks.engines.deltars.write.epoch_table import EpochTable
from deltaworks.engines.deltars.write.table_location import TableLocation, refuse_misread
from deltaworks.engines.deltars.write.write_support import (
    PARTITION_TYPES,
    SPARK_CAN,
    refuse_unwritable,
)
from deltaworks.errors import (
    CommitConflict,
    ConfigError,
    SchemaMismatch,
    TableNotFound,
    UnsupportedOperation,
)
from deltaworks.model.epochs import Limits
from deltaworks.model.events import Event, Warned
from deltaworks.model.table_ref import TableRef, absolute, is_url
from deltaworks.storage.locks.file_lock import compaction_lock, locked, table_lock, writer_lock
from deltaworks.streams.commit_rows import AppendLanding, Landing, ReplaceLanding, Spool
from deltaworks.streams.identity import Writer, fence, position_of, refuse_writer_id, writer_of
from deltaworks.streams.maintenance import Maintenance, MaintenancePlan
from deltaworks.streams.merge_rows import MergeLanding, refuse_rewriting
from deltaworks.streams.os_errors import plainly
from deltaworks.streams.rows import Fitting
from deltaworks.streams.sink import EpochSink
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

Mode = Literal["append", "overwrite_partitions", "upsert", "changelog"]
Evolution = Literal["refuse", "add_columns"]
MODES: tuple[Mode, ...] = ("append", "overwrite_partitions", "upsert", "changelog")


@dataclass(frozen=True, kw_only=True)
class NewTable:
    """The table to make when there is none."""

    schema: pa.Schema | None = None
    partition_by: Sequence[str] = ()
    properties: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """How a stream is written."""

    writer_id: str
    mode: Mode = "append"
    keys: Sequence[str] = ()
    sequence_by: str = ""
    op_column: str = ""
    allow_gaps: bool = False
    evolution: Evolution = "refuse"
    limits: Limits = field(default_factory=Limits)
    upkeep: MaintenancePlan = field(default_factory=MaintenancePlan)
    storage_options: Mapping[str, str] = field(default_factory=dict)
    lock_wait_seconds: float = 30.0


class StreamKwargs(TypedDict, total=False):
    """The same, as keywords of a call."""

    mode: Mode
    keys: Sequence[str]
    sequence_by: str
    op_column: str
    allow_gaps: bool
    evolution: Evolution
    limits: Limits
    upkeep: MaintenancePlan
    storage_options: Mapping[str, str]
    lock_wait_seconds: float


def stream_into(
    path: str, *, writer_id: str, new_table: NewTable | None = None, **options: Unpack[StreamKwargs]
) -> EpochSink[Any]:
    """A sink for the table at a path or address, without a project."""
    location = absolute(path, root=Path.cwd())
    wanted = StreamOptions(writer_id=writer_id, **options)
    return open_stream(TableRef(location, location), wanted, new_table=new_table)


def open_stream(
    ref: TableRef,
    options: StreamOptions,
    *,
    new_table: NewTable | None = None,
    tell: Callable[[Event], None] = lambda _: None,
) -> EpochSink[Any]:
    """A sink for one table; closing it lets the writer's name go."""
    refuse_writer_id(options.writer_id)
    _refuse_options(options)
    refuse_misread(ref.location)
    place = TableLocation(ref.location, dict(options.storage_options))
    locks = _Locks(ref.location, options)
    with plainly(ref.location), ExitStack() as stack:
        stack.enter_context(locks.own())
        handle = _opened(place, ref, new_table or NewTable(), locks)
        require_stream(ref.location, handle, options.storage_options)
        only_adds = options.writer_id if options.mode == "append" else ""
        table = EpochTable(place, handle, only_adds=only_adds)
        refuse_disputed(ref.location, check_log(ref.location))
        refuse_unwritable(table.table, label=ref.label, only_adds=options.mode == "append")
        writer = writer_of(table, options.writer_id, stream=ref.label)
        _clean(table, writer, table.folder())
        fitting = _fitting(table, options, ref.label)
        sink: EpochSink[Any] = EpochSink(
            table=table,
            writer=writer,
            position=position_of(writer, table),
            landing=_landing(table, writer, options, fitting),
            limits=options.limits,
            upkeep=_upkeep(table, options, locks, ref.label, tell),
            shared_lock=locks.shared,
            allow_gaps=options.allow_gaps,
            tell=tell,
            on_close=stack.pop_all().close,
        )
    if options.evolution == "add_columns":
        fitting.grow = sink.grow
    return sink


class _Locks:
    """The table's lock, shared for a commit, and the writer's own; none on an object store."""

    def __init__(self, location: str, options: StreamOptions) -> None:
        self._location = location
        self._folder = location if is_url(location) else os.path.realpath(location)
        self._writer_id = options.writer_id
        self._wait_seconds = options.lock_wait_seconds

    def own(self) -> AbstractContextManager[object]:
        """Nobody else writes under this name meanwhile."""
        return self._held(writer_lock(self._folder, self._writer_id), wait_seconds=0)

    def shared(self) -> AbstractContextManager[object]:
        """Nobody writes the table with Spark meanwhile; others like us may."""
        path = table_lock(self._location)
        return self._held(path, wait_seconds=self._wait_seconds, shared=True)

    def joining(self) -> AbstractContextManager[object]:
        """Nobody else joins files of the table meanwhile; whoever would have to wait does not."""
        return self._held(compaction_lock(self._folder), wait_seconds=0)

    def alone(self) -> AbstractContextManager[object]:
        """Nobody else makes the table meanwhile."""
        return self._held(table_lock(self._location), wait_seconds=self._wait_seconds)

    def _held(
        self, path: Path, *, wait_seconds: float, shared: bool = False
    ) -> AbstractContextManager[object]:
        if is_url(self._location):
            return nullcontext()
        return locked([path], wait_seconds=wait_seconds, notify=_silent, shared=shared)


def _silent(_: str) -> None:
    """Say nothing."""


def _refuse_options(options: StreamOptions) -> None:
    if options.mode not in MODES:
        raise ConfigError(
            f'there is no mode "{options.mode}"', hint=f"there are {', '.join(MODES)}"
        )
    by_key = options.mode in ("upsert", "changelog")
    if by_key and not options.keys:
        raise ConfigError(f'mode "{options.mode}" needs keys', hint='name them: keys=["id"]')
    if options.keys and not by_key:
        raise ConfigError(f'mode "{options.mode}" has no keys', hint='use mode="upsert"')
    if options.op_column and options.mode != "changelog":
        raise ConfigError("op_column is for changelogs", hint='use mode="changelog"')


def _opened(place: TableLocation, ref: TableRef, new: NewTable, locks: _Locks) -> Any:
    try:
        return place.open()
    except TableNotFound:
        if new.schema is None:
            raise TableNotFound(
                f'"{ref.label}" is not a Delta table',
                hint="give a schema, and it is made; looked in " + ref.location,
            ) from None
    _refuse_shape(new.schema, new.partition_by)
    with locks.alone():
        with suppress(TableNotFound):  # somebody else may have made it meanwhile
            return place.open()
        try:
            return place.create(
                new.schema, partition_by=new.partition_by, properties=new.properties
            )
        except CommitConflict:  # nobody is alone on an object store
            return place.open()


def _refuse_shape(schema: pa.Schema, partition_by: Sequence[str]) -> None:
    """Refuse a table that could be made, and not be written by a stream afterwards."""
    fields = json.loads(delta_schema(schema).document)["fields"]
    kinds = {field["name"]: field["type"] for field in fields}
    refuse_nameless_types(schema)
    if not kinds:
        raise SchemaMismatch("a table needs columns", hint="give a schema that has some")
    for name in partition_by:
        if name not in kinds:
            hint = did_you_mean(name, list(kinds)) or f"there are {', '.join(kinds)}"
            raise ConfigError(f'the schema has no column "{name}" to partition by', hint=hint)
        if kinds[name] not in PARTITION_TYPES:
            raise UnsupportedOperation(
                f'a stream cannot partition by "{name}", which is {kinds[name]}', hint=SPARK_CAN
            )


def _prefix(writer: Writer) -> str:
    return f"stream.{writer.writer_id}."


def _clean(table: EpochTable, writer: Writer, folder: DataFolder) -> None:
    """Remove files that an earlier session of this writer wrote and never committed."""
    table.remove_drafts()
    unused = set(folder.names(_prefix(writer))) - table.files()
    if not unused:
        return
    left = sorted(unused - folder.committed_names())
    if left and is_url(table.location):  # no lock there: a session that lives on must not use them
        note = {"stream": writer.stream, "writer": writer.writer_id, "fence": secrets.token_hex(4)}
        stop = fence(writer, position_of(writer, table), seen=table.version)
        table.append((), stop, note)
        left = sorted(set(left) - folder.committed_names())
    folder.delete(left)


def _fitting(table: EpochTable, options: StreamOptions, label: str) -> Fitting:
    deletes = options.mode == "changelog"  # of which only the keys need to be there
    folders = () if options.mode == "append" else table.partition_columns
    fitting = Fitting(
        table.arrow_schema(), table.schema(), label=label, allow_null=deletes, folders=folders
    )
    _refuse_columns(fitting, options, label)
    return fitting


def _landing(
    table: EpochTable, writer: Writer, options: StreamOptions, fitting: Fitting
) -> Landing[Any]:
    if options.mode == "append":
        prefix = f"{_prefix(writer)}{secrets.token_hex(8)}."
        return AppendLanding(table.folder(), fitting, table.partition_columns, prefix)
    spool = Spool(hashlib.sha256(writer.name.encode()).hexdigest()[:20])
    if options.mode == "overwrite_partitions":
        return ReplaceLanding(spool, fitting, table.partition_columns)
    refuse_rewriting(table)
    return MergeLanding(
        spool,
        fitting,
        options.keys,
        partition_columns=table.partition_columns,
        sequence_by=options.sequence_by,
        op_column=options.op_column,
        changelog=options.mode == "changelog",
    )


def _refuse_columns(fitting: Fitting, options: StreamOptions, label: str) -> None:
    """Columns that the options name must be there."""
    names = fitting.schema.names
    wanted = [*options.keys]
    if options.mode == "upsert" and options.sequence_by:
        wanted.append(options.sequence_by)
    for name in wanted:
        if name not in names:
            hint = did_you_mean(name, names) or f"it has {', '.join(names)}"
            raise ConfigError(f'"{label}" has no column "{name}"', hint=hint)
        kind = fitting.schema.field(name).type
        if kind.num_fields:
            raise ConfigError(
                f'"{name}" of "{label}" is {kind}, which cannot be compared',
                hint="name columns of plain values",
            )


def _upkeep(
    table: EpochTable,
    options: StreamOptions,
    locks: _Locks,
    label: str,
    tell: Callable[[Event], None],
) -> Maintenance:
    def warn(message: str) -> None:
        tell(Warned(run_id=options.writer_id, pipeline=label, message=message))

    return Maintenance(
        table, options.upkeep, shared_lock=locks.shared, compaction_lock=locks.joining, warn=warn
    )
