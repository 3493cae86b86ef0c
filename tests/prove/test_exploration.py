"""The whole exploration of the batch protocol: every order of events within the scope (B3)."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import pytest

from tests.protocol.explore import Explorer, Scope

DEPTH = int(os.environ.get("DELTAWORKS_DEPTH", "8"))
ONE = (("a", "append"),)
KEYED = (("a", "upsert"),)
TWO = (("a", "append"), ("b", "append"))
MIXED = (("a", "append"), ("b", "upsert"))
BESIDE = (("a", "append"), ("b", "folder"))
FOLDER = (("a", "folder"),)
ANY = {
    "deliver": 2,
    "back": 3,
    "refresh": 2,
    "replay": 2,
    "death": 2,
    "sinks": 3,
    "foreign": 2,
    "fail": 1,
    "park": 2,
    "from": 2,
    "named": 2,
}
"""All that can happen; `events` says how much of it, besides deliveries and runs."""
SCOPES: dict[str, dict[str, int]] = {
    "any two events": {**ANY, "events": 2},
    "taking back": {"deliver": 2, "back": 4, "replay": 1},
    "taking back and refreshing": {"deliver": 1, "back": 3, "refresh": 2, "replay": 1},
    "sinks that come and go": {"deliver": 2, "sinks": 4, "back": 1, "replay": 1},
    "deaths": {"deliver": 2, "death": 3, "back": 1},
    "parked": {"deliver": 2, "park": 3, "back": 1},
}


@pytest.mark.prove
@pytest.mark.timeout(0)
@pytest.mark.parametrize("modes", [ONE, KEYED, TWO, MIXED], ids=["one", "keyed", "two", "mixed"])
@pytest.mark.parametrize("name", SCOPES)
def test_every_world_of_a_scope(name: str, modes: Any, capsys: pytest.CaptureFixture[str]) -> None:
    if len(modes) == 1 and name == "sinks that come and go":
        pytest.skip("one sink only")
    _explore(modes, DEPTH, SCOPES[name], capsys)


@pytest.mark.prove
@pytest.mark.timeout(0)
@pytest.mark.parametrize("modes", [FOLDER, BESIDE], ids=["folder", "beside"])
@pytest.mark.parametrize("name", ["any two events", "sinks that come and go", "deaths", "parked"])
def test_every_world_of_sinks_without_versions(
    name: str, modes: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    if len(modes) == 1 and name == "sinks that come and go":
        pytest.skip("one sink only")
    _explore(modes, DEPTH, SCOPES[name], capsys)


@pytest.mark.prove
@pytest.mark.timeout(0)
@pytest.mark.parametrize("modes", [ONE, TWO], ids=["one", "two"])
def test_every_three_events(modes: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _explore(modes, DEPTH - 2, {**ANY, "events": 3}, capsys)


@pytest.mark.prove
@pytest.mark.timeout(0)
@pytest.mark.parametrize("mode", ["append", "upsert", "overwrite"])
def test_every_world_of_whole_reads(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    budgets = {"again": 2, "back": 2, "death": 1, "deliver": 2, "named": 1, "refresh": 1}
    _explore((("a", mode),), DEPTH - 2, {**budgets, "events": 2}, capsys, whole=True)


@pytest.mark.prove
@pytest.mark.timeout(0)
def test_every_world_of_two_pipelines_and_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    budgets = {"back": 2, "death": 1, "deliver": 1, "replay": 1, "events": 3}
    _explore(ONE, DEPTH - 2, budgets, capsys, shared=True)


def _explore(
    modes: Any,
    depth: int,
    budgets: dict[str, int],
    capsys: pytest.CaptureFixture[str],
    **kind: bool,
) -> None:
    start = time.monotonic()
    scope = Scope(modes=modes, depth=depth, budgets=tuple(sorted(budgets.items())), **kind)
    found = Explorer(scope).explore()
    took = time.monotonic() - start
    with capsys.disabled():
        sys.stdout.write(f" {found.worlds} worlds, {found.transitions} transitions, {took:.0f} s\n")
    assert not found.wrong, found.wrong[0]
