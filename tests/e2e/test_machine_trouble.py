"""A full disk, a locked door, a damaged log, Ctrl-C: told shortly, and every table as it was."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.e2e.screens import assert_screen, assert_short_and_clear
from tests.workbench import Answer, Workbench, run_cli

pytestmark = pytest.mark.spark
DELTAWORKS = (sys.executable, "-m", "deltaworks")
PIPELINE = """
extract: {type: csv, path: data/orders.csv, schema: "id bigint, note string"}
load: {type: delta, table: orders}
"""
IS_ROOT = os.geteuid() == 0


def seed(bench: Workbench, *, rows: int = 2) -> None:
    """A table of two commits, and a pipeline that appends to it."""
    import pyarrow as pa

    for start in (0, 2):
        ids = pa.table({"id": pa.array([start, start + 1], pa.int64()), "note": ["a", "b"]})
        write_deltalake(str(bench.table("orders")), ids, mode="append")
    lines = (f"{i},{i:x}\n" for i in range(rows))
    bench.write("data/orders.csv", "id,note\n" + "".join(lines))
    bench.pipeline("orders", PIPELINE)


def log_of(bench: Workbench) -> dict[str, bytes]:
    """Every file of the table's log, with its content."""
    log = bench.table("orders") / "_delta_log"
    return {path.name: path.read_bytes() for path in sorted(log.iterdir())}


def in_process(command: str) -> Answer:
    return run_cli(*command.split())


