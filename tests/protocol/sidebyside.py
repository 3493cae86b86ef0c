"""One story told twice: to the world in memory, and to a real project on Spark and Delta.

After every step both must have refused alike, or hold the same rows. So what the exploration finds
out about the world in memory holds for the real one.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from deltaworks.errors import DeltaworksError, QualityError
from deltaworks.runtime.batch.attempt import Attempt
from deltaworks.runtime.ledger.state import DONE
from deltaworks.runtime.ledger.table import Ledger
from deltaworks.runtime.quarantine.table import Choice
from deltaworks.sinks.delta import DeltaSink
from tests.protocol.explore import _by_hand, _deliver, _older_ledger, _recreate, _toggle, engines
from tests.protocol.world import REFUSED, Died, Process, World
from tests.workbench import Workbench

SCHEMA = pa.schema([("id", pa.string()), ("ok", pa.int64())])
PIPELINE = """
extract:
  f: {type: csv, path: "in/*.csv", schema: "id string, ok bigint", incremental: true}
  p: {type: delta, path: src, incremental: true}
transform: [{name: both, type: union, input: f, with: [p]}]
checks: [{type: expression, rule: "ok = 1", on_fail: quarantine}]
load:
"""


class SideBySide:
    """Both worlds, and what was done to them."""

    def __init__(self, root: Path, modes: tuple[tuple[str, str], ...]) -> None:
        self.root = root
        self.bench = Workbench(root / "project-0")
        self.moves = 0
        self.world = World(modes=modes, sinks=tuple(name for name, _ in modes))
        self.current = Process(self.world)
        self.trace: list[str] = []
        self._bring(1)
        self._write_pipeline()

    def _bring(self, k: int) -> None:
        row = f"f{k},{0 if f'f{k}' == REFUSED else 1}"
        self.bench.write(f"in/f{k}.csv", f"id,ok\n{row}\n")
        rows = pa.table({"id": [f"p{k}"], "ok": [1]}, schema=SCHEMA)
        write_deltalake(str(self.bench.root / "src"), rows, mode="append")

    def _write_pipeline(self) -> None:
        keys = {"append": "", "upsert": ", mode: upsert, merge_keys: [id]"}
        modes = dict(self.world.modes)
        loads = [f"- {{type: delta, table: {n}{keys[modes[n]]}}}\n" for n in self.world.sinks]
        self.bench.pipeline("p", PIPELINE + "".join(loads))

    # ------------------------------------------------------------- steps

    def step(self, name: str, *, dies_at: tuple[str, int] = ("", 0)) -> None:
        """Do one thing to both, and compare them."""
        kind, *words = name.split()
        death = f", dies before {dies_at[0]} {dies_at[1]}" if dies_at[0] else ""
        self.trace.append(name + death)
        steps = {"run": self._run, "fail": self._run, "refresh": self._run, "replay": self._run}
        act = steps.get(kind) or getattr(self, f"_{kind}")
        modelled, real = act(kind, *words)
        model_says = self._in_memory(modelled, dies_at)
        real_says = self._for_real(real, dies_at)
        self._compare(model_says, real_says)

    def _in_memory(self, act: Callable[[Process], None], dies_at: tuple[str, int]) -> str:
        self.current = Process(self.world, dies_at=dies_at)
        with engines(lambda: self.current):
            try:
                act(self.current)
                said = ""
            except Died:
                said = ""
            except DeltaworksError as error:
                said = error.message
        self.world = self.current.world
        return said

    def _for_real(self, act: Callable[[], str], dies_at: tuple[str, int]) -> str:
        with _dying(*dies_at):
            try:
                return act()
            except Died:
                return ""

    def _compare(self, model_says: str, real_says: str) -> None:
        story = "\n  ".join(self.trace)
        if bool(model_says) != bool(real_says):
            raise AssertionError(
                f"after\n  {story}\nin memory: {model_says!r}, for real: {real_says!r}"
            )
        held = {name: list(self.world.rows(name)) for name, _ in self.world.modes}
        found = {name: self._rows(name) for name, _ in self.world.modes}
        aside, kept = sorted(self.world.quarantined()), self._quarantined()
        if (held, aside) != (found, kept):
            raise AssertionError(
                f"after\n  {story}\nin memory: {held}, {aside}\nfor real: {found}, {kept}"
            )

    def _rows(self, name: str) -> list[str]:
        if not (self.bench.table(name) / "_delta_log").exists():
            return []
        return sorted(row["id"] for row in self.bench.rows(name))

    def _quarantined(self) -> list[str]:
        answer = self.bench.cli("quarantine", "list", "p", "--json").json
        return [REFUSED] * sum(group["rows"] for group in answer["groups"])

    # ------------------------------------------------------------- what the steps do

    def _run(self, kind: str) -> tuple[Callable[[Process], None], Callable[[], str]]:
        options: dict[str, Any] = {"new_sinks": "backfill"}
        if kind == "refresh":
            options = {"full_refresh": True}

        def modelled(process: Process) -> None:
            if kind == "replay":
                process.run(replay=Choice())
            else:
                process.run(fails=kind == "fail", **options)

        def real() -> str:
            project = self.bench.open()
            if kind == "replay":
                result = project.replay("p", changes={"ok": "1"})
            else:
                with _failing(kind == "fail"):
                    result = project.run("p", **options)
            return "" if result.error is None else result.error.message

        return modelled, real

    def _deliver(self, _: str) -> tuple[Callable[[Process], None], Callable[[], str]]:
        def real() -> str:
            self._bring(self.world.delivered)
            return ""

        return _deliver, real

    def _restore(self, _: str, name: str, back: str) -> tuple[Any, Callable[[], str]]:
        version = max(0, len(self.world.commits(name)) - 1 - int(back))

        def real() -> str:
            if self.bench.version(name) == version:
                return ""
            words = ("--version", str(version), "--apply")
            answer = self.bench.cli("table", "restore", name, *words)
            return answer.stderr

        return lambda process: process.restore(name, version), real

    def _undo(self, _: str, back: str) -> tuple[Any, Callable[[], str]]:
        modelled = [e.run_id for e in self.current.state().batches if e.state == DONE]
        ledger = Ledger.open(
            str(self.bench.root / "warehouse"),
            project=self.bench.open().config.project_id,
            pipeline="p",
        )
        real_ones = [e.run_id for e in ledger.state().batches if e.state == DONE]
        number = -1 - int(back)

        def real() -> str:
            answer = self.bench.cli("table", "undo", real_ones[number], "--apply")
            return answer.stderr if answer.code else ""

        return lambda process: process.undo(modelled[number]), real

    def _toggle(self, _: str) -> tuple[Callable[[Process], None], Callable[[], str]]:
        def real() -> str:
            self._write_pipeline()
            return ""

        return _toggle, real

    def _recreate(self, _: str, name: str) -> tuple[Any, Callable[[], str]]:
        def real() -> str:
            DeltaTable.create(str(self.bench.table(name)), schema=SCHEMA, mode="overwrite")
            return ""

        return _recreate(name), real

    def _byhand(self, _: str, name: str) -> tuple[Any, Callable[[], str]]:
        def real() -> str:
            DeltaTable(str(self.bench.table(name))).restore(0)
            return ""

        return _by_hand(name, 0), real

    def _older(self, _: str) -> tuple[Any, Callable[[], str]]:
        """The ledger as it was after its first batch; a copy is kept for that."""

        def real() -> str:
            own = self.bench.table("_deltaworks")
            shutil.rmtree(own / "batches")
            shutil.copytree(self.root / "backup", own / "batches")
            return ""

        return _older_ledger, real

    def _move(self, _: str) -> tuple[Callable[[Process], None], Callable[[], str]]:
        """The project gets another folder, which changes nothing."""

        def real() -> str:
            self.moves += 1
            place = self.root / f"project-{self.moves}"
            shutil.move(self.bench.root, place)
            self.bench.root = place
            return ""

        return lambda _: None, real

    def back_up(self) -> None:
        """Keep the ledger as it is after the first batch."""
        shutil.copytree(self.bench.table("_deltaworks") / "batches", self.root / "backup")


@contextmanager
def _failing(fails: bool) -> Iterator[None]:
    """A check that stops the run before anything is written."""

    def judge(*_: Any) -> None:
        raise QualityError("a check stops the run")

    if not fails:
        yield
        return
    with patch.object(Attempt, "_judge", judge):
        yield


@contextmanager
def _dying(kind: str, number: int) -> Iterator[None]:
    """The process dies before an event of the ledger, or before a commit of a table."""
    owner, name = {"events": (Ledger, "_write"), "tables": (DeltaSink, "write")}.get(
        kind, (Ledger, "_write")
    )
    real, count = getattr(owner, name), [0]

    def counted(*given: Any, **more: Any) -> Any:
        if kind and count[0] == number:
            raise Died
        count[0] += 1
        return real(*given, **more)

    with patch.object(owner, name, counted):
        yield


def tell(story: SideBySide, seed: int, length: int) -> None:
    """A story that begins with a run, and ends with runs that settle everything."""
    chance = random.Random(seed)  # noqa: S311 - a story, not a secret
    story.step("run")
    story.back_up()
    for _ in range(length):
        story.step(*_chosen(story, chance))
    story.step("run")
    story.step("refresh")
    story.step("run")


def _chosen(story: SideBySide, chance: random.Random) -> Any:
    names = [name for name, _ in story.world.modes]
    done = [e for e in story.current.state().batches if e.state == DONE]
    most = [
        *(["deliver", "run", "run"] * 2),
        *(f"restore {name} {back}" for name in names for back in (1, 2, 3)),
        *(f"undo {back}" for back in range(min(2, len(done)))),
        "refresh",
        "fail",
        "replay",
        "move",
    ]
    rare = ["older", f"byhand {names[0]}", f"recreate {names[0]}"]
    name = chance.choice(rare) if chance.random() < 0.05 else chance.choice(most)
    if name == "deliver" and story.world.delivered > 4:
        name = "run"
    if len(names) > 1 and chance.random() < 0.1:
        name = "toggle"
    return (name,)
