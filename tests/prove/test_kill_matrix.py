"""Kill -9 of Python, of its JVM, or of both, in every phase of every kind of load (B3).

Each cell loads a batch, is killed in the middle of a second one, and is run again at once. The
tables, quarantine included, must then equal what plain Python works out from the same files. One
line of JSON per landed kill goes to docs/proofs/kills.jsonl, and cells that are there often enough
are passed over, so that the proof can be made over several nights.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.workbench import Workbench

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "docs" / "proofs" / "kills.jsonl"
TIMES = int(os.environ.get("DELTAWORKS_KILLS", "2"))
VICTIMS = ("python", "jvm", "both")
PHASES = ("planned", "reading", "quarantined", "files_written", "committed", "finished")
SOURCE = 'extract: {type: csv, path: "in/*.csv", schema: "id int, v string, ts int"INC}\n'
CHECK = 'checks:\n  - {type: expression, rule: "id < 100", on_fail: quarantine}\n'
INC = ", incremental: true"
UPSERT = "load: {type: delta, table: t, mode: upsert, merge_keys: [id]}\n"
TWO = f"load:\n- {{type: delta, table: u}}\n- {UPSERT.removeprefix('load: ')}"
LOADS = {
    "append": ("load: {type: delta, table: t}\n", INC),
    "upsert": (UPSERT.replace("[id]", "[id], duplicates: {keep: newest, by: ts}"), ""),
    "incremental_upsert": (UPSERT, INC),
    "overwrite": ("load: {type: delta, table: t, mode: overwrite}\n", ""),
    "replace_where": (
        'load: {type: delta, table: t, mode: overwrite, replace_where: "id >= 0"}\n',
        "",
    ),
    "scd2": (
        "load: {type: delta, table: t, mode: scd2, merge_keys: [id], sequence_by: ts}\n",
        INC,
    ),
    "two_sinks": (TWO, INC),
}
FILES = {"a": [(1, "a", 10), (2, "a", 10), (101, "bad", 1)], "b": [(3, "b", 20), (102, "bad", 2)]}
CHANGES = {"b": [(2, "b", 20)]}
"""Rows of the second file that meet rows of the first, for loads that know keys."""

CHILD = """
import os, signal, sys, threading, time
from pathlib import Path
import psutil
from deltaworks.api import Project

root, phase, victim, table = sys.argv[1:5]
folder = Path(root) / "warehouse" / table


def strike():
    me = psutil.Process()
    java = [p for p in me.children(recursive=True) if p.name() == "java"]
    if victim in ("jvm", "both"):
        for process in java:
            process.kill()
    if victim in ("python", "both"):
        os.kill(me.pid, signal.SIGKILL)
    if victim == "jvm" and not java:
        os._exit(75)  # nothing to kill yet


def watch():
    names = {path.name for path in folder.rglob("*.parquet")}
    commits = len(list((folder / "_delta_log").glob("*.json")))
    while len(list((folder / "_delta_log").glob("*.json"))) == commits:
        if {path.name for path in folder.rglob("*.parquet")} - names:
            strike()
            return
        time.sleep(0.0005)


def listen(event):
    name, kind = type(event).__name__, getattr(event, "kind", "")
    if phase == "planned" and name == "BatchPlanned":
        strike()
    if phase == "reading" and name == "StageStarted" and kind == "check":
        strike()
    if phase == "quarantined" and name == "StageStarted" and kind == "load":
        strike()
    if phase == "files_written" and name == "StageStarted" and kind == "load":
        threading.Thread(target=watch, daemon=True).start()
    if phase == "committed" and name == "Committed":
        strike()
    if phase == "finished" and name == "RunFinished":
        strike()


