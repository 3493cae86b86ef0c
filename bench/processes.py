"""Cases whose sides are whole commands: start-up counts, and so does what they hold in memory."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil

SIDES = ("ours", "plain")
MAX_MEMORY_RATIO = 1.10
_LOOK_SECONDS = 0.1


class CommandCase(Protocol):
    """The same work twice, as command lines."""

    name: str
    bar: str
    """What the figures must show, in words."""
    most_ratio: float
    """The highest allowed ours / plain, in time."""

    def prepare(self, folder: Path) -> None:
        """Put the input on disk; not timed."""

    def commands(self, side: str, folder: Path) -> Sequence[Sequence[str]]:
        """What a side runs, one after the other, in a folder of its own."""

    def check(self, side: str, folder: Path) -> str:
        """A fingerprint of the result; both sides must give the same. Not timed."""


@dataclass(frozen=True)
class Usage:
    """What commands took."""

    seconds: float
    max_bytes: int


def measured(command: Sequence[str], *, log: Path) -> Usage:
    """Run one command to its end; the memory is that of all its processes at one moment."""
    start, most = time.perf_counter(), 0
    with log.open("ab") as said:
        process = psutil.Popen(list(command), stdout=said, stderr=said)
        while process.poll() is None:
            most = max(most, _held_bytes(process))
            with suppress(subprocess.TimeoutExpired, psutil.TimeoutExpired):
                process.wait(_LOOK_SECONDS)
    if process.returncode != 0:
        raise SystemExit(f"bench: {' '.join(command)} failed:\n{log.read_text()[-2000:]}")
    return Usage(time.perf_counter() - start, most)


def _held_bytes(process: psutil.Process) -> int:
    """What they hold together: a page that several share, as after a fork, is counted once."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                total += one.memory_full_info().pss
    return total


def run_commands(case: CommandCase, rounds: int) -> dict[str, Any]:
    """All rounds of one case, the sides taking turns; the first round only warms caches."""
    folder = Path(tempfile.mkdtemp(prefix="deltaworks-bench-"))
    found: dict[str, list[Usage]] = {side: [] for side in SIDES}
    try:
        case.prepare(folder)
        for number in range(rounds + 1):
            results = set()
            for side in SIDES if number % 2 == 0 else SIDES[::-1]:
                used = [
                    measured(command, log=folder / f"{side}.log")
                    for command in case.commands(side, folder)
                ]
                results.add(case.check(side, folder))
                if number:
                    seconds = sum(one.seconds for one in used)
                    found[side].append(Usage(seconds, max(one.max_bytes for one in used)))
                print(f"{case.name}: round {number}: {side}: {used}", file=sys.stderr)
            if len(results) != 1:
                raise SystemExit(f"bench: the sides differ: {results}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _summary(case, found)


def _summary(case: CommandCase, found: dict[str, list[Usage]]) -> dict[str, Any]:
    seconds = {side: [round(one.seconds, 2) for one in used] for side, used in found.items()}
    memory = {side: [one.max_bytes // 2**20 for one in used] for side, used in found.items()}
    medians = {side: statistics.median(times) for side, times in seconds.items()}
    most = {side: statistics.median(sizes) for side, sizes in memory.items()}
    ratio, memory_ratio = medians["ours"] / medians["plain"], most["ours"] / most["plain"]
    return {
        "case": case.name,
        "bar": f"{case.bar}; memory ours / plain <= {MAX_MEMORY_RATIO:.2f}",
        "met": ratio <= case.most_ratio and memory_ratio <= MAX_MEMORY_RATIO,
        "plain_per_ours": round(1 / ratio, 2),
        "memory_ours_per_plain": round(memory_ratio, 2),
        "median_seconds": medians,
        "median_peak_mb": most,
        "seconds": seconds,
        "peak_mb": memory,
    }
