"""Worlds in which a table that others changed is accepted as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from deltaworks.errors import DeltaworksError, GuardError
from deltaworks.model.table_info import CommitRecord
from deltaworks.model.table_ref import TableRef
from deltaworks.runtime.recovery.accept import accept_table
from deltaworks.runtime.recovery.accept_result import AcceptResult
from tests.protocol import explore
from tests.protocol.explore import Act, Action, Explorer, Findings
from tests.protocol.world import REFUSED, Process, World, _Engine

REAL_ACTIONS, REAL_PROBLEMS = explore.actions, explore.problems
_GIVEN_UP = "given up"


class Engine(_Engine):
    """What delta-rs would say of a table, and to where a restore went."""

    def history(
        self, location: str, *, limit: int | None = None, after: int = -1
    ) -> tuple[CommitRecord, ...]:
        return tuple(
            replace(record, restored_to=record.user_metadata.get("to"))
            if record.operation == "RESTORE"
            else record
            for record in super().history(location, limit=limit, after=after)
        )


def accept(process: Process, name: str, *, keep: bool) -> AcceptResult:
    """`deltaworks table accept --apply`."""
    writers = [(process.plan, process.place)]
    return accept_table(TableRef(name, name), writers, keep=keep, apply=True)


def _accepting(name: str, *, keep: bool) -> Act:
    def act(process: Process) -> None:
        before = process.world
        try:
            accept(process, name, keep=keep)
        finally:  # whoever dies after the intent was written down has decided
            if keep and process.world.events != before.events:
                _give_up(process, before)

    return act


def _give_up(process: Process, before: World) -> None:
    """Rows that the table lacks are not wanted."""
    unknown = '\\"adopted\\": {\\"' in process.world.events[-1]
    generation = process.state().generation
    told = Process(before)
    rows = {row for entry in told.state().batches for row in told.read_by(entry)}
    if unknown:  # then all that there is counts as read
        rows = {f"{source}{k}" for source in "fp" for k in range(1, before.delivered + 1)}
    gone = {
        f"{_GIVEN_UP} {generation} {one} {row}"
        for one, _ in before.modes
        for row in rows
        if row not in before.rows(one)
    }
    process.world = replace(process.world, returned=process.world.returned | gone)


def by_hand(name: str, version: int) -> Act:
    """Somebody sets a table back."""

    def act(process: Process) -> None:
        rows = process.world.commits(name)[version].rows
        note = json.dumps({"to": version})
        process.commit(name, rows, txn=None, operation="RESTORE", note=note)

    return act


def foreign_rows(name: str) -> Act:
    """Somebody adds a commit that changes no row of ours."""

    def act(process: Process) -> None:
        process.commit(name, process.world.rows(name), txn=None, operation="OPTIMIZE")

    return act


def gone(name: str) -> Act:
    """Somebody deletes a table."""

    def act(process: Process) -> None:
        left = tuple(one for one in process.world.tables if one[0] != name)
        more = process.world.incarnations + 1
        process.world = replace(process.world, tables=left, incarnations=more)

    return act


def actions(world: World, state: Any) -> Iterator[Action]:
    """All that can happen, and that a table is accepted."""
    for action in REAL_ACTIONS(world, state):
        if "restore" not in action.name or action.cost != "foreign":
            yield action
    name = world.sinks[0]
    last = len(world.commits(name)) - 1
    for version in range(max(0, last - 2), last):
        yield Action(f"by hand {name} to {version}", by_hand(name, version), "foreign", dies=False)
        meddling = f"run, meanwhile by hand {name} to {version}"
        yield explore._run(meddling, "foreign", meanwhile=by_hand(name, version))
    if last >= 0:
        yield Action("a foreign commit", foreign_rows(name), "foreign", dies=False)
        yield Action("the table is deleted", gone(name), "foreign", dies=False)
    for one in world.sinks:
        yield Action(f"accept {one}, read again", _accepting(one, keep=False), "accept")
        yield Action(f"accept {one}, keep position", _accepting(one, keep=True), "accept")


def problems(process: Process) -> list[str]:
    """What is wrong, but for rows that the user gave up in this generation."""
    state, given_up = process.state(), process.world.returned
    lost_a_replay = any(restore.accept.get("is_floor") for restore in state.restored)
    found = []
    for problem in REAL_PROBLEMS(process):
        words = problem.split(" ")
        mark = f"{_GIVEN_UP} {state.generation} {words[4] if len(words) > 4 else ''} {words[0]}"
        is_given_up = " is neither in " in problem and mark in given_up
        is_replayed = f"{REFUSED} was undone" in problem and lost_a_replay  # by its own batch
        if not is_given_up and not is_replayed:
            found.append(problem)
    return found


class Accepting(Explorer):
    """Explores a scope in which tables are accepted."""

    def explore(self) -> Findings:
        def new_run(pipeline: str, _: Any) -> Any:
            world = self._process().world
            name = f"a{len(world.events)}-{len(world.tables)}-{world.incarnations}"
            return SimpleNamespace(run_id=name, pipeline=pipeline)

        unlocked = nullcontext(SimpleNamespace(require=lambda: None))
        with ExitStack() as stack:
            for name, stand_in in {
                "deltaworks.runtime.recovery.accept.DeltaRsEngine": lambda *_: Engine(
                    self._process()
                ),
                "deltaworks.runtime.recovery.accept.locked": lambda *_, **__: unlocked,
                "deltaworks.runtime.recovery.accept.new_run": new_run,
                "tests.protocol.explore.actions": actions,
                "tests.protocol.explore.problems": problems,
            }.items():
                stack.enter_context(patch(name, stand_in))
            return super().explore()

    def judge(self, node: Any) -> None:
        super().judge(node)
        if node.trace and node.trace[-1].startswith("accept "):
            self._judge_accepted(node, node.trace[-1].split(" ")[1].rstrip(","))

    def _judge_accepted(self, node: Any, name: str) -> None:
        """Whoever accepts a table and is not refused can go on with it, and twice is as once."""
        words = node.trace[-1]
        keep = "keep position" in words
        self.current = Process(node.world)
        try:
            again = accept(self.current, name, keep=keep)
        except DeltaworksError:
            return  # it was refused, and so it is again
        if "dies" in words:
            return
        if again.pipelines:
            self._wrong(node, "accepted again", f"{again.pipelines} is found once more")
        self.current = Process(node.world)
        try:
            self.current.run(new_sinks="backfill")
        except GuardError as error:
            is_stuck = "moved on" in error.message or f"table accept {name}`" in (error.hint or "")
            if is_stuck:
                self._wrong(node, "run", f"is refused: {error.message}")