result = Project.open(root, listeners=[listen]).run("p")
print(result.error, file=sys.stderr)
sys.exit(0 if result.error is None else 4)
"""

pytestmark = [pytest.mark.prove, pytest.mark.timeout(0)]


def cells() -> Iterator[tuple[str, str, str, int]]:
    done: dict[tuple[str, ...], int] = {}
    for line in LOG.read_text(encoding="utf-8").splitlines() if LOG.exists() else ():
        cell = json.loads(line)
        key = (cell["load"], cell["phase"], cell["victim"])
        done[key] = done.get(key, 0) + 1
    for load in LOADS:
        for phase in PHASES:
            for victim in VICTIMS:
                for n in range(done.get((load, phase, victim), 0), TIMES):
                    yield load, phase, victim, n


def write(bench: Workbench, load: str, name: str) -> None:
    keyed = "append" not in load
    rows = [*FILES[name], *(CHANGES.get(name, []) if keyed else [])]
    lines = "".join(f"{a},{b},{c}\n" for a, b, c in rows)
    bench.write(f"in/{name}.csv", f"id,v,ts\n{lines}")


def prepared(bench: Workbench, load: str) -> None:
    """A project whose first batch is in; the second waits."""
    text, incremental = LOADS[load]
    bench.pipeline("p", SOURCE.replace("INC", incremental) + CHECK + text)
    write(bench, load, "a")
    bench.run("p")
    write(bench, load, "b")


def model(load: str) -> dict[str, list[tuple[Any, ...]]]:
    """What the tables must hold in the end, worked out without any code of ours."""
    first = [row for row in FILES["a"] if row[0] < 100]
    second = [row for row in FILES["b"] if row[0] < 100]
    changed = CHANGES["b"]
    if load == "append":
        return {"t": sorted([*first, *second])}
    newest = {row[0]: row for row in [*first, *second, *changed]}
    if load in ("overwrite", "replace_where"):
        return {"t": sorted([*first, *second, *changed])}
    if load == "scd2":
        history = [(1, "a", 10, 10, None), (2, "a", 10, 10, 20), (2, "b", 20, 20, None)]
        return {"t": sorted([*history, (3, "b", 20, 20, None)], key=repr)}
    found = {"t": sorted(newest.values())}
    if load == "two_sinks":
        found["u"] = sorted([*first, *second, *changed])
    return found


def tables(bench: Workbench, load: str) -> dict[str, list[tuple[Any, ...]]]:
    names = ("id", "v", "ts", *(("valid_from", "valid_to") if load == "scd2" else ()))
    wanted = ("t", "u") if load == "two_sinks" else ("t",)
    return {
        table: sorted(
            (tuple(row[name] for name in names) for row in bench.rows(table)),
            key=repr if load == "scd2" else None,
        )
        for table in wanted
    }


def set_aside(bench: Workbench) -> list[int]:
    return sorted(json.loads(row["row"])["id"] for row in bench.rows("p__quarantine"))


@pytest.mark.parametrize(("load", "phase", "victim", "n"), list(cells()))
def test_a_killed_batch_lands_once(
    bench: Workbench, load: str, phase: str, victim: str, n: int
) -> None:
    prepared(bench, load)
    command = [sys.executable, "-c", CHILD, str(bench.root), phase, victim, "t"]
    killed = subprocess.run(command, check=False, timeout=600, capture_output=True, text=True)
    if killed.returncode == 75:
        pytest.skip("no JVM has started in this phase, so there is none to kill")
    if victim != "jvm":
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = {"exit": killed.returncode, "version": bench.version("t"), "rows": tables(bench, load)}
    bench.run("p")  # at once, while an old JVM may still live
    assert tables(bench, load) == model(load)
    once = [101, 102] if LOADS[load][1] == INC else [101, 101, 102]
    assert set_aside(bench) == once
    again = bench.run("p")
    assert tables(bench, load) == model(load), again
    LOG.parent.mkdir(exist_ok=True)
    line = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": load,
        "phase": phase,
        "victim": victim,
        "n": n,
        "left": left,
    }
    with LOG.open("a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")
    shutil.rmtree(bench.root, ignore_errors=True)
