"""How much memory there is, how much of it Spark's driver gets, and how it is collected."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import psutil

_LIMIT_FILES = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_COLLECTOR = re.compile(r"-XX:[+-]Use\w+GC\b")
_MEBIBYTE = 1024 * 1024
_DRIVER_SHARE = 0.4
_DRIVER_MOST_MEBIBYTES = 4096
_DRIVER_USUAL_MEBIBYTES = 1024
_MEMORY_PER_INPUT = 16
"""Packed files unfold in memory, and a step or two keeps its rows."""
# Below this Spark refuses to start or spends its time collecting garbage.
_DRIVER_LEAST_MEBIBYTES = 768


def machine_memory_bytes() -> int:
    """The memory this process may use: the machine's, or less in a container."""
    limits = [int(psutil.virtual_memory().total)]
    for path in _LIMIT_FILES:
        try:
            text = path.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdecimal():
            limits.append(int(text))
    return min(limits)


def driver_memory_mebibytes(memory_bytes: int, input_bytes: int | None = None) -> int:
    """Enough for a pipeline, and never so much that the machine swaps.

    Java takes what it may before it tidies up, so a command that is known to read little gets as
    much as Spark itself would ask for.
    """
    most = min(_DRIVER_MOST_MEBIBYTES, int(memory_bytes * _DRIVER_SHARE) // _MEBIBYTE)
    if input_bytes is not None:
        wanted = input_bytes * _MEMORY_PER_INPUT // _MEBIBYTE
        most = min(most, max(_DRIVER_USUAL_MEBIBYTES, wanted))
    return max(_DRIVER_LEAST_MEBIBYTES, most)


def collector_options(said: Iterable[str], *, short: bool) -> list[str]:
    """The garbage collector for a local driver, unless the user's Java options name one.

    Java's default collects beside the work, on cores that a laptop needs for the work itself. For
    a short command one thread is enough, and holds less memory.
    """
    if any(map(_COLLECTOR.search, said)):
        return []
    return ["-XX:+UseSerialGC"] if short else ["-XX:+UseParallelGC"]
