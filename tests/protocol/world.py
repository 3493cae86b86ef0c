"""A warehouse in memory, on which the real runtime works: its runs, restores, undos and replays.

Only the engines are replaced: tables are lists of commits, the ledger a list of events and the
quarantine a list of snapshots. Each change of one of them is an effect, and a process may die
before any effect. A world is a value, so that all that can happen to it can be tried.

The pipeline reads two sources piece by piece: files `f1, f2, ...`, known one by one, and
positions `p1, p2, ...`, known by how far they were read. A check refuses `f2`.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from deltaworks.contracts.context import BatchWrite, RunContext
from deltaworks.errors import EngineError, GuardError, QualityError, UnsupportedOperation
from deltaworks.model.batch import FILES, VERSION, Bounds, FileStamp, Replay
from deltaworks.model.commit import CommitInfo, SinkState, UndoInfo
from deltaworks.model.results import BatchResult
from deltaworks.model.table_info import CommitRecord
from deltaworks.model.table_ref import TableRef
from deltaworks.pipeline.stages import Extract, Load, Plan
from deltaworks.redact import safe_json
from deltaworks.runtime.batch.attempt import Attempt
from deltaworks.runtime.ledger.evidence import Writer, note_of
from deltaworks.runtime.ledger.state import DONE, BatchEntry, LedgerState
from deltaworks.runtime.ledger.table import Ledger
from deltaworks.runtime.ledger.table import replay as fold
from deltaworks.runtime.quarantine.replay import ReplayPath
from deltaworks.runtime.quarantine.table import SINK, Choice, Quarantine
from deltaworks.runtime.recovery.restore import restore_table
from deltaworks.runtime.recovery.undo import undo_run
from deltaworks.runtime.runs.runner import RunOptions, _Run

REFUSED = "f2"
FOLDER = "folder"
"""The mode of a sink that is no Delta table; it appends."""
SOURCES = {"p": "fp", "q": "gq"}
"""The sources of each pipeline: the first has files, the second has positions."""
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
Rows = tuple[str, ...]


class Died(BaseException):
    """The process ends here."""


@dataclass(frozen=True)
class Commit:
    """A table after one commit."""

    table_id: str
    rows: Rows
    txns: tuple[tuple[str, int], ...]
    operation: str
    note: str


@dataclass(frozen=True)
class DatabaseBatches:
    """What belongs to one pipeline of two that write the same table."""

    pipeline: str
    sinks: tuple[str, ...]
    events: tuple[str, ...] = ()
    quarantine: tuple[tuple[tuple[tuple[int, int, str], ...], str], ...] = ()
    returned: frozenset[str] = frozenset()
    undone: frozenset[tuple[str, str]] = frozenset()
    parked: tuple[tuple[str, Rows], ...] = ()


@dataclass(frozen=True)
class World:
    """All that outlives a process, and what its user has asked for."""

    modes: tuple[tuple[str, str], ...]
    """The sinks that the pipeline could have, each with its mode."""
    sinks: tuple[str, ...]
    """Those that it has now."""
    delivered: int = 1
    tables: tuple[tuple[str, tuple[Commit, ...]], ...] = ()
    events: tuple[str, ...] = ()
    quarantine: tuple[tuple[tuple[tuple[int, int, str], ...], str], ...] = ()
    """Versions of the quarantine: its rows, and what their commit says."""
    returned: frozenset[str] = frozenset()
    undone: frozenset[tuple[str, str]] = frozenset()
    """Rows that the user ever asked to be taken out of sinks."""
    incarnations: int = 0
    parked: tuple[tuple[str, Rows], ...] = ()
    """The folders of parked batches, each with its rows."""
    whole: bool = False
    """Whether the pipeline reads its sources as a whole each time, not what is new."""
    undone_runs: frozenset[str] = frozenset()
    """Runs that an undo has taken back, as it said."""
    passed: int = 0
    """So many pieces the user has told a run to pass over."""
    backup: str = ""
    """What was put back from a backup, the ledger or the table; never both without the quarantine,
    of which nobody could tell then what it lacks."""
    pipeline: str = "p"
    """The pipeline whose books are at hand."""
    other: DatabaseBatches | None = None
    """Those of another one that writes the first table too."""

    @property
    def refused(self) -> str:
        """The row that the pipeline's check refuses."""
        return f"{SOURCES[self.pipeline][0]}2"

    def everything(self) -> list[str]:
        """All rows that the pipeline's sources have brought."""
        sources = SOURCES[self.pipeline]
        return [f"{source}{k}" for source in sources for k in range(1, self.delivered + 1)]

    def swapped(self) -> World:
        """The same with the books of the other pipeline at hand."""
        assert self.other is not None
        names = [field.name for field in fields(DatabaseBatches)]
        mine = DatabaseBatches(**{name: getattr(self, name) for name in names})
        return replace(self, other=mine, **{name: getattr(self.other, name) for name in names})

    def books(self, pipeline: str) -> World | DatabaseBatches:
        """The books of a pipeline."""
        if self.other is not None and pipeline == self.other.pipeline:
            return self.other
        return self

    def commits(self, name: str) -> tuple[Commit, ...]:
        """The log of a table; empty when there is none."""
        return dict(self.tables).get(name, ())

    def rows(self, name: str) -> Rows:
        """What a table holds."""
        commits = self.commits(name)
        return commits[-1].rows if commits else ()

    def quarantined(self) -> Rows:
        """What is in quarantine."""
        return tuple(row for _, _, row in self.held())

    def held(self) -> tuple[tuple[int, int, str], ...]:
        """The same with generations and batches."""
        return self.quarantine[-1][0] if self.quarantine else ()


