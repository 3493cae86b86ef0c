"""The list of promises is complete, and the tests it points at exist."""

from __future__ import annotations

import re

from tests.architecture.source_tree import ROOT

PROMISES = ROOT / "docs" / "promises.md"
ROWS = {"P": 18, "S": 10, "M": 14, "D": 13, "A": 12, "B": 9}
STATES = {"done", "partly", "in this release", "not yet"}
PROVEN_STATES = {"done", "partly"}
ROW = re.compile(
    r"^\| (?P<name>[PSMDAB]\d+) \| (?P<text>[^|]+) \| (?P<state>[^|]+?) \| ?(?P<proof>[^|]*)\|$",
    re.MULTILINE,
)
PROOF = re.compile(r"`(tests/[^`]*)`")


def rows() -> list[re.Match[str]]:
    return list(ROW.finditer(PROMISES.read_text(encoding="utf-8")))


def test_every_promise_has_one_row() -> None:
    expected = [f"{letter}{n}" for letter, count in ROWS.items() for n in range(1, count + 1)]
    assert [row["name"] for row in rows()] == expected


def test_every_promise_has_a_known_state() -> None:
    assert {row["name"]: row["state"] for row in rows() if row["state"] not in STATES} == {}


def test_a_kept_promise_names_its_proof() -> None:
    kept = [row for row in rows() if row["state"] in PROVEN_STATES]
    assert [row["name"] for row in kept if not PROOF.search(row["proof"])] == []


def exists(proof: str) -> bool:
    """Whether `tests/path` or `tests/path.py::test_name` is there."""
    path, _, test = proof.partition("::")
    file = ROOT / path
    if not test:
        return file.exists()
    return file.is_file() and f"def {test.partition('[')[0]}(" in file.read_text(encoding="utf-8")


def test_every_proof_named_exists() -> None:
    proofs = PROOF.findall(PROMISES.read_text(encoding="utf-8"))
    assert [proof for proof in proofs if not exists(proof)] == []
