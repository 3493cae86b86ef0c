"""Locks that end with their owner, and the JVM that may outlive it for a moment."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from deltaworks.errors import GuardError, Interrupted, StorageError
from deltaworks.runtime.cancellation import CancellationToken, by_ctrl_c
from deltaworks.storage.locks import file_lock as lock
from deltaworks.storage.locks import owner
from deltaworks.storage.locks.file_lock import locked, pipeline_lock, table_lock, writer_lock
from deltaworks.storage.locks.owner import fate, lives, named_jvm, owner_text, signature, ticks_of

HOLD = """
import sys
from pathlib import Path
from deltaworks.storage.locks.file_lock import locked
with locked([Path(p) for p in sys.argv[1:]], wait_seconds=5, notify=print):
    print("mine", flush=True)
    sys.stdin.read()
"""


@contextmanager
def other_process(*paths: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds locks until it is told to end."""
    command = [sys.executable, "-c", HOLD, *map(str, paths)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "mine\n"
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        if child.stdin is not None:
            child.stdin.close()


def silent(_: str) -> None:
    """Say nothing."""


def test_a_second_process_waits_then_gives_up_naming_the_owner(tmp_path: Path) -> None:
    path, said = tmp_path / ".orders.lock", list[str]()
    start = time.monotonic()
    with (
        other_process(path) as owner,
        pytest.raises(GuardError) as caught,
        locked([path], wait_seconds=0.3, notify=said.append),
    ):
        pass
    assert time.monotonic() - start >= 0.3
    name = f"process {owner.pid} on {socket.gethostname()}"
    assert said == [f"waiting for {name} to finish"]
    assert caught.value.message == f'"orders" is in use by {name}'
    assert "gave up after 0.3 s" in caught.value.hint
    assert caught.value.exit_code == 5


def test_who_waits_gets_the_lock_when_the_owner_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with other_process(path) as owner:
        assert owner.stdin is not None
        timer = threading.Timer(0.3, owner.stdin.close)
        timer.start()
        with locked([path], wait_seconds=10, notify=silent):
            pass
        timer.join()


def test_a_killed_owner_keeps_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with other_process(path) as owner:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        with locked([path], wait_seconds=0, notify=silent):
            assert json.loads(path.read_text())["pid"] == os.getpid()


def test_several_locks_are_taken_in_one_order_and_once_each(tmp_path: Path) -> None:
    a, b = tmp_path / "a.lock", tmp_path / "b.lock"
    with locked([b, a, b], wait_seconds=0, notify=silent) as held:
        assert len(held._files) == 2
        assert [Path(handle.name) for handle in held._files] == [a, b]


def test_when_one_of_several_is_taken_the_others_are_let_go(tmp_path: Path) -> None:
    a, b = tmp_path / "a.lock", tmp_path / "b.lock"
    with other_process(b):
        with (
            pytest.raises(GuardError, match='"b" is in use'),
            locked([a, b], wait_seconds=0, notify=silent),
        ):
            pass
        with locked([a], wait_seconds=0, notify=silent):
            pass


def leave_jvm(path: Path, pid: int, started: float, *, host: str = "") -> None:
    """What a dead owner leaves behind: its own names, and those of its JVM."""
    owner = {"host": host or socket.gethostname(), "pid": 1, "started": 1.0, "jvm": [pid, started]}
    path.write_text(json.dumps(owner))


@contextmanager
def sleeper(seconds: float) -> Iterator[psutil.Process]:
    child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
    threading.Thread(target=child.wait, daemon=True).start()
    try:
        yield psutil.Process(child.pid)
    finally:
        child.kill()
        child.wait()


def test_a_dead_owners_jvm_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with sleeper(0.6) as jvm:
        leave_jvm(path, jvm.pid, jvm.create_time())
        with locked([path], wait_seconds=10, notify=silent):
            assert not jvm.is_running()


def test_a_jvm_that_does_not_end_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with sleeper(30) as jvm:
        leave_jvm(path, jvm.pid, jvm.create_time())
        with (
            pytest.raises(GuardError, match="still at work") as caught,
            locked([path], wait_seconds=0.2, notify=silent),
        ):
            pass
        assert caught.value.hint.endswith(f"kill {jvm.pid}")


def test_another_process_with_the_jvms_number_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with sleeper(30) as stranger:
        leave_jvm(path, stranger.pid, stranger.create_time() - 100)
        with locked([path], wait_seconds=0, notify=silent):
            assert json.loads(path.read_text())["pid"] == os.getpid()


def test_a_jvm_of_another_machine_is_not_looked_for_here(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    leave_jvm(path, os.getpid(), psutil.Process().create_time(), host="elsewhere")
    with locked([path], wait_seconds=0, notify=silent):
        assert json.loads(path.read_text())["host"] == socket.gethostname()


def test_the_jvm_is_written_into_every_lock(tmp_path: Path) -> None:
    paths = [tmp_path / "a.lock", tmp_path / "b.lock"]
    with locked(paths, wait_seconds=0, notify=silent) as held:
        held.name_jvm(7, 1.5)
        assert [json.loads(path.read_text())["jvm"] for path in paths] == [[7, 1.5], [7, 1.5]]


@pytest.mark.parametrize("content", ["", "{", "[]", '"words"'])
def test_a_torn_lock_file_stops_nobody(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.lock"
    path.write_text(content)
    with locked([path], wait_seconds=0, notify=silent):
        assert json.loads(path.read_text())["pid"] == os.getpid()


ME = signature(None)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00",
        b"[" * 50_000,
        *(b'{"jvm": %s}' % jvm for jvm in (b"[]", b'["x", "y"]', b"[1e400, 1]", b"[null, null]")),
        *(json.dumps({**ME, "pid": 1, "jvm": jvm}).encode() for jvm in ([-5, 0.0], [1, None])),
    ],
)
def test_a_lock_file_that_holds_anything_else_stops_nobody(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / ".orders.lock"
    path.write_bytes(content)
    with locked([path], wait_seconds=0.1, notify=silent):
        assert json.loads(path.read_text())["pid"] == os.getpid()


@pytest.mark.parametrize(
    "wrong", [{"pid": "x"}, {"pid": -1}, {"pid": None}, {"started": "x"}, {"started": None}]
)
def test_an_owner_that_is_not_written_as_one_may_be_alive(wrong: dict[str, object]) -> None:
    assert fate({**signature(None), **wrong}) == "unknown"


def test_who_waits_alone_queues_as_soon_as_nobody_looks_at_the_queue(tmp_path: Path) -> None:
    path, alone = tmp_path / ".orders.lock", threading.Event()

    def wait_alone() -> None:
        with locked([path], wait_seconds=10, notify=silent):
            alone.set()

    queue = path.with_name(".orders.lock.queue")
    waiting = threading.Thread(target=wait_alone)
    with locked([path], wait_seconds=0, notify=silent, shared=True):
        with queue.open("a") as looked_at:
            fcntl.flock(looked_at, fcntl.LOCK_SH)
            waiting.start()
            time.sleep(0.3)
        time.sleep(0.3)
        with (
            pytest.raises(GuardError),
            locked([path], wait_seconds=0, notify=silent, shared=True),
        ):
            pass
    waiting.join()
    assert alone.is_set()


def test_a_lock_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StorageError, match="cannot be made"),
        locked([tmp_path / "file" / "a.lock"], wait_seconds=0, notify=silent),
    ):
        pass