class Process:
    """One process on a world: it changes the world effect by effect, and may die before any."""

    def __init__(
        self, world: World, *, dies_before: int | None = None, dies_at: tuple[str, int] = ("", 0)
    ) -> None:
        self.world = world
        self.dies_before = dies_before
        self.dies_at = dies_at
        self.effects = 0
        self.kinds: Counter[str] = Counter()
        self.fails = False
        self.down = ""
        self.meanwhile: Callable[[Process], None] | None = None
        self.plan = _plan(self)
        self.place: Any = _place(self)
        self.ledger = self.ledger_of(world.pipeline)

    def ledger_of(self, pipeline: str) -> Ledger:
        """The ledger of a pipeline."""
        return _Ledger(_Events(self, pipeline), "shop", pipeline)  # type: ignore[arg-type]

    # ------------------------------------------------------------- effects

    def change(self, **fields: Any) -> None:
        """One effect."""
        kind = next(iter(fields))
        if self.effects == self.dies_before or (kind, self.kinds[kind]) == self.dies_at:
            raise Died
        self.effects += 1
        self.kinds[kind] += 1
        self.world = replace(self.world, **fields)

    def change_books(self, pipeline: str, **fields: Any) -> None:
        """One effect on the books of a pipeline."""
        books = self.world.books(pipeline)
        if isinstance(books, World):
            self.change(**fields)
        else:
            self.change(other=replace(books, **fields))

    def commit(
        self, name: str, rows: Iterable[str], *, txn: tuple[str, int] | None, **more: Any
    ) -> int:
        """One more version of a table; a transaction that is not newer is passed over."""
        log = self.world.commits(name)
        txns = dict(log[-1].txns) if log else {}
        if txn is not None:
            if txns.get(txn[0], -1) >= txn[1]:
                return -1
            txns[txn[0]] = txn[1]
        new = Commit(
            table_id=more.get("table_id")
            or (log[-1].table_id if log else f"{name}-{self.world.incarnations}"),
            rows=tuple(sorted(rows)),
            txns=tuple(sorted(txns.items())),
            operation=more.get("operation", "WRITE"),
            note=more.get("note", "{}"),
        )
        tables = {**dict(self.world.tables), name: (*log, new)}
        self.change(tables=tuple(sorted(tables.items())))
        return len(log)

    # ------------------------------------------------------------- what a user does

    def run(
        self,
        *,
        fails: bool = False,
        down: str = "",
        meanwhile: Callable[[Process], None] | None = None,
        **options: Any,
    ) -> None:
        """`deltaworks run`; with `fails` a check stops it before it writes.

        A sink that is `down` takes no commit, so that batches are parked for it. What happens
        `meanwhile` happens once, right before the first commit to a table.
        """
        self.fails, self.down, self.meanwhile = fails, down, meanwhile
        run = _Run(self.plan, self.place, RunOptions(**options))
        state: Future[LedgerState] = Future()
        state.set_result(self.ledger.state())
        locks: Any = SimpleNamespace(require=_nothing, name_jvm=_nothing)
        run._work(run._batches(locks), state)

    def restore(self, name: str, version: int) -> None:
        """`deltaworks table restore --apply`."""
        if len(self.world.commits(name)) - 1 != version:
            restore_table(TableRef(name, name), version, self.place, apply=True)

    def undo(self, run_id: str) -> None:
        """`deltaworks table undo --apply`."""
        undo_run(run_id, self.plan, self.place, apply=True)

    def state(self) -> LedgerState:
        """What the ledger says."""
        return self.ledger.state()

    def read_by(self, entry: BatchEntry) -> list[str]:
        """The rows that a batch read from the sources."""
        sources = {name: _Source(self, name) for name in SOURCES[self.world.pipeline]}
        return [row for name, read in entry.bounds.items() for row in sources[name].rows(read)]


