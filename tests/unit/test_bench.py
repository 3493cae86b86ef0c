"""The measurement of whole commands measures both sides, in turn, on the same work."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.__main__ import case_names, main
from bench.case import SCALE
from bench.processes import measured, run_commands
from bench.worker import find_case


class Hello:
    """Both sides write a word; ours holds more memory."""

    name = "hello"
    bar = "plain / ours >= 0.001"
    most_ratio = 1000.0

    def __init__(self, plain: str = "hello") -> None:
        self.words = {"ours": "hello", "plain": plain}

    def prepare(self, folder: Path) -> None:
        (folder / "input").touch()

    def commands(self, side: str, folder: Path) -> Sequence[Sequence[str]]:
        held = 50_000_000 if side == "ours" else 1
        code = f"x = bytearray({held}); import time; time.sleep(0.3)"
        wrote = f"open({str(folder / side)!r}, 'w').write({self.words[side]!r})"
        return [[sys.executable, "-c", code], [sys.executable, "-c", wrote]]

    def check(self, side: str, folder: Path) -> str:
        return (folder / side).read_text()


def test_both_sides_are_timed_and_weighed() -> None:
    found = run_commands(Hello(), 1)
    assert found["median_seconds"]["ours"] > 0.3
    assert found["memory_ours_per_plain"] > 1.1
    assert not found["met"]  # for the memory's sake
    assert "memory" in found["bar"]


def test_sides_that_differ_are_no_measurement() -> None:
    with pytest.raises(SystemExit, match="differ"):
        run_commands(Hello("goodbye"), 1)


def test_a_command_that_fails_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no such thing"):
        measured([sys.executable, "-c", "raise OSError('no such thing')"], log=tmp_path / "log")


def test_a_bar_that_is_missed_fails_the_command_and_is_written_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """P17."""
    out = tmp_path / "bench.json"
    monkeypatch.setenv(SCALE, "1")
    monkeypatch.setattr("bench.__main__.find_case", lambda _: Hello())
    monkeypatch.setattr(sys, "argv", ["bench", "hello", "--rounds", "1", "--out", str(out)])
    assert main() == 1
    (result,) = json.loads(out.read_text())["results"]
    assert (result["case"], result["met"]) == ("hello", False)


def test_every_case_says_its_bar() -> None:
    assert {"cold_start", "orders_job"} <= set(case_names())
    for name in case_names():
        assert find_case(name).bar
