"""Who holds a lock: a process of a machine, and the JVM that works for it."""

from __future__ import annotations

import json
import os
import socket

import psutil

Jvm = tuple[int, float]
"""A process by its id and the moment it was started."""


def owner_text(*, jvm: Jvm | None, **more: object) -> str:
    """This process, as others read it."""
    me = psutil.Process()
    owner = {
        "host": socket.gethostname(),
        "pid": me.pid,
        "started": me.create_time(),
        "jvm": jvm,
    }
    return json.dumps({**owner, **more})


def read_owner(text: str) -> dict[str, object]:
    """Who signed; empty when nobody can be told."""
    try:
        owner = json.loads(text or "{}")
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def shown_owner(owner: dict[str, object]) -> str:
    """An owner, for the message of who has to wait."""
    return f"process {owner.get('pid', '?')} on {owner.get('host', 'this machine')}"


def jvm_of(owner: dict[str, object]) -> Jvm | None:
    """The JVM of another process of this machine; None when there is none to wait for."""
    jvm = owner.get("jvm")
    if not isinstance(jvm, list) or not is_here(owner) or owner.get("pid") == os.getpid():
        return None
    return int(jvm[0]), float(jvm[1])


def is_here(owner: dict[str, object]) -> bool:
    """Whether the owner is, or was, a process of this machine."""
    return owner.get("host") == socket.gethostname()


def is_dead(owner: dict[str, object]) -> bool:
    """Whether the owner was a process of this machine, and it and its JVM are gone."""
    if not is_here(owner):
        return False
    mine = (int(str(owner.get("pid", 0))), float(str(owner.get("started", 0))))
    jvm = jvm_of(owner)
    return not lives(*mine) and (jvm is None or not lives(*jvm))


def lives(pid: int, started: float) -> bool:
    """Whether a process is still the one that was started then."""
    try:
        process = psutil.Process(pid)
        is_same = abs(process.create_time() - started) < 1
        return bool(is_same and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
