"""A table that others changed is accepted as it is: no row is lost or doubled unasked (B3, M1)."""

from __future__ import annotations

from typing import Any

import pytest

from deltaworks.runtime.ledger.state import LedgerState
from tests.protocol.accepting import Accepting
from tests.protocol.explore import Findings, Scope

ONE = (("a", "append"),)
KEYED = (("a", "upsert"),)
TWO = (("a", "append"), ("b", "append"))
MIXED = (("a", "append"), ("b", "upsert"))
WORLDS = 400


def explored(modes: Any, depth: int, most: int | None = None, **budgets: int) -> Findings:
    given = tuple(sorted(budgets.items()))
    scope = Scope(modes=modes, depth=depth, budgets=given, max_worlds=most)
    return Accepting(scope).explore()


SCOPES: dict[str, dict[str, int]] = {
    "one accident": {"deliver": 1, "foreign": 1, "accept": 1},
    "two accidents": {"deliver": 1, "foreign": 2, "accept": 2},
    "taking back": {"deliver": 1, "foreign": 1, "accept": 1, "back": 1},
    "refreshes": {"deliver": 1, "foreign": 1, "accept": 1, "refresh": 1},
    "replays": {"deliver": 1, "foreign": 1, "accept": 1, "replay": 1},
    "deaths": {"deliver": 1, "foreign": 1, "accept": 1, "death": 1},
}
CASES = [
    ("one accident", ONE),
    ("one accident", TWO),
    ("two accidents", ONE),
    ("taking back", KEYED),
    ("taking back", MIXED),
    ("refreshes", ONE),
    ("replays", KEYED),
    ("deaths", TWO),
]


@pytest.mark.parametrize(("name", "modes"), CASES)
def test_an_accepted_table_loses_and_doubles_nothing(name: str, modes: Any) -> None:
    found = explored(modes, 6, most=WORLDS, **SCOPES[name])
    assert not found.wrong, found.wrong[0]


def all_generations(state: LedgerState) -> frozenset[int]:
    return frozenset(entry.generation for entry in state.batches)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "rows of batches that are gone return to the quarantine": (
        {
            "ledger.table_contents.not_held": lambda *_: [],
            "ledger.timeline.generations_of": all_generations,
        },
        "refreshes",
    ),
    "a recreated table still counts as the old one": (
        {"recovery.accept._Look._lost": lambda *_: ()},
        "one accident",
    ),
    "rows of two generations are accepted": (
        {"recovery.accept._Look.refuse_mixture": lambda _: None},
        "refreshes",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_exploration_finds_a_mistake(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mistakes, scope = MISTAKES[mistake]
    for name, stand_in in mistakes.items():
        monkeypatch.setattr(f"deltaworks.runtime.{name}", stand_in)
    assert explored(ONE, 6, most=WORLDS, **SCOPES[scope]).wrong