def _nothing(*_: Any, **__: Any) -> None:
    return None


class _Ledger(Ledger):
    """The real ledger, which folds the same events only once."""

    def state(self) -> LedgerState:
        events: Any = self.table
        return _folded(events.process.world.books(self.pipeline).events)


@lru_cache(maxsize=50_000)
def _folded(events: tuple[str, ...]) -> LedgerState:
    return fold({**json.loads(text), "at": _NOW} for text in events)


class _Events:
    """The ledger's table."""

    table_id = "ledger"

    def __init__(self, process: Process, pipeline: str) -> None:
        self.process, self.pipeline = process, pipeline

    def append(self, row: Mapping[str, Any], *, txn: Any) -> None:
        text = json.dumps({**row, "at": None}, sort_keys=True)
        events = self.process.world.books(self.pipeline).events
        self.process.change_books(self.pipeline, events=(*events, text))

    def compact(self) -> None:
        return


class _Engine:
    """What delta-rs would say of a table."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def history(
        self, location: str, *, limit: int | None = None, after: int = -1
    ) -> tuple[CommitRecord, ...]:
        log = self.process.world.commits(location)
        found = [
            CommitRecord(
                version=n,
                timestamp_ms=0,
                operation=commit.operation,
                user_metadata=json.loads(commit.note),
            )
            for n, commit in enumerate(log)
            if n > after
        ]
        return tuple(reversed(found))[:limit]

    def identity(self, location: str) -> tuple[str, int] | None:
        log = self.process.world.commits(location)
        return (log[-1].table_id, len(log) - 1) if log else None

    def info(self, location: str, *, version: int | None = None) -> Any:
        log = self.process.world.commits(location)
        at = len(log) - 1 if version is None else version
        if not log:
            return None
        return SimpleNamespace(location=location, table_id=log[at].table_id, version=at)

    def transaction(self, location: str, app_id: str) -> int | None:
        log = self.process.world.commits(location)
        return dict(log[-1].txns).get(app_id) if log else None


class _Quarantine(Quarantine):
    """The real quarantine, with its table in memory; conditions are judged by SQLite."""

    process: Process

    @property
    def books(self) -> World | DatabaseBatches:
        """The books of its pipeline."""
        return self.process.world.books(self.pipeline)

    def held(self) -> tuple[tuple[int, int, str], ...]:
        """Its rows, with generations and batches."""
        return self.books.quarantine[-1][0] if self.books.quarantine else ()

    def become(self, rows: Iterable[tuple[int, int, str]], note: str = "{}", **more: Any) -> None:
        """One more version of it."""
        new = (*self.books.quarantine, (tuple(sorted(rows)), note))
        self.process.change_books(self.pipeline, quarantine=new, **more)

    def exists(self) -> bool:
        return bool(self.books.quarantine)

    def version(self) -> int | None:
        return len(self.books.quarantine) - 1 if self.exists() else None

    def selected(self, where: str, version: int | None = None) -> set[tuple[int, int, str]]:
        rows = self.books.quarantine[-1 if version is None else version][0]
        return set(_selected(rows, where, self.pipeline))

    def pick(self, choice: Choice, changes: Mapping[str, str]) -> Replay | None:
        version = self.version()
        held = self.held()
        if version is None or not held:
            return None
        batches = tuple(sorted({batch for _, batch, _ in held}))
        return Replay(version=version, batches=batches)

    def entries(self, replay: Replay) -> list[tuple[str, str]]:
        return []

    def require_returns(self, entries: Any, gone: Collection[int]) -> None:
        return

    def _delete(self, where: Callable[[Any], str], *, note: Mapping[str, Any]) -> int:
        out = self.selected(where(_text))
        if out:
            left = (row for row in self.held() if row not in out)
            self.become(left, json.dumps(note, sort_keys=True))
        return len(out)

    def _return(self, rows: Any, *, key: str, note: Mapping[str, Any]) -> None:
        found = self.selected(rows.where(_text), rows.version)
        if key not in self.books.returned and found:
            returned = self.books.returned | {key}
            text = json.dumps(note, sort_keys=True)
            self.become((*self.held(), *found), text, returned=returned)

    def _here(self, rows: Any) -> list[dict[str, Any]]:
        found = {row[:2] for row in self.selected(rows.where(_text))}
        return [{"generation": generation, "batch": batch} for generation, batch in sorted(found)]

    def _all_notes(self, after: int) -> list[Mapping[str, Any]]:
        return [json.loads(note) for _, note in reversed(self.books.quarantine[after + 1 :])]


@lru_cache(maxsize=50_000)
def _selected(
    rows: tuple[tuple[int, int, str], ...], where: str, pipeline: str
) -> list[tuple[int, int, str]]:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (project, pipeline, generation, batch, row)")
    listed = [(pipeline, *row) for row in rows]
    base.executemany("INSERT INTO t VALUES ('shop', ?, ?, ?, ?)", listed)
    return list(base.execute(f"SELECT generation, batch, row FROM t WHERE {where}"))


def _text(value: str) -> str:
    return f"'{value}'"


class _Source:
    """Pieces that arrive one after the other."""

    connector = ""

    def __init__(self, process: Process, name: str) -> None:
        self.process, self.name = process, name
        self.has_files = any(name == sources[0] for sources in SOURCES.values())

    def bounds(self, _: Any, since: Bounds | None) -> Bounds:
        count = self.process.world.delivered
        if not self.has_files:
            start = {} if since is None else {"since_version": since.position["version"]}
            return Bounds(kind=VERSION, identity=self.name, position={"version": count, **start})
        passed = since.passed if since else ()
        known = {stamp.path for stamp in (*since.files, *passed)} if since else set()
        files = (FileStamp(f"{self.name}{k}", 1, 1) for k in range(1, count + 1))
        new = tuple(stamp for stamp in files if stamp.path not in known)
        return Bounds(kind=FILES, identity=self.name, files=new, passed=passed)

    def rows(self, bounds: Bounds) -> list[str]:
        if self.has_files:
            return [stamp.path for stamp in bounds.files]
        since = bounds.position.get("since_version") or 0
        return [f"{self.name}{k}" for k in range(since + 1, bounds.position["version"] + 1)]

    def reads_increments(self) -> bool:
        return not self.process.world.whole

    def start_at(self, _: Any, point: str) -> Bounds | None:
        read = int(point) - 1
        if not self.has_files:
            return Bounds(kind=VERSION, identity=self.name, position={"version": read})
        older = tuple(FileStamp(f"{self.name}{k}", 1, 1) for k in range(1, read + 1))
        return Bounds(kind=FILES, identity=self.name, passed=older)

    def repeats_rows(self) -> bool:
        return False

    def still_there(self, *_: Any) -> str:
        return ""


class _Sink:
    """A table."""

    connector = ""
    is_persistent = tracks_batches = True

    def __init__(self, process: Process, name: str, mode: str) -> None:
        self.process, self.name, self.mode = process, name, mode

    def is_append(self) -> bool:
        return self.mode == "append"

    def accepts_late_rows(self) -> bool:
        return True

    def target(self, _: Any) -> TableRef:
        return TableRef(self.name, self.name)

    def lock_path(self, _: Any) -> str:
        return ""

    def state(self, _: Any, app_id: str) -> SinkState:
        log = self.process.world.commits(self.name)
        if not log:
            return SinkState(identity="", exists=False)
        txn = dict(log[-1].txns).get(app_id)
        return SinkState(
            identity=log[-1].table_id, exists=True, version=len(log) - 1, txn_version=txn
        )

    def write(self, _: Any, rows: Collection[str], batch: BatchWrite) -> CommitInfo:
        if self.process.down == self.name:
            raise EngineError("it takes no commit")
        now = self.process.world.rows(self.name)
        replaces = batch.replace or self.mode == "overwrite"
        after = _after(now, rows, replaces=replaces, adds=self.mode == "append")
        if after == now and (not self.process.world.commits(self.name) or not replaces):
            return CommitInfo(committed=False)
        if self.process.meanwhile is not None:
            happens, self.process.meanwhile = self.process.meanwhile, None
            happens(self.process)
            return self.write(_, rows, batch)
        txn = (batch.txn.app_id, batch.txn.version)
        operation = "OVERWRITE" if replaces and now else "WRITE"
        version = self.process.commit(
            self.name, after, txn=txn, note=batch.user_metadata, operation=operation
        )
        return CommitInfo(committed=version >= 0, version=max(version, 0))

    def undo(self, _: RunContext, version: int, batch: BatchWrite, *, apply: bool) -> UndoInfo:
        log = self.process.world.commits(self.name)
        before = Counter(log[version - 1].rows if version else ())
        after = Counter(log[version].rows)
        if log[version].operation == "OVERWRITE" and version != len(log) - 1:
            raise GuardError("later versions build upon it")
        if any(commit.operation == "OVERWRITE" for commit in log[version + 1 :]):
            raise GuardError("its files were replaced")
        now = Counter(log[-1].rows)
        if (after - before) - now:
            raise GuardError("its rows changed again")
        gone = (now - (after - before)) + (before - after)
        made = -1
        if apply:
            txn = (batch.txn.app_id, batch.txn.version)
            made = self.process.commit(
                self.name, gone.elements(), txn=txn, note=batch.user_metadata
            )
        return UndoInfo(committed=made >= 0, version=made, rows_removed=0, rows_put_back=0)


class _Folder(_Sink):
    """A folder or a table of a database: it knows the number of its last batch, and no versions."""

    def is_append(self) -> bool:
        return True

    def state(self, _: Any, app_id: str) -> SinkState:
        log = self.process.world.commits(self.name)
        if not log:
            return SinkState(identity="", exists=False)
        txns = dict(log[-1].txns)
        return SinkState(
            identity=log[-1].table_id,
            exists=True,
            txn_version=txns.get(app_id),
            writers=tuple(txns),
        )

    def write(self, _: Any, rows: Collection[str], batch: BatchWrite) -> CommitInfo:
        if self.process.down == self.name:
            raise EngineError("it takes no commit")
        if self.state(_, batch.txn.app_id).txn_version == batch.txn.version:
            return CommitInfo(committed=False)
        if self.process.meanwhile is not None:
            happens, self.process.meanwhile = self.process.meanwhile, None
            happens(self.process)
        now = self.process.world.rows(self.name)
        after = _after(now, rows, replaces=batch.replace, adds=True)
        self.process.commit(self.name, after, txn=(batch.txn.app_id, batch.txn.version))
        return CommitInfo(committed=True)

    def undo(self, _: RunContext, version: int, batch: BatchWrite, *, apply: bool) -> UndoInfo:
        raise UnsupportedOperation("a folder takes no batch back")


def _after(now: Rows, rows: Collection[str], *, replaces: bool, adds: bool) -> Rows:
    if replaces:
        return tuple(sorted(rows))
    new = rows if adds else set(rows) - set(now)
    return tuple(sorted((*now, *new)))


class _Plan(Plan):
    """A plan of such ends."""

    def fingerprint(self, project_ctx: Any) -> str:
        return ",".join(load.name for load in self.loads) if len(self.loads) else ""


def _plan(process: Process) -> Plan:
    modes = dict(process.world.modes)
    origin = SimpleNamespace(file="p.yaml")
    name = process.world.pipeline
    pipeline: Any = SimpleNamespace(name=name, origin=origin, audit_columns=False)
    sources = [
        Extract(name=n, plugin=_Source(process, n))  # type: ignore[arg-type]
        for n in SOURCES[name]
    ]
    kinds = {n: _Folder if mode == FOLDER else _Sink for n, mode in modes.items()}
    loads = [
        Load(name=n, plugin=kinds[n](process, n, modes[n]), inputs=("x",))  # type: ignore[arg-type]
        for n in process.world.sinks
    ]
    return _Plan(pipeline=pipeline, stages=(*sources, *loads))


def _place(process: Process) -> Any:
    def quarantine(pipeline: str, **__: Any) -> Quarantine:
        found = _Quarantine("q", "shop", pipeline)
        object.__setattr__(found, "process", process)
        return found

    return SimpleNamespace(
        config=SimpleNamespace(
            project_id="shop",
            warehouse="w",
            stores=None,
            retries=None,
            profile="",
            locks=SimpleNamespace(wait_seconds=0),
        ),
        clock=SimpleNamespace(now=lambda: _NOW, monotonic=lambda: 0.0),
        bus=SimpleNamespace(tell=_nothing),
        halt=SimpleNamespace(asked=False, take=_nothing),
        project_ctx=SimpleNamespace(warehouse="w", stores=None),
        notify=_nothing,
        quarantine=quarantine,
        records=lambda: None,
        ledger=process.ledger_of,
    )


# ----------------------------------------------------------------- in the place of engines


def make(attempt: Attempt, ctx: Any, landed: Mapping[str, CommitInfo]) -> dict[str, CommitInfo]:
    """In the place of `Attempt.make`: reads, judges and lands in the same order."""
    process: Process = ctx.process
    entry = attempt.entry
    good, refused = _judged(process, entry)
    if process.fails:
        raise QualityError("a check stops the run")
    quarantine = attempt.place.quarantine(process.world.pipeline)
    attempt.may_have_landed = True
    if not landed and entry.sets_aside:
        _write_slice(quarantine, entry, refused, attempt.run.run_id)
    infos = dict(landed)
    for load in attempt.plan.loads:
        if load.name not in landed:
            infos[load.name] = _land(attempt, load, good)
    attempt.result = BatchResult(n=entry.n, id=None, state=DONE)
    return infos


def _judged(process: Process, entry: BatchEntry) -> tuple[list[str], list[str]]:
    if entry.replay is not None:
        where = f"batch IN ({', '.join(map(str, entry.replay.batches))})"
        quarantine = process.place.quarantine(process.world.pipeline)
        found = quarantine.selected(where, entry.replay.version)
        return [row for _, _, row in found], []
    rows = process.read_by(entry)
    refused = process.world.refused
    return [r for r in rows if r != refused], [r for r in rows if r == refused]


def _write_slice(quarantine: Any, entry: BatchEntry, refused: list[str], run_id: str) -> None:
    now = quarantine.held()
    mine = (entry.generation, entry.n)
    begun_before = entry.run_id != run_id
    kept = [row for row in now if row[:2] != mine or not begun_before]
    if refused or kept != list(now):
        writer = Writer("shop", quarantine.pipeline, SINK)
        note = {**note_of(entry, writer), "generation": entry.generation}
        rows = (*kept, *((*mine, row) for row in refused))
        quarantine.become(rows, json.dumps(note, sort_keys=True))


def _land(attempt: Attempt, load: Load, rows: list[str]) -> CommitInfo:
    entry, plugin = attempt.entry, load.plugin
    sink = entry.sink(load.name)
    assert sink is not None
    if load.name in attempt.blocked:
        return _park(attempt, load, rows)
    if plugin.state(attempt.place.project_ctx, sink.app_id).txn_version != sink.txn_found:
        raise GuardError("the sink has moved on")
    told = note_of(entry, Writer("shop", attempt.run.pipeline, load.name))
    note = safe_json({**told, "generation": entry.generation})
    batch: Any = SimpleNamespace(
        n=entry.n,
        txn=SimpleNamespace(app_id=sink.app_id, version=entry.n),
        replace=entry.replaces,
        user_metadata=note,
    )
    try:
        return plugin.write(attempt, rows, batch)  # type: ignore[arg-type]
    except EngineError:
        return _park(attempt, load, rows)


def _park(attempt: Any, load: Load, rows: list[str]) -> CommitInfo:
    process = load.plugin.process  # type: ignore[attr-defined]
    place = f"{attempt.entry.n}-{load.name}"
    parked = {**dict(process.world.parked), place: tuple(rows)}
    process.change(parked=tuple(sorted(parked.items())))
    return CommitInfo(committed=False, parked=place)


def parked_rows(ctx: Any, place: str) -> Rows:
    """In the place of the rows in a folder."""
    found: dict[str, Rows] = dict(ctx.process.world.parked)
    if place not in found:
        raise EngineError("the parked batch cannot be read")
    return found[place]


def forget_parked(process: Process, place: str) -> None:
    """In the place of removing a folder."""
    left = tuple(item for item in process.world.parked if item[0] != place)
    if left != process.world.parked:
        process.change(parked=left)


def replay_path(plan: Plan, _: Any) -> ReplayPath:
    """In the place of the way of returning rows: all sinks, and no source."""
    loads = tuple(stage for stage in plan.stages if isinstance(stage, Load))
    return ReplayPath(replace(plan, stages=loads), frozenset())
