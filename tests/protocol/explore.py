"""Tries everything that can happen to a warehouse, breadth first, and judges every world.

From each world a run must end in one of two ways: it says why it stops, or every row is where it
belongs. A full refresh must always get there.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from deltaworks.errors import DeltaworksError, GuardError
from deltaworks.runtime.ledger.state import DONE, PLANNED, REVERTED, UNDONE, BatchEntry
from deltaworks.runtime.quarantine.table import Choice
from tests.protocol import world as doubles
from tests.protocol.canonical import canonical, first_batch
from tests.protocol.world import FOLDER, SOURCES, Commit, DatabaseBatches, Died, Process, World

Act = Callable[[Process], None]


@dataclass(frozen=True)
class Action:
    """Something that a user, another writer or an accident does."""

    name: str
    act: Act
    cost: str = ""
    """What it uses up of the scope, so that there are only finitely many worlds."""
    dies: bool = True
    """Whether a process does it that may die meanwhile."""
    reads: bool = False
    """Whether it looks into the sources."""
    pipeline: str = "p"
    """The pipeline that it is done with."""


@dataclass(frozen=True)
class Scope:
    """How far to go."""

    modes: tuple[tuple[str, str], ...]
    depth: int = 6
    budgets: tuple[tuple[str, int], ...] = (
        ("deliver", 2),
        ("back", 2),
        ("refresh", 1),
        ("replay", 1),
        ("death", 1),
        ("sinks", 2),
        ("foreign", 1),
        ("park", 0),
    )
    max_worlds: int | None = None
    whole: bool = False
    shared: bool = False
    """Whether a second pipeline writes the first table too."""


@dataclass
class Findings:
    """What an exploration saw."""

    worlds: int = 0
    transitions: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Node:
    world: World
    left: tuple[tuple[str, int], ...]
    trace: tuple[str, ...]

    @property
    def has_news(self) -> bool:
        """Whether the last thing was a delivery, which only what reads the sources can tell.

        Whatever else comes next might as well have come before it.
        """
        return bool(self.trace) and self.trace[-1] == "deliver"


class _Seen:
    """The worlds that were met, each with the most that was left then."""

    def __init__(self) -> None:
        self.left: dict[Any, list[tuple[int, ...]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.left.values()))

    def is_new(self, node: _Node) -> bool:
        """Whether nobody met the same world with as much left before; it is met now."""
        left = (not node.has_news, *(value for _, value in node.left))
        met = self.left.setdefault(_key(node), [])
        if any(all(a >= b for a, b in zip(one, left, strict=True)) for one in met):
            return False
        met.append(left)
        return True


def _spent(left: dict[str, int], cost: str) -> dict[str, int] | None:
    """What is left after something happened; None when it may not happen any more.

    Runs cost nothing. `events` is how much may happen in all, besides deliveries.
    """
    costs = [name for name in (cost, "events" if cost != "deliver" else "") if name]
    if not cost or cost not in left:
        return left if not cost else None
    spent = {**left, **{name: left[name] - 1 for name in costs if name in left}}
    return None if min(spent.values()) < 0 else spent


def _key(node: _Node) -> Any:
    return canonical(node.world, with_backup=bool(dict(node.left).get("foreign")))


def engines(process_of: Callable[[], Process]) -> ExitStack:
    """The doubles in the place of Spark and delta-rs, until the stack is closed."""
    stack = ExitStack()
    engine = lambda *_, **__: doubles._Engine(process_of())  # noqa: E731

    def token(_: int) -> str:
        world = process_of().world
        return f"{world.pipeline}t{len(world.events)}-{world.incarnations}"

    def start_engine(place: Any, run: Any, **_: Any) -> Any:
        return _Ctx(process=process_of(), project_ctx=place.project_ctx, run_id=run.run_id)

    def restore(table: Any, version: int, _: Any, note: dict[str, Any]) -> int:
        process = process_of()
        old = process.world.commits(table.location)[version]
        return process.commit(
            table.location,
            old.rows,
            txn=None,
            operation="RESTORE",
            note=json.dumps(note, sort_keys=True),
            table_id=old.table_id,
        )

    def new_run(pipeline: str, _: Any) -> Any:
        world = process_of().world
        events = len(world.events) + len(world.other.events if world.other else ())
        name = f"r{events}-{len(world.tables)}-{world.incarnations}"
        return SimpleNamespace(run_id=name, pipeline=pipeline, now=doubles._NOW)

    def forget(place: str, _: Any) -> None:
        doubles.forget_parked(process_of(), place)

    def everyone(*_: Any) -> list[Any]:
        process = process_of()
        others = [process.world.other.pipeline] if process.world.other else []
        return [process.ledger, *map(process.ledger_of, others)]

    def unlocked(*_: Any, **__: Any) -> Any:
        return nullcontext(SimpleNamespace(require=lambda: None))

    for name, stand_in in {
        "deltaworks.runtime.ledger.evidence.DeltaRsEngine": engine,
        "deltaworks.runtime.batch.verify_sinks.DeltaRsEngine": engine,
        "deltaworks.runtime.recovery.restore.DeltaRsEngine": engine,
        "deltaworks.runtime.recovery.undo.DeltaRsEngine": engine,
        "deltaworks.runtime.batch.lifecycle.secrets.token_hex": token,
        "deltaworks.runtime.batch.lifecycle.start_engine": start_engine,
        "deltaworks.runtime.recovery.undo.start_engine": start_engine,
        "deltaworks.runtime.recovery.undo.new_run": new_run,
        "deltaworks.runtime.recovery.restore.new_run": new_run,
        "deltaworks.runtime.runs.runner.new_run": new_run,
        "deltaworks.runtime.recovery.restore._restore": restore,
        "deltaworks.runtime.recovery.restore.locked": unlocked,
        "deltaworks.runtime.recovery.undo.locked": unlocked,
        "deltaworks.runtime.recovery.restore.Ledger.everyone": everyone,
        "deltaworks.runtime.runs.runner.replay_path": doubles.replay_path,
        "deltaworks.runtime.batch.lifecycle.replay_path": doubles.replay_path,
        "deltaworks.runtime.batch.attempt.Attempt.make": doubles.make,
        "deltaworks.runtime.batch.lifecycle.parked_rows": doubles.parked_rows,
        "deltaworks.runtime.batch.lifecycle.audited": lambda _, __, rows, **___: rows,
        "deltaworks.runtime.batch.lifecycle.step_boundary": lambda *_: nullcontext(),
        "deltaworks.runtime.batch.lifecycle.forget_parked": forget,
        "deltaworks.runtime.recovery.restore.forget_parked": forget,
        "deltaworks.runtime.recovery.undo.forget_parked": forget,
        "deltaworks.engines.spark.session.connect.held": nullcontext,
        "deltaworks.engines.spark.session.start.jvm_process": lambda _: None,
        "deltaworks.storage.durability.torn_files": lambda *_: (),
        "deltaworks.storage.durability.make_durable": lambda *_: None,
    }.items():
        stack.enter_context(patch(name, stand_in))
    return stack


@dataclass(frozen=True)
class _Ctx:
    """In the place of a run's context."""

    process: Process
    project_ctx: Any
    run_id: str
    spark: Any = None
    pinned: Any = None
    until_end: Any = field(default_factory=lambda: SimpleNamespace(close=lambda: None))


