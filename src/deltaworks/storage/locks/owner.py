"""Who holds a lock: a process of a machine, and the JVM that works for it.

A process id says nothing by itself. Containers number their processes each for themselves, two
machines may have one hostname, and an id is used again. So an owner also says which boot of which
machine and which namespace its ids belong to, and how long after that boot its process started.
Only who shares boot and namespace can tell that an owner is gone.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import psutil

Owner = dict[str, object]
"""Who signed a lock, as it was written."""
Fate = Literal["gone", "only jvm", "alive", "unknown"]
"""What can be told of an owner from here; "only jvm": its Python is gone, its JVM is not."""
_PLACE = ("machine", "boot", "namespace")
_AFTER_NAME = 19
"""Where the start of a process is, among the words of its `stat` after its name."""


class Jvm(NamedTuple):
    """A process by its id and its start: by the clock of the wall, and in ticks since boot."""

    pid: int
    started: float
    ticks: int | None = None

    def is_alive(self) -> bool:
        """Whether it is still there."""
        return lives(self.pid, self.started, self.ticks)


def named_jvm(pid: int, started: float) -> Jvm:
    """A JVM of this machine, to be written down."""
    return Jvm(pid, started, ticks_of(pid))


def signature(jvm: Jvm | None) -> Owner:
    """This process and its JVM, as others read them."""
    pid = os.getpid()
    return {
        "host": socket.gethostname(),
        "pid": pid,
        "started": _started(pid),
        **_place(pid),
        "jvm": None if jvm is None else [jvm.pid, jvm.started],
        "jvm_ticks": None if jvm is None else jvm.ticks,
    }


def owner_text(*, jvm: Jvm | None) -> str:
    """The same as the content of a lock."""
    return json.dumps(signature(jvm))


def read_owner(text: str) -> Owner:
    """Who signed; empty when nobody can be told."""
    try:
        owner = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return owner if isinstance(owner, dict) else {}


def shown_owner(owner: Owner) -> str:
    """An owner, for the message of who has to wait."""
    return f"process {owner.get('pid', '?')} on {owner.get('host', 'this machine')}"


def is_me(owner: Owner) -> bool:
    """Whether this very process signed."""
    pid = os.getpid()
    return owner.get("pid") == pid and all(
        owner.get(name) == value for name, value in _place(pid).items()
    )


def jvm_of(owner: Owner) -> Jvm | None:
    """The JVM of another process; None when there is none, or it is our own."""
    jvm = owner.get("jvm")
    if not isinstance(jvm, list) or is_me(owner):
        return None
    pid, started = [*jvm, None, None][:2]
    return _process(pid, started, owner.get("jvm_ticks"))


def _process(pid: object, started: object, ticks: object) -> Jvm | None:
    """A process as somebody wrote it down; None when it is not written as one."""
    if not isinstance(pid, int) or not isinstance(started, int | float) or pid <= 0:
        return None
    return Jvm(pid, float(started), ticks if isinstance(ticks, int) else None)


def is_visible(owner: Owner) -> bool:
    """Whether the owner's processes, if they are alive, are surely among those seen here."""
    here = _place(os.getpid())
    known = bool(here["boot"] and here["namespace"])
    return known and all(owner.get(name) == here[name] for name in _PLACE)


def may_be_visible(owner: Owner) -> bool:
    """The same, as far as an owner tells that did not yet say where its ids belong."""
    old = not owner.get("boot") and owner.get("host") == socket.gethostname()
    return old or is_visible(owner)


def fate(owner: Owner) -> Fate:
    """Whether an owner is alive; whoever cannot be seen from here may be."""
    if not is_visible(owner):
        return "unknown"
    me = _process(owner.get("pid"), owner.get("started"), owner.get("ticks"))
    if me is None:
        return "unknown"
    if me.is_alive():
        return "alive"
    jvm = jvm_of(owner)
    return "only jvm" if jvm is not None and jvm.is_alive() else "gone"


def lives(pid: int, started: float, ticks: int | None = None) -> bool:
    """Whether a process is still the one that was started then.

    Ticks since boot decide where they are known: what the wall's clock says of a start moves when
    that clock is set.
    """
    try:
        process = psutil.Process(pid)
        is_same = abs(process.create_time() - started) < 1
        if ticks is not None:
            is_same = ticks_of(pid) == ticks
        return bool(is_same and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def ticks_of(pid: int) -> int | None:
    """How long after boot a process started, by the kernel's count; None where nobody tells."""
    words = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(words[_AFTER_NAME]) if len(words) > _AFTER_NAME else None


def _started(pid: int) -> float:
    with suppress(psutil.NoSuchProcess):
        return float(psutil.Process(pid).create_time())
    return 0.0


@lru_cache(maxsize=1)
def _place(pid: int) -> dict[str, object]:
    """Which process has an id of ours, and among whom; a part that nobody tells is empty."""
    return {
        "ticks": ticks_of(pid),
        "machine": _text("/etc/machine-id"),
        "boot": _text("/proc/sys/kernel/random/boot_id"),
        "namespace": _namespace(pid),
    }


def _namespace(pid: int) -> str:
    """The namespace of our ids; empty where /proc shows those of another one."""
    with suppress(OSError):
        is_ours = str(Path("/proc/self").readlink()) == str(pid)
        return str(Path("/proc/self/ns/pid").readlink()) if is_ours else ""
    return ""


def _text(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    return ""
