"""How much memory there is, and how much of it Spark's driver gets."""

from __future__ import annotations

from pathlib import Path

import psutil

_LIMIT_FILES = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
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
