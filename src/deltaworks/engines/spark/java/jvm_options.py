"""Options of a JVM: its compiler, and how much memory it gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import psutil

from deltaworks.errors import ConfigError

COMPILER_VARIABLE = "DELTAWORKS_COMPILER"
SHORT_INPUT_BYTES = 32 * 1024 * 1024
"""Up to here a command ends before thorough compiling would pay."""
# The plain compiler comes with a small cache for code, which many pipelines would fill.
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m")
_CHOSEN = re.compile(r"-XX:TieredStopAtLevel|-XX:[+-]TieredCompilation|-Xint\b|-Xcomp\b|-server\b")

Compiler = Literal["auto", "quick", "full"]


@dataclass(frozen=True)
class CompilerChoice:
    """Which compiler a JVM is started with, and why."""

    options: tuple[str, ...]
    reason: str


def wanted_compiler(environ: Mapping[str, str], project: Compiler) -> Compiler:
    """What the environment says, or else the project."""
    said = environ.get(COMPILER_VARIABLE, "").strip().lower()
    for word in get_args(Compiler):
        if said == word:
            return word  # type: ignore[no-any-return]
    if said:
        raise ConfigError(
            f'{COMPILER_VARIABLE} is "{said}"', hint='set it to "auto", "quick" or "full"'
        )
    return project


def is_short(input_bytes: int | None) -> bool:
    """Whether a command that reads so much is soon done; None where more may come, or unknown."""
    return input_bytes is not None and input_bytes <= SHORT_INPUT_BYTES


def choose_compiler(
    wanted: Compiler, *, input_bytes: int | None, said: Iterable[str]
) -> CompilerChoice:
    """The compiler for a local driver; `input_bytes` is None where more may come, or unknown."""
    if any(map(_CHOSEN.search, said)):
        return CompilerChoice((), "Java compiles as its options say")
    if wanted == "quick":
        return CompilerChoice(_QUICK, "Java compiles quickly, as asked")
    if wanted == "full":
        return CompilerChoice((), "Java compiles fully, as asked")
    if input_bytes is None:
        return CompilerChoice((), "Java compiles fully: how much there is to do is not known")
    if not is_short(input_bytes):
        return CompilerChoice((), f"Java compiles fully for {input_bytes:,} bytes of input")
    return CompilerChoice(_QUICK, f"Java compiles quickly for {input_bytes:,} bytes of input")


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