def test_a_table_has_one_lock_by_whatever_path_it_is_reached(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert table_lock(f"{tmp_path}/link") == table_lock(f"{tmp_path}/real")
    assert table_lock(f"{tmp_path}/real").parent == tmp_path


def test_a_pipelines_lock_lies_in_the_warehouse() -> None:
    assert str(pipeline_lock("/lake", "orders")) == "/lake/_deltaworks/locks/orders.lock"


def test_a_jvm_that_is_done_with_a_lock_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "t.lock"
    with locked([path], wait_seconds=1, notify=lambda _: None) as locks:
        locks.name_jvm(1, psutil.Process(1).create_time())
        assert json.loads(path.read_text())["jvm"] is not None
    assert json.loads(path.read_text())["jvm"] is None


def test_a_run_that_is_to_stop_does_not_wait_on(tmp_path: Path) -> None:
    path, halt = tmp_path / ".orders.lock", CancellationToken()
    start = time.monotonic()
    with locked([path], wait_seconds=0, notify=silent):
        halt.ask(by_ctrl_c)
        with (
            pytest.raises(Interrupted, match="stopped by Ctrl-C, at its start"),
            locked([path], wait_seconds=60, notify=silent, while_waiting=halt.raise_if_cancelled),
        ):
            raise AssertionError("the lock was free")
    assert time.monotonic() - start < 10


def test_those_who_share_a_lock_do_not_wait_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / ".events.lock"
    with (
        locked([path], wait_seconds=0, notify=silent, shared=True),
        locked([path], wait_seconds=0, notify=silent, shared=True),
        pytest.raises(GuardError, match=f"in use by process {os.getpid()}"),
        locked([path], wait_seconds=0, notify=silent),
    ):
        pass


def test_nobody_shares_a_lock_that_somebody_has_alone(tmp_path: Path) -> None:
    path = tmp_path / ".events.lock"
    with (
        other_process(path),
        pytest.raises(GuardError, match="in use"),
        locked([path], wait_seconds=0.2, notify=silent, shared=True),
    ):
        pass


def test_who_waits_alone_goes_before_those_who_come_to_share(tmp_path: Path) -> None:
    path, waits, order = tmp_path / ".events.lock", threading.Event(), list[str]()

    def alone() -> None:
        with locked([path], wait_seconds=10, notify=silent, while_waiting=waits.set):
            order.append("alone")

    first = threading.Thread(target=alone)
    with locked([path], wait_seconds=0, notify=silent, shared=True):
        first.start()
        assert waits.wait(5)
        with (
            pytest.raises(GuardError),
            locked([path], wait_seconds=0, notify=silent, shared=True),
        ):
            pass
    with locked([path], wait_seconds=10, notify=silent, shared=True):
        order.append("shared")
    first.join()
    assert order == ["alone", "shared"]


def test_a_writer_has_a_lock_of_its_own(tmp_path: Path) -> None:
    mine = writer_lock(str(tmp_path / "events"), "ingest-1")
    assert mine == tmp_path / ".events.ingest-1.lock"


def test_a_process_that_is_gone_does_not_live() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert not lives(child.pid, 0.0)


def test_our_own_jvm_is_not_waited_for(tmp_path: Path) -> None:
    path, me = tmp_path / ".orders.lock", psutil.Process()
    path.write_text(owner_text(jvm=named_jvm(me.pid, me.create_time())), encoding="utf-8")
    with locked([path], wait_seconds=0, notify=silent):
        pass


def elsewhere(**changed: object) -> dict[str, object]:
    """A process with our id and our hostname, in another container or on another machine."""
    me = psutil.Process()
    return {**signature(named_jvm(me.pid, me.create_time())), **changed}


@pytest.mark.parametrize("place", ["namespace", "boot", "machine"])
def test_a_jvm_that_cannot_be_looked_for_gets_time_to_end(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_UNSEEN_JVM_S", 0.3)
    path, start = tmp_path / ".orders.lock", time.monotonic()
    path.write_text(json.dumps(elsewhere(**{place: "another"})), encoding="utf-8")
    with locked([path], wait_seconds=10, notify=silent):
        assert time.monotonic() - start >= 0.3


def test_who_cannot_be_seen_from_here_is_not_called_dead() -> None:
    gone = {"pid": 2**22 + 1, "ticks": 1, "jvm": None, "jvm_ticks": None}
    assert fate(elsewhere(**gone)) == "gone"
    for place in ("namespace", "boot", "machine"):
        assert fate(elsewhere(**gone, **{place: "another"})) == "unknown"
    before_these_words = {"host": socket.gethostname(), "pid": 2**22 + 1, "started": 1.0}
    assert fate(before_these_words) == "unknown"


def test_a_python_that_is_gone_is_told_from_one_whose_jvm_works_on() -> None:
    gone = {"pid": 2**22 + 1, "ticks": 1}
    assert fate(elsewhere()) == "alive"
    assert fate(elsewhere(ticks=1)) == "only jvm"  # its id was given to us since
    assert fate(elsewhere(**gone)) == "only jvm"
    assert fate(elsewhere(**gone, jvm_ticks=1)) == "gone"


def test_a_clock_that_was_set_makes_nobody_a_stranger() -> None:
    """By the wall's clock a process started when it did not, once that clock was set."""
    me = psutil.Process()
    ticks = ticks_of(me.pid)
    assert ticks is not None
    assert lives(me.pid, me.create_time() - 3600, ticks)
    assert not lives(me.pid, me.create_time(), ticks + 1)


def test_where_nobody_tells_the_namespace_nobody_is_called_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a namespace of its own under the /proc of another one."""
    monkeypatch.setattr(owner, "_place", owner._place.__wrapped__)
    monkeypatch.setattr(Path, "readlink", lambda _: Path("1"))
    mine = elsewhere()
    assert (mine["namespace"], fate(mine)) == ("", "unknown")

    def unreadable(_: Path) -> Path:
        raise PermissionError

    monkeypatch.setattr(Path, "readlink", unreadable)
    assert elsewhere()["namespace"] == ""
    assert (owner._started(2**22 + 1), ticks_of(2**22 + 1)) == (0.0, None)


def test_a_lock_file_that_was_replaced_before_it_was_locked_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / ".orders.lock"

    def replace() -> None:  # while somebody waits for the file that had the name
        if path.read_text(encoding="utf-8") != "":
            path.unlink()
            path.touch()
            first.close()

    first = path.open("a+", encoding="utf-8")
    first.write("{}")
    first.flush()
    fcntl.flock(first, fcntl.LOCK_EX)
    with (
        locked([path], wait_seconds=5, notify=silent, while_waiting=replace),
        pytest.raises(GuardError, match="in use"),
        locked([path], wait_seconds=0, notify=silent),
    ):
        pass


def test_a_run_whose_lock_file_was_removed_is_told(tmp_path: Path) -> None:
    path = tmp_path / ".orders.lock"
    with locked([path], wait_seconds=0, notify=silent) as held:
        held.require()
        path.unlink()
        with pytest.raises(GuardError, match="was removed while this run held it"):
            held.require()
        path.touch()
        with pytest.raises(GuardError, match="was removed"):
            held.require()


def test_two_threads_of_one_process_do_not_share_a_lock(tmp_path: Path) -> None:
    path, inside, most = tmp_path / ".orders.lock", list[int](), list[int]()

    def work(n: int) -> None:
        with locked([path], wait_seconds=10, notify=silent):
            inside.append(n)
            most.append(len(inside))
            time.sleep(0.05)
            inside.remove(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


FORK = """
import os, sys, time
from pathlib import Path
from deltaworks.storage.locks.file_lock import locked
path = Path(sys.argv[1])
with locked([path], wait_seconds=0, notify=print):
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
with locked([path], wait_seconds=0, notify=print):
    grandchild = os.fork()
    if grandchild == 0:
        sys.exit(0)
    os.waitpid(grandchild, 0)
    try:
        with locked([path], wait_seconds=0, notify=print):
            print("a fork let go of it")
    except Exception as error:
        print(error)
os.kill(child, 9)
os.waitpid(child, 0)
"""


def test_a_fork_neither_keeps_a_lock_nor_lets_go_of_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORK, str(tmp_path / ".orders.lock")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"orders" is in use' in done.stdout


def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_handle: object, _how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(StorageError, match="cannot be taken: No locks available"),
        locked([tmp_path / "a.lock"], wait_seconds=0, notify=silent),
    ):
        pass
