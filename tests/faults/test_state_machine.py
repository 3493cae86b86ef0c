"""Any order of loads, cuts, reruns, restores and maintenance ends in what a dict says (B3, M1).

Two pipelines read the same files: one merges them by key, rows marked `D` deleting theirs; one
appends them. The model knows nothing of batches: whenever a pipeline has run to its end, its table
must hold every file once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.faults.test_batches import PHASES, Cut, cut_at
from tests.workbench import Workbench

MERGED, ADDED = "merged", "added"
SOURCE = (
    'extract: {type: csv, path: "in/*.csv", schema: "id int, v int, n int, op string", '
    "incremental: true}\n"
)
PIPELINES = {
    MERGED: f"""{SOURCE}
load:
  type: delta
  table: merged
  mode: upsert
  merge_keys: [id]
  delete_condition: source.op = 'D'
  update_condition: source.n > target.n
  duplicates: {{keep: newest, by: n}}
""",
    ADDED: f"{SOURCE}load: {{type: delta, table: added}}\n",
}
EXAMPLES = int(os.environ.get("DELTAWORKS_STORIES", "1"))
STEPS = int(os.environ.get("DELTAWORKS_STORY_STEPS", "9"))

row = st.tuples(st.integers(0, 5), st.integers(0, 99), st.sampled_from("UUUD"))
file = st.lists(row, min_size=1, max_size=4, unique_by=lambda cells: cells[0])
pipeline = st.sampled_from([MERGED, ADDED])


class Story(RuleBasedStateMachine):
    """One project, and what its tables must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="story-"))
        self.bench = Workbench(self.root)
        self.files: list[list[tuple[int, int, int, str]]] = []

    @initialize(rows=file)
    def begin(self, rows: list[tuple[int, int, str]]) -> None:
        for name, text in PIPELINES.items():
            self.bench.pipeline(name, text)
        self.deliver([*rows, (9, 0, "U")])
        for name in PIPELINES:
            self.load(name)

    @rule(rows=file)
    def deliver(self, rows: list[tuple[int, int, str]]) -> None:
        """A new file; each row is newer than all before it."""
        n = len(self.files)
        self.files.append([(key, value, n, op) for key, value, op in rows])
        lines = "".join(f"{','.join(map(str, cells))}\n" for cells in self.files[-1])
        self.bench.write(f"in/{n:04d}.csv", f"id,v,n,op\n{lines}")

    @rule(name=pipeline)
    def load(self, name: str) -> None:
        """A run that ends well leaves the table as the model says; a second one changes nothing."""
        self.bench.run(name)
        assert self.table(name) == self.model(name)

    @rule(name=pipeline, phase=st.sampled_from(sorted(PHASES)))
    def cut(self, name: str, phase: str) -> None:
        """A run that ends in the middle, as if its process had been killed."""
        try:
            self.bench.open(listeners=[cut_at(PHASES[phase])]).run(name)
        except Cut:
            return

    @rule(name=pipeline, back=st.integers(1, 3))
    def restore(self, name: str, back: int) -> None:
        """The table goes back; the next run brings what it lost."""
        latest = self.bench.version(name)
        assert latest is not None
        version = max(0, latest - back)
        answered = self.bench.cli("table", "restore", name, "--version", str(version), "--apply")
        assert answered.code == 0 or version == latest, answered.stderr
        self.load(name)

    @rule(name=pipeline)
    def compact(self, name: str) -> None:
        """Another tool joins the files."""
        DeltaTable(str(self.bench.table(name))).optimize.compact()

    @precondition(lambda self: len(self.files) > 2)
    @rule(name=pipeline)
    def refresh(self, name: str) -> None:
        """Everything is loaded anew."""
        self.bench.run(name, "--full-refresh")
        assert self.table(name) == self.model(name)

    def model(self, name: str) -> list[tuple[Any, ...]]:
        """What a table must hold once every file is in, worked out without any code of ours."""
        if name == ADDED:
            return sorted(cells for rows in self.files for cells in rows)
        held: dict[int, tuple[Any, ...]] = {}
        for cells in (cells for rows in self.files for cells in rows):
            if cells[3] == "D":
                held.pop(cells[0], None)
            else:
                held[cells[0]] = cells
        return sorted(held.values())

    def table(self, name: str) -> list[tuple[Any, ...]]:
        names = ("id", "v", "n", "op")
        return sorted(tuple(found[key] for key in names) for found in self.bench.rows(name))

    def teardown(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


@pytest.mark.timeout(0)
def test_any_story_ends_as_the_model_says(jvm: object) -> None:  # noqa: ARG001 - it must be up
    run_state_machine_as_test(
        Story,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=EXAMPLES == 1,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
