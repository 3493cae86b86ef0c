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


def driver_memory_mebibytes(memory_bytes: int) -> int:
    """Enough for a small pipeline, and never so much that the machine swaps."""
    share = int(memory_bytes * _DRIVER_SHARE) // _MEBIBYTE
    return max(_DRIVER_LEAST_MEBIBYTES, min(_DRIVER_MOST_MEBIBYTES, share))


def collector_options(said: Iterable[str]) -> list[str]:
    """The garbage collector for a local driver, unless the user's Java options name one.

    Java's default collects beside the work, on cores that a laptop needs for the work itself.
    """
    return [] if any(map(_COLLECTOR.search, said)) else ["-XX:+UseParallelGC"]