def in_child(bench: Workbench, *command: str) -> Answer:
    done = subprocess.run(
        command, cwd=bench.root, capture_output=True, text=True, check=False, timeout=240
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def damaged(bench: Workbench, content: bytes) -> None:
    (bench.table("orders") / "_delta_log" / f"{1:020d}.json").write_bytes(content)


DAMAGE = {"an_empty_commit": b"", "a_torn_commit": b'{"add": {"path": "part-0'}
COMMANDS = {
    "written": "run orders --quiet",
    "read": "run copy --quiet",
    "shown": "table show orders",
}


@pytest.mark.parametrize("what", DAMAGE)
@pytest.mark.parametrize("use", COMMANDS)
def test_a_damaged_log_is_named_and_left_alone(
    what: str, use: str, bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bench.root)
    seed(bench)
    bench.pipeline("copy", "extract: {type: delta, table: orders}\nload: {type: delta, table: c}\n")
    damaged(bench, DAMAGE[what])
    before = log_of(bench)
    answer = in_process(COMMANDS[use])
    assert_screen(f"{what}_{use}", f"deltaworks {COMMANDS[use]}", answer, bench.root)
    assert answer.code == 4
    assert_short_and_clear(answer)
    assert "commit 1" in answer.stderr
    assert log_of(bench) == before


def without_override() -> list[str]:
    """What makes a command obey file modes, which root does not by itself."""
    if not IS_ROOT:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root obeys no file mode, and there is no setpriv to make it")
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def test_a_warehouse_that_may_not_be_written_is_named_before_spark_starts(
    bench: Workbench,
) -> None:
    seed(bench)
    before = log_of(bench)
    warehouse = bench.root / "warehouse"
    warehouse.chmod(0o555)
    try:
        command = (*without_override(), *DELTAWORKS, "run", "orders", "--quiet")
        answer = in_child(bench, *command)
    finally:
        warehouse.chmod(0o755)
    assert_screen(
        "no_permission_in_the_warehouse", "deltaworks run orders --quiet", answer, bench.root
    )
    assert answer.code == 4
    assert_short_and_clear(answer)
    assert log_of(bench) == before


def test_a_table_that_may_not_be_written_is_named(bench: Workbench) -> None:
    seed(bench)
    before = log_of(bench)
    folders = (bench.table("orders"), bench.table("orders") / "_delta_log")
    for folder in folders:
        folder.chmod(0o555)
    try:
        command = (*without_override(), *DELTAWORKS, "run", "orders", "--quiet")
        answer = in_child(bench, *command)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert_screen("no_permission_in_the_table", "deltaworks run orders --quiet", answer, bench.root)
    assert answer.code == 4
    assert_short_and_clear(answer)
    assert log_of(bench) == before


SMALL_DISK = """
set -e
mv warehouse full
mkdir warehouse
mount -t tmpfs -o size=4m none warehouse
cp -r full/. warehouse
code=0
"$@" || code=$?
rm -r full
cp -r warehouse full
exit $code
"""


def test_a_full_disk_is_named_and_the_table_stays(bench: Workbench) -> None:
    may_mount = ["unshare", "--mount", "true"]
    if not IS_ROOT or subprocess.run(may_mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("a small disk needs a mount namespace, which only root may make")
    seed(bench, rows=600_000)
    before = log_of(bench)
    script = ("unshare", "--mount", "sh", "-c", SMALL_DISK, "sh")
    answer = in_child(bench, *script, *DELTAWORKS, "run", "orders", "--quiet")
    shutil.rmtree(bench.root / "warehouse")
    (bench.root / "full").rename(bench.root / "warehouse")
    assert_screen("disk_full", "deltaworks run orders --quiet", answer, bench.root)
    assert answer.code == 4
    assert_short_and_clear(answer)
    assert log_of(bench) == before


# a shell's background jobs, and all that they start, ignore Ctrl-C unless told otherwise
SCRIPT = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('deltaworks', run_name='__main__', alter_sys=True)"
)
LISTENING = (sys.executable, "-c", SCRIPT)
SLOW = """
extract: {type: csv, path: data/orders.csv, schema: "id bigint, note string"}
transform:
  - type: sql
    query: >-
      select id, note from input
      where id + (select max(hash(r.id)) from range(${var:rows}) r) is not null
load: {type: delta, table: orders}
"""


def wait_for(log: Path, words: str, child: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while words not in log.read_text(encoding="utf-8"):
        if child.poll() is not None or time.monotonic() > end:
            child.kill()
            pytest.fail(f"it never said {words}: {log.read_text(encoding='utf-8')}")
        time.sleep(0.1)


def still_there(session: int) -> list[str]:
    """What lives on of a child and all it started."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline())[:80])
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


@pytest.mark.parametrize("seconds", [0.2, 2.0])
def test_ctrl_c_while_spark_starts_leaves_no_java_behind(desk: Workbench, seconds: float) -> None:
    seed(desk)
    said = desk.root / "said.txt"
    with said.open("w", encoding="utf-8") as stderr:
        child = subprocess.Popen(
            [*LISTENING, "run", "orders"],
            cwd=desk.root,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
        wait_for(said, "starting Spark", child)
        time.sleep(seconds)
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(timeout=60) == 130
    assert "Traceback" not in said.read_text(encoding="utf-8")
    end = time.monotonic() + 10
    while still_there(child.pid) and time.monotonic() < end:
        time.sleep(0.1)
    assert still_there(child.pid) == []


def test_ctrl_c_stops_spark_cleanly_and_a_rerun_works(bench: Workbench) -> None:
    seed(bench)
    bench.pipeline("orders", SLOW)
    before = log_of(bench)
    said = bench.root / "said.txt"
    with said.open("w", encoding="utf-8") as stderr:
        child = subprocess.Popen(
            [*LISTENING, "run", "orders", "--var", "rows=900000000000"],
            cwd=bench.root,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,  # as a terminal has it: Ctrl-C reaches the whole group
        )
        wait_for(said, "load orders", child)
        time.sleep(3)
        os.killpg(child.pid, signal.SIGINT)
        stdout, _ = child.communicate(timeout=60)
    answer = Answer(child.returncode, stdout, said.read_text(encoding="utf-8"))
    assert_screen("ctrl_c", "deltaworks run orders", answer, bench.root)
    assert answer.code == 130
    assert_short_and_clear(answer)
    assert log_of(bench) == before
    again = bench.run("orders", "--var", "rows=1")
    assert again["batches"][-1]["outputs"][0]["rows_inserted"] == 2
    assert DeltaTable(str(bench.table("orders"))).version() == 2
