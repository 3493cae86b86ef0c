"""What disks, clocks and other people do to tables: named, never fewer rows in silence."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.api import Project
from deltaworks.config.project import load_project
from deltaworks.engines.deltars.log.commits import check_log
from deltaworks.errors import DamagedCheckpoint
from deltaworks.model.events import Event, StageStarted
from tests.workbench import Workbench

INCREMENTAL = """
extract: {type: csv, path: "in/*.csv", schema: "id bigint, v string", incremental: true}
load: {type: delta, table: t}
"""


def table_with_checkpoint(folder: Path) -> Path:
    """Five commits of one row each, and a checkpoint of the last; answers where that is."""
    for i in range(5):
        write_deltalake(str(folder), pa.table({"id": [i], "v": ["a"]}), mode="append")
    DeltaTable(str(folder)).create_checkpoint()
    return folder / "_delta_log" / f"{4:020d}.checkpoint.parquet"


def without_one_file(checkpoint: Path) -> None:
    actions = pq.read_table(checkpoint)
    paths = pc.struct_field(actions["add"].combine_chunks(), "path")
    lost = pc.fill_null(pc.equal(paths, pc.drop_null(paths)[0]), False)
    pq.write_table(actions.filter(pc.invert(lost)), checkpoint)


def test_a_checkpoint_that_tells_the_truth_is_believed(desk: Workbench) -> None:
    checkpoint = table_with_checkpoint(desk.table("t"))
    assert desk.cli("table", "show", "t", "--json").json["rows"] == 5
    pq.write_table(pq.read_table(checkpoint), checkpoint, write_statistics=False)
    assert check_log(str(desk.table("t"))) is not None
    pq.write_table(pa.table({"version": [1]}), checkpoint)
    for name in (checkpoint.name, f"{4:020d}.checkpoint.some-uuid.parquet"):
        checkpoint = checkpoint.rename(checkpoint.with_name(name))
        with pytest.raises(DamagedCheckpoint, match="lists 0 files, and there were 5"):
            check_log(str(desk.table("t")))


def test_a_lying_checkpoint_is_refused(desk: Workbench) -> None:
    without_one_file(table_with_checkpoint(desk.table("t")))
    answered = desk.cli("table", "show", "t")
    assert answered.code == 4
    assert "checkpoint 4 lists 4 files, and there were 5" in answered.stderr


def test_a_torn_checkpoint_is_refused(desk: Workbench) -> None:
    checkpoint = table_with_checkpoint(desk.table("t"))
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    answered = desk.cli("table", "show", "t")
    assert answered.code == 4
    assert "checkpoint 4 is torn" in answered.stderr


def test_nothing_is_loaded_on_top_of_a_lying_checkpoint(bench: Workbench) -> None:
    without_one_file(table_with_checkpoint(bench.table("t")))
    bench.pipeline("t", INCREMENTAL)
    bench.write("in/a.csv", "id,v\n9,z\n")
    answered = bench.fail("t")
    assert answered.code == 4
    assert "checkpoint 4" in answered.stderr
    assert not (bench.table("t") / "_delta_log" / f"{5:020d}.json").exists()


def test_a_file_that_grows_while_it_is_read_is_not_loaded_in_part(bench: Workbench) -> None:
    path = bench.write("in/a.csv", "id,v\n1,a\n")
    bench.pipeline("t", INCREMENTAL + "checks: [{type: not_null, columns: [id]}]\n")

    def grow(event: Event) -> None:
        if isinstance(event, StageStarted) and event.kind == "check":
            with path.open("a", encoding="utf-8") as file:
                file.write("2,b\n")

    result = bench.open(listeners=[grow]).run("t")
    assert result.error is not None
    assert "changed while it was read" in result.error.message
    assert bench.version("t") is None
    bench.run("t")
    assert [row["id"] for row in bench.rows("t")] == [1, 2]


class SetClock:
    """A clock that stands where it is put."""

    def __init__(self, now: datetime) -> None:
        self.moment = now

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.moment.timestamp()


def test_a_clock_that_is_set_back_loses_and_doubles_nothing(bench: Workbench) -> None:
    bench.pipeline("t", INCREMENTAL)
    clock = SetClock(datetime(2026, 6, 2, tzinfo=UTC))
    for i, name in enumerate("abc"):
        bench.write(f"in/{name}.csv", f"id,v\n{i},{name}\n")
        config = load_project(bench.root, environ={})
        result = Project(config, clock=clock).run("t")
        assert result.error is None
        clock.moment -= timedelta(days=1)
    assert [row["id"] for row in bench.rows("t")] == [0, 1, 2]
    assert bench.run("t")["status"] == "skipped"
    assert len(bench.cli("runs", "list", "--json").json["runs"]) == 4


def injected(bench: Workbench, path: Path, *calls: str) -> Any:
    """A run in a child whose system calls on one file fail with EIO."""
    program = [sys.executable, "-m", "deltaworks", "run", "t", "--quiet"]
    tracer = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", str(bench.root / "trace")]
    rule = ["-e", f"trace={','.join(calls)}", "-e", f"inject={','.join(calls)}:error=EIO"]
    command = [*tracer, "-P", str(path), *rule, *program, "--project", str(bench.root)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_a_disk_that_cannot_be_read_is_named_and_nothing_is_loaded(bench: Workbench) -> None:
    if shutil.which("strace") is None:
        pytest.skip("a failing disk is played by strace, which is not installed")
    bench.pipeline("t", INCREMENTAL)
    path = bench.write("in/a.csv", "id,v\n1,a\n")
    answered = injected(bench, path, "read", "pread64")
    if "ptrace" in answered.stderr.lower() and "not permitted" in answered.stderr:
        pytest.skip("this system does not let strace follow a process")
    assert answered.returncode in (1, 4), answered.stderr
    assert "Input/output error" in answered.stderr
    assert "Traceback" not in answered.stderr
    assert len(answered.stderr.strip().splitlines()) <= 6
    assert bench.version("t") is None
    bench.run("t")
    assert [row["id"] for row in bench.rows("t")] == [1]
