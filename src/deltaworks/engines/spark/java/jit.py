"""How Java compiles: at once and plainly for a short command, thoroughly for a long one.

Java's second compiler makes faster code and needs the cores for it; a command that ends before
that pays for itself is done sooner without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

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
