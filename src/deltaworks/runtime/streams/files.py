"""A pipeline file as a stream: the files of a folder, in order, become epochs of its table.

Which files an epoch has is written down before it is committed, so that whoever starts again knows
what the epochs in the table have read. Numbers that are not in the table may be planned anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, field, replace
from typing import Any, TypedDict

from deltaworks.contracts.context import ProjectContext
from deltaworks.contracts.source import CanStream
from deltaworks.engines.arrow.formats import WORDS, arrow_files
from deltaworks.engines.arrow.readers import ArrowFiles
from deltaworks.engines.deltars.event_table.table import EventTable, event_schema
from deltaworks.errors import GuardError, UnsupportedOperation
from deltaworks.model.batch import FILES, Bounds, FileStamp
from deltaworks.model.epochs import EpochCommit
from deltaworks.model.results import STOPPED, SUCCEEDED
from deltaworks.model.table_ref import OWN_FOLDER, is_url
from deltaworks.pipeline.stages import Plan
from deltaworks.runtime.cancellation import CancellationToken
from deltaworks.runtime.environment import RunEnv
from deltaworks.runtime.source_bounds import source_changed
from deltaworks.runtime.streams.messages import stream_messages, unknown_epochs
from deltaworks.runtime.streams.shared_position import read_by_runs, refuse_run_before, without_read
from deltaworks.storage.engine_options import table_options
from deltaworks.storage.hive_partitions import partition_keys
from deltaworks.storage.listing import changed_file, newer_files
from deltaworks.streams.identity import Writer, plan_mark
from deltaworks.streams.opening import NewTable, StreamOptions, open_stream
from deltaworks.streams.sink import EpochSink

_COLUMNS = (
    ("writer", "text"),
    ("epoch", "number"),
    ("at", "time"),
    ("files", "text"),
)
_PLACE = {"type", "table", "path", "credential"}
_SINK_WORDS = _PLACE | {"mode", "merge_keys", "partition_by", "properties"}
_MODES = ("append", "upsert")
_Landing = Generator[tuple[EpochCommit, int]]
"""Epochs as they land, each with the number of its files."""
_WITH_SPARK = "use `deltaworks run`, which has Spark"


@dataclass(frozen=True, kw_only=True)
class StreamResult:
    """What a stream did until there was nothing new, or until it was stopped."""

    pipeline: str
    table: str
    commits: tuple[EpochCommit, ...]
    files: int
    last_epoch: int | None
    stopped: bool = False
    """Whether Ctrl-C ended it; it goes on where it stopped."""

    def to_json(self) -> dict[str, Any]:
        """A plain document for programs."""
        return {
            "pipeline": self.pipeline,
            "table": self.table,
            "status": STOPPED if self.stopped else SUCCEEDED,
            "epochs": [{"epoch": done.epoch, "version": done.version} for done in self.commits],
            "rows": sum(done.rows for done in self.commits),
            "files": self.files,
            "last_epoch": self.last_epoch,
        }


@dataclass
class _Tally:
    """What has landed so far; a stream may be stopped at any point."""

    commits: list[EpochCommit] = field(default_factory=list)
    files: int = 0
    last_epoch: int | None = None

    def add(self, commit: EpochCommit, *, files: int) -> None:
        self.commits.append(commit)
        self.files += files
        self.last_epoch = commit.epoch


class StreamRunKwargs(TypedDict, total=False):
    """What a caller may say of a stream of files in Python; see `stream_plan`."""

    files_per_epoch: int
    after_runs: bool


def stream_plan(
    plan: Plan,
    place: RunEnv,
    *,
    writer_id: str,
    files_per_epoch: int = 1,
    after_runs: bool = False,
) -> StreamResult:
    """Stream every file or message that is new; each lands once, whatever is killed in between.

    What runs of the pipeline have read is refused, or left out with `after_runs`. Ctrl-C ends it
    between two epochs: what it read for the next one is read again.
    """
    refuse_unstreamable(plan)
    tally, halt, interrupted = _Tally(), CancellationToken(), True
    options = _options(plan, place, writer_id)
    if isinstance(plan.sources[0].plugin, CanStream):
        epochs = _of_messages(plan, place, tally, options, after_runs=after_runs)
    else:
        size = files_per_epoch
        epochs = _of_files(plan, place, tally, options, after_runs=after_runs, size=size)
    with (
        halt.within(None),
        halt.handle_sigint(),
        suppress(KeyboardInterrupt),
        closing(epochs),
    ):
        for commit, files in epochs:
            tally.add(commit, files=files)
            if halt.asked:
                break
        interrupted = False
    return StreamResult(
        pipeline=plan.pipeline.name,
        table=plan.loads[0].plugin.target(place.project_ctx).label,
        commits=tuple(tally.commits),
        files=tally.files,
        last_epoch=tally.last_epoch,
        stopped=interrupted or halt.asked,
    )


def _options(plan: Plan, place: RunEnv, writer_id: str) -> StreamOptions:
    load = plan.loads[0].plugin
    words = load.document()
    return StreamOptions(
        writer_id=writer_id,
        mode=words.get("mode", "append"),
        keys=words.get("merge_keys", ()),
        lock_wait_seconds=place.config.locks.wait_seconds,
        storage_options=table_options(place.config.stores, load.target(place.project_ctx).location),
    )


def _of_files(
    plan: Plan,
    place: RunEnv,
    tally: _Tally,
    options: StreamOptions,
    *,
    after_runs: bool,
    size: int,
) -> _Landing:
    (source,), (load,) = plan.sources, plan.loads
    words, bounds = load.plugin.document(), source.plugin.bounds(place.project_ctx, None)
    if not bounds.files:
        return
    _refuse_folders(partition_keys(bounds))
    first = _in_order(bounds.files)[0]
    kind, stores = source.plugin.plugin_type(), place.config.stores
    files = arrow_files(kind, source.plugin.document(), stores)
    new = NewTable(
        schema=files.columns(first.path),
        partition_by=words.get("partition_by", ()),
        properties=words.get("properties", {}),
    )
    ref = load.plugin.target(place.project_ctx)
    with open_stream(ref, options, new_table=new, tell=place.bus.tell) as sink:
        tally.last_epoch = sink.last_committed_epoch
        book = _FilesRead.open(place, sink)
        waiting = book.unread(bounds, place.project_ctx)
        before = read_by_runs(plan, place, sink.writer.table_id)
        if after_runs:
            waiting = without_read(waiting, before)
        refuse_run_before(plan.pipeline.name, replace(bounds, files=tuple(waiting)), before)
        groups = [waiting[n : n + size] for n in range(0, len(waiting), size)]
        yield from _epochs(sink, book, groups, files, place.clock.now)


def _of_messages(
    plan: Plan, place: RunEnv, tally: _Tally, options: StreamOptions, *, after_runs: bool
) -> _Landing:
    source, ref = plan.sources[0].plugin, plan.loads[0].plugin.target(place.project_ctx)
    assert isinstance(source, CanStream)
    with open_stream(ref, options, tell=place.bus.tell) as sink:
        tally.last_epoch = sink.last_committed_epoch
        before = read_by_runs(plan, place, sink.writer.table_id)
        start = before[-1] if after_runs and before else None

        def refuse(bounds: Bounds) -> None:
            refuse_run_before(plan.pipeline.name, bounds, before)

        for commit in stream_messages(source, sink, place, start=start, look=refuse):
            yield commit, 0


def _epochs(
    sink: EpochSink[Any],
    book: _FilesRead,
    groups: Sequence[Sequence[FileStamp]],
    files: ArrowFiles,
    now: Callable[[], Any],
) -> _Landing:
    for group in groups:
        last = sink.last_committed_epoch
        epoch = 1 if last is None else last + 1
        sink.planned(book.plan(epoch, group, now()))
        for stamp in group:
            for batch in files.batches(stamp.path, into=sink.schema):
                sink.write(batch)
        _refuse_changed(group)
        yield sink.commit_epoch(epoch), len(group)


def _book(place: RunEnv) -> EventTable:
    location = f"{place.config.warehouse}/{OWN_FOLDER}/streams"
    return EventTable(location, event_schema(_COLUMNS), stores=place.config.stores)


def pages(place: RunEnv, table_id: str) -> list[dict[str, Any]]:
    """What was planned for all epochs of a table."""
    return [row for row in _book(place).read() if f":{table_id}:" in row["writer"]]


@dataclass(frozen=True)
class _FilesRead:
    """Which files the epochs of a writer have read."""

    table: EventTable
    writer: Writer
    last: int | None
    mark: int | None
    """The mark of the plan that the last epoch was made by."""

    @staticmethod
    def open(place: RunEnv, sink: EpochSink[Any]) -> _FilesRead:
        return _FilesRead(_book(place), sink.writer, sink.last_committed_epoch, sink.last_plan)

    def plan(self, epoch: int, files: Sequence[FileStamp], at: Any) -> int:
        """Write down what an epoch reads; the table does not have it yet. Answers its mark."""
        listed = [astuple(file) for file in files]
        row: dict[str, Any] = {
            "writer": self.writer.name,
            "epoch": epoch,
            "at": at,
            "files": json.dumps(listed),
        }
        self.table.append(row)
        self.table.compact()
        return plan_mark(row["files"])

    def unread(self, now: Bounds, project_ctx: ProjectContext) -> list[FileStamp]:
        """The files that no epoch of the table has; one that changed since is refused."""
        read = Bounds(kind=FILES, identity=now.identity, files=self._read())
        new = newer_files(now, read, project_ctx.root)
        if new.changed:
            raise GuardError(
                f'file "{new.changed[0]}" has changed since the stream read it',
                hint="put new rows into a file of their own",
            )
        return _in_order(new.files)

    def _read(self) -> tuple[FileStamp, ...]:
        if self.last is None:
            return ()
        planned: dict[int, tuple[Any, str]] = {}
        pages = [row for row in self.table.read() if self.writer.is_called(row["writer"])]
        for row in pages:  # what was planned last is what landed
            epoch = int(row["epoch"])
            if epoch <= self.last and (epoch not in planned or row["at"] >= planned[epoch][0]):
                planned[epoch] = (row["at"], row["files"])
        texts = [row["files"] for row in pages if int(row["epoch"]) == self.last]
        landed = [text for text in texts if self.mark in (None, plan_mark(text))]
        if not landed:
            raise unknown_epochs(self.writer, self.last)
        if self.mark is not None:
            planned[self.last] = (None, landed[0])
        return tuple(FileStamp(*one) for _, text in planned.values() for one in json.loads(text))


def _refuse_changed(files: Sequence[FileStamp]) -> None:
    """What an epoch commits is what was planned; on an object store nobody looks once more."""
    on_disk = tuple(stamp for stamp in files if not is_url(stamp.path))
    if problem := changed_file(Bounds(kind=FILES, identity="", files=on_disk)):
        raise source_changed(problem)


def _in_order(files: Sequence[FileStamp]) -> list[FileStamp]:
    """Files as they came."""
    return sorted(files, key=lambda stamp: (stamp.modified_ns, stamp.path))


def _refuse_folders(keys: Sequence[str]) -> None:
    """Columns that only the names of folders tell of would be lost."""
    if keys:
        raise UnsupportedOperation(
            f'a stream does not read "{keys[0]}" from the names of folders', hint=_WITH_SPARK
        )


def refuse_unstreamable(plan: Plan) -> None:
    """A stream has no Spark: it reads files and writes a Delta table, with nothing between."""
    hint = _WITH_SPARK
    if len(plan.sources) != 1 or len(plan.loads) != 1:
        raise UnsupportedOperation("a stream has one source and one table", hint=hint)
    if len(plan.stages) != len(plan.sources) + len(plan.loads):
        raise UnsupportedOperation("a stream has no transforms and no checks", hint=hint)
    (source,), (load,) = plan.sources, plan.loads
    kind, words = source.plugin.plugin_type(), load.plugin.document()
    streams = isinstance(source.plugin, CanStream)
    if not (streams or kind in WORDS) or load.plugin.plugin_type() != "delta":
        raise UnsupportedOperation(
            f"a stream reads messages or {', '.join(WORDS)} files into a Delta table, "
            f"not {kind} into {load.plugin.plugin_type()}",
            hint=hint,
        )
    unknown = {*words} - _SINK_WORDS
    if isinstance(source.plugin, CanStream):
        unknown |= {source.plugin.why_not_streamed()} - {""}
    else:
        unknown |= {*source.plugin.document()} - WORDS[kind]
    if unknown:
        raise UnsupportedOperation(f'a stream does not know "{min(unknown)}"', hint=hint)
    if words.get("mode", "append") not in _MODES:
        raise UnsupportedOperation(f'a stream has no mode "{words["mode"]}"', hint=hint)