class Explorer:
    """Explores one scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.current: Process | None = None
        self.found = Findings()

    def explore(self) -> Findings:
        """Every world within the scope, judged; stops early when something is wrong."""
        sinks = tuple(name for name, _ in self.scope.modes)
        other = DatabaseBatches("q", sinks[:1]) if self.scope.shared else None
        first = World(modes=self.scope.modes, sinks=sinks, whole=self.scope.whole, other=other)
        start = _Node(first, tuple(sorted(self.scope.budgets)), ())
        seen, judged = _Seen(), set[Any]()
        seen.is_new(start)
        queue = deque([start])
        with engines(self._process):
            while queue and not self.found.wrong:
                node = queue.popleft()
                if (same := canonical(node.world)) not in judged:
                    judged.add(same)
                    self.found.worlds += 1
                    self.judge(node)
                if len(node.trace) >= self.scope.depth:
                    continue
                for after in self._next(node):
                    self.found.transitions += 1
                    if self._has_room(self.found.worlds + len(queue)) and seen.is_new(after):
                        queue.append(after)
        return self.found

    def _has_room(self, worlds: int) -> bool:
        return self.scope.max_worlds is None or worlds < self.scope.max_worlds

    def _process(self) -> Process:
        assert self.current is not None
        return self.current

    def _next(self, node: _Node) -> Iterator[_Node]:
        budgets = dict(node.left)
        for action in self._actions(node.world):
            if node.has_news and not action.reads:
                continue
            left = _spent(budgets, action.cost)
            if left is None:
                continue
            whole = self.perform(node.world, action, dies_before=None)
            yield self._node(node, whole.world, left, action.name)
            spent = _spent(left, "death")
            if action.dies and spent is not None:
                for point in range(whole.effects):
                    cut = self.perform(node.world, action, dies_before=point)
                    name = f"{action.name} dies before effect {point}"
                    yield self._node(node, cut.world, spent, name)

    def _actions(self, world: World) -> Iterator[Action]:
        yield from actions(world, self._state(world))
        if world.other is not None:
            other = world.swapped()
            for action in actions(other, self._state(other)):
                if action.name.startswith(("run", "undo", "replay")):
                    yield replace(action, name=f"q: {action.name}", pipeline="q")

    def _node(self, node: _Node, world: World, left: dict[str, int], name: str) -> _Node:
        budgets = tuple(sorted((key, value) for key, value in left.items() if key))
        return _Node(world, budgets, (*node.trace, name))

    def _state(self, world: World) -> Any:
        self.current = Process(world)
        return self.current.state()

    def perform(self, world: World, action: Action, *, dies_before: int | None) -> Process:
        """What an action makes of a world; a refusal leaves what it did until then."""
        is_other = action.pipeline != world.pipeline
        self.current = Process(world.swapped() if is_other else world, dies_before=dies_before)
        try:
            action.act(self.current)
        except Died:
            pass
        except DeltaworksError as error:
            self.found.refusals[_words(error)] += 1
        if is_other:
            self.current.world = self.current.world.swapped()
        return self.current

    def judge(self, node: _Node) -> None:
        """A run ends well or says why not; a full refresh ends well.

        Of two pipelines none may replace the table, and the runs of both must end well.
        """
        if node.world.other is not None:
            self._judge_both(node)
            return
        for name, options in (("run", {"new_sinks": "backfill"}), ("full refresh", {})):
            self.current = Process(node.world)
            try:
                full = name == "full refresh"
                self.current.run(full_refresh=full, **options)  # type: ignore[arg-type]
                if not full and self.current.effects:
                    self.current.run()  # a second one changes nothing
            except GuardError as error:
                self.found.refusals[_words(error)] += 1
                if name == "full refresh":
                    self._wrong(node, name, f"is refused: {error.message}")
                continue
            for problem in problems(self.current):
                self._wrong(node, name, problem)

    def _judge_both(self, node: _Node) -> None:
        world = node.world
        for _ in range(2):
            self.current = Process(world)
            name = f"run of {world.pipeline}"
            try:
                self.current.run(new_sinks="backfill")
            except GuardError as error:
                self.found.refusals[_words(error)] += 1
            else:
                for problem in problems(self.current):
                    self._wrong(node, name, problem)
            world = self.current.world.swapped()

    def _wrong(self, node: _Node, name: str, problem: str) -> None:
        story = "\n  ".join((*node.trace, f"{name}: {problem}"))
        self.found.wrong.append(f"after\n  {story}")


def _words(error: DeltaworksError) -> str:
    return "".join(c for c in error.message if not c.isdigit())


def _left_by_undos(process: Process) -> list[int]:
    """Batches of runs that were undone; a restore may bring a part of a run back."""
    state, runs = process.state(), process.world.undone_runs
    return [e.n for e in state.done() if e.run_id in runs and not state.restored]


def problems(process: Process) -> list[str]:
    """Rows that are lost, there twice or in two places, once everything has been read."""
    found: list[str] = []
    world = process.world
    if world.whole:
        return _problems_of_whole_reads(process)
    modes, aside = dict(world.modes), Counter(world.quarantined())
    undone = world.undone & _says_undone(process, may_stay=True)
    undone |= {
        (name, world.refused)
        for entry in process.state().done()
        if entry.replay is not None
        for name in entry.undone  # and brought back to another table only
    }
    must_go = world.undone & _says_undone(process, may_stay=False)
    if any(entry.replay is not None for entry in process.state().done()):
        must_go -= {(name, world.refused) for name in world.sinks}  # it came by a batch of its own
    must_go -= {
        (name, row)
        for entry in process.state().batches
        if entry.state == REVERTED
        for name in entry.kept  # only other tables went back
        for row in process.read_by(entry)
    }
    found.extend(f"batch {n} is there though its run was undone" for n in _left_by_undos(process))
    for row in world.everything():
        held = [Counter(world.rows(name))[row] for name in world.sinks]
        if aside[row] > 1:
            found.append(f"{row} is in quarantine {aside[row]} times")
        if all(held) and aside[row]:
            found.append(f"{row} is in quarantine and in every table")
        for name, times in zip(world.sinks, held, strict=True):
            is_out = (name, row) in undone or int(row[1:]) <= world.passed
            if times > 1:
                found.append(f"{row} is in {name} ({modes[name]}) {times} times")
            if not times and not aside[row] and not is_out:
                found.append(f"{row} is neither in {name} nor in quarantine")
            if times and (name, row) in must_go:
                found.append(f"{row} was undone and is in {name} again")
    return found


def _before_refresh(process: Process, name: str) -> list[list[str]]:
    """What a table had before a full refresh that was undone, which put it back."""
    state, log = process.state(), process.world.commits(name)
    undone = [e for e in state.batches if e.generation == state.generation and e.replaces]
    sinks = [e.sink(name) for e in undone if name in e.undone]
    versions = [sink.version for sink in sinks if sink is not None and sink.version]
    return [list(log[version - 1].rows) for version in versions]


def _problems_of_whole_reads(process: Process) -> list[str]:
    """Every sink has what the batches in it read: all of them, or the last where it replaces.

    Batches that merged the same rows hold them together, so that the undo of the one that
    inserted them takes them out; they stay out while the last batch is undone too.
    """
    world, state = process.world, process.state()
    found = []
    everything = set(world.everything())
    last = state.counted()[-1:]
    if not last or set(process.read_by(last[0])) != everything:
        found.append("not everything was read")
    refused = {world.refused} & everything if any(e.replay is None for e in state.done()) else set()
    for name in world.sinks:
        mode = dict(world.modes)[name]
        there = [e for e in state.batches if e.generation == state.generation and name in e.kept]
        there = [e for e in there if e.state in (DONE, REVERTED)]
        parts = [[r for r in process.read_by(e) if r != world.refused] for e in there]
        parts = [*_before_refresh(process, name), *parts]
        wanted = Counter(row for part in parts for row in part)
        if mode != "append":
            wanted = Counter(set(wanted if mode == "upsert" else parts[-1] if parts else ()))
        if mode == "upsert" and last and last[0].state == UNDONE:
            out = {row for one, row in world.undone if one == name} - set(world.rows(name))
            wanted -= Counter(out)
        if Counter(world.rows(name)) != wanted:
            found.append(
                f"{name} ({mode}) holds {world.rows(name)}, not {sorted(wanted.elements())}"
            )
        lost = refused - set(world.quarantined()) if there else set()
        if lost and any(world.refused in process.read_by(e) for e in there):
            found.append(f"{world.refused} was refused and is not in quarantine")
    return found


def _says_undone(process: Process, *, may_stay: bool) -> set[tuple[str, str]]:
    """What the ledger calls undone in the generation that the tables are of.

    Such rows may stay where another batch brought them: the undo of a full refresh puts back what
    was there before, and a backfill is a batch of its own.
    """
    state = process.state()
    fills = [e for e in state.batches if e.backfill and e.generation == state.generation]
    return {
        (name, row)
        for entry in (*state.counted(), *(fills if may_stay else ()))
        for name, _ in process.world.modes
        if (entry.state == UNDONE or name in entry.undone)
        and (may_stay or (entry.sink(name) is not None and not entry.replaces))
        for row in process.read_by(entry)
        if may_stay or not _came_before(process, entry, row)
    }


def _came_before(process: Process, entry: BatchEntry, row: str) -> bool:
    """Whether a batch from before the undo has a row too, which a restore has put back."""
    others = (o for o in process.state().loaded() if o.first_event < entry.undo_event)
    return any(row in process.read_by(other) for other in others)


# ----------------------------------------------------------------- what can happen


def actions(world: World, state: Any) -> Iterator[Action]:
    """All that can happen to a world now."""
    yield Action("deliver", _deliver, "deliver", dies=False, reads=True)
    yield _run("run")
    yield _run("run, a check fails", "fail", fails=True)
    yield _run("full refresh", "refresh", full_refresh=True)
    yield _run("full refresh, a check fails", "refresh", fails=True, full_refresh=True)
    yield _run(f"run, {world.sinks[-1]} is down", "park", down=world.sinks[-1])
    yield _run("run --batch-id x", "named", batch_id="x")
    if world.whole:
        yield _run("run --again", "again", again=True)
    else:
        yield from _starts(world, state)
    if world.quarantined() and not world.whole:
        yield _run("replay", "replay", replay=Choice())
    for name in (name for name in world.sinks if dict(world.modes)[name] != FOLDER):
        last = len(world.commits(name)) - 1
        for version in range(max(0, last - 3), last):
            yield _restore(name, version)
    for run_id in list(dict.fromkeys(e.run_id for e in state.batches if e.state == DONE))[-3:]:
        yield Action(f"undo {run_id}", _undo(run_id), "back")
    if len(world.modes) > 1:
        yield Action("take sink b out or put it back", _toggle, "sinks", dies=False)
    yield from _accidents(world)


def _starts(world: World, state: Any) -> Iterator[Action]:
    """Runs that are told to start with the last piece, if it is new, or after it."""
    entries = [e for e in state.batches if e.state in (PLANNED, DONE, UNDONE)]
    name = SOURCES[world.pipeline][1]
    read = [e.bounds[name].position["version"] for e in entries if name in e.bounds]
    first = world.delivered + (world.delivered in read)
    for start in range(first, world.delivered + 2):

        def act(process: Process, start: int = start) -> None:
            process.world = replace(process.world, passed=max(process.world.passed, start - 1))
            process.run(start=str(start), new_sinks="backfill")

        yield Action(f"run --from {start}", act, "from", reads=True)


def _accidents(world: World) -> Iterator[Action]:
    name = world.sinks[0]
    log = world.commits(name)
    if not log:
        return
    if world.backup != "table":
        yield Action("the ledger loses its last batches", _older_ledger, "foreign", dies=False)
    yield Action("somebody recreates the table", _recreate(name), "foreign", dies=False)
    yield _run("run, meanwhile the table is recreated", "foreign", meanwhile=_recreate(name))
    if len(log) > 1 and dict(world.modes)[name] != FOLDER:
        yield Action("somebody restores the table", _by_hand(name, 0), "foreign", dies=False)
        yield _run("run, meanwhile the table is restored", "foreign", meanwhile=_by_hand(name, 0))
    if len(log) > 1 and world.backup != "ledger":
        yield Action("an older copy of the table is put back", _older(name), "foreign", dies=False)


def _run(name: str, cost: str = "", **options: Any) -> Action:
    given: dict[str, Any] = options
    if not {"full_refresh", "replay"} & set(options):
        given = {"new_sinks": "backfill", **options}
    return Action(name, lambda p: p.run(**given), cost, reads=True)


def _deliver(process: Process) -> None:
    process.world = replace(process.world, delivered=process.world.delivered + 1)


def _restore(name: str, version: int) -> Action:
    return Action(f"restore {name} to {version}", lambda p: p.restore(name, version), "back")


def _undo(run_id: str) -> Act:
    def act(process: Process) -> None:
        mine = [entry for entry in process.state().batches if entry.run_id == run_id]
        asked = {
            (name, row)
            for entry in mine
            for name, _ in process.world.modes
            for row in process.read_by(entry)
        }
        process.world = replace(process.world, undone=process.world.undone | asked)
        process.undo(run_id)
        runs = process.world.undone_runs | {run_id}
        process.world = replace(process.world, undone_runs=runs)

    return act


def _toggle(process: Process) -> None:
    everything = tuple(name for name, _ in process.world.modes)
    sinks = everything if len(process.world.sinks) == 1 else everything[:1]
    process.world = replace(process.world, sinks=sinks)


def _older_ledger(process: Process) -> None:
    """The ledger as it was after its first batch."""
    kept = first_batch(process.world.events)
    incarnations = process.world.incarnations + 1
    process.world = replace(process.world, events=kept, incarnations=incarnations, backup="ledger")


def _recreate(name: str) -> Act:
    def act(process: Process) -> None:
        table_id = f"{name}-new-{len(process.world.commits(name))}"
        if dict(process.world.modes)[name] == FOLDER:  # what it knew of its writers goes with it
            log = (*process.world.commits(name), Commit(table_id, (), (), "", "{}"))
            tables = {**dict(process.world.tables), name: log}
            process.change(tables=tuple(sorted(tables.items())))
            return
        process.commit(name, (), txn=None, operation="CREATE OR REPLACE", table_id=table_id)

    return act


def _older(name: str) -> Act:
    """The table as it was before its last commit, in the place of the newer one."""

    def act(process: Process) -> None:
        tables = dict(process.world.tables)
        tables[name] = tables[name][:-1]
        left = tuple(sorted(tables.items()))
        process.world = replace(process.world, tables=left, backup="table")

    return act


def _by_hand(name: str, version: int) -> Act:
    def act(process: Process) -> None:
        rows = process.world.commits(name)[version].rows
        process.commit(name, rows, txn=None, operation="RESTORE")

    return act
