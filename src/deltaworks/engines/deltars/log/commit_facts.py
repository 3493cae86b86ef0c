"""What one commit of a log says, and whether it says it as a commit must.

Engines pass over a blank line, take a missing action for none, and tell of a wrong one in words
of their own. So a commit is read here first. It never changes once it is there: a process reads it
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from deltaworks.engines.deltars.text import read_json

Action = Mapping[str, Any]
_LARGE = 8 * 2**20
_FILE_LINES = (b'{"add":', b'{"remove":', b'{"cdc":')
"""In a large commit these are left to the engine: nearly all lines are of them."""


@dataclass(frozen=True)
class CommitFacts:
    """What matters of a commit before an engine is asked."""

    problem: str = ""
    """What is wrong with it, `{}` where its name belongs; empty when nothing is."""
    protocol: Action | None = None
    metadata: Action | None = None
    has_vectors: bool = False
    txns: Mapping[str, int] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def commit_facts(path: str, size_bytes: int, modified_ns: int) -> CommitFacts:  # noqa: ARG001
    """A commit by its file, which is known by its size and time."""
    return facts_of(Path(path).read_bytes())


def facts_of(content: bytes) -> CommitFacts:
    """A commit by what stands in it."""
    if not content:
        return CommitFacts("{} is an empty file")
    actions: list[Action] = []
    is_large, vectors = len(content) > _LARGE, False
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        if is_large and line.startswith(_FILE_LINES) and line.rstrip().endswith(b"}}"):
            vectors = vectors or b'"deletionVector":{' in line
            actions.append({"of many": {}})
            continue
        action, problem = checked_action(line)
        if problem:
            return CommitFacts(f"line {number} of {{}} {problem}")
        vectors = vectors or bool((action.get("add") or {}).get("deletionVector"))
        actions.append(action)
    return _gathered(actions, has_vectors=vectors)


def checked_action(line: bytes) -> tuple[Action, str]:
    """One line of a log, and what is wrong with it; empty when nothing is."""
    action = _action(line)
    return ({}, "cannot be read") if action is None else (action, action_problem(action))


def _action(line: bytes) -> Action | None:
    try:
        found = read_json(line.decode("utf-8"))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _gathered(actions: list[Action], *, has_vectors: bool) -> CommitFacts:
    if not any(body is not None for action in actions for body in action.values()):
        return CommitFacts("{} says nothing")
    protocol = [action["protocol"] for action in actions if action.get("protocol")]
    metadata = [action["metaData"] for action in actions if action.get("metaData")]
    for name, found in (("protocol", protocol), ("metadata", metadata)):
        if any(one != found[0] for one in found):
            return CommitFacts(f"{{}} holds two kinds of {name}")
    return CommitFacts(
        protocol=protocol[0] if protocol else None,
        metadata=metadata[0] if metadata else None,
        has_vectors=has_vectors,
        txns={txn["appId"]: txn["version"] for a in actions if (txn := a.get("txn"))},
    )


def action_problem(action: Action) -> str:
    """What an action lacks; those of other kinds may be what they like."""
    for kind, body in action.items():
        check = _CHECKS.get(kind)
        if check is None or body is None:
            continue
        if not isinstance(body, dict):
            return f'holds "{kind}", which is not an object'
        if problem := check(body):
            return f'holds "{kind}" {problem}'
    return ""


def _add(body: Action) -> str:
    if problem := _file(body):
        return problem
    if not _is_count(body.get("size")):
        return "without a size"
    if not isinstance(body.get("partitionValues"), dict):
        return "without partition values"
    stats = body.get("stats")
    return "" if stats is None else _stats_problem(stats)


def _stats_problem(stats: object) -> str:
    """Statistics are a JSON text, and how many rows there are is a number in it."""
    try:
        found = read_json(stats) if isinstance(stats, str) else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return "with statistics that are no JSON object"
    rows = found.get("numRecords")
    return "" if rows is None or _is_count(rows) else "with statistics that count no rows"


def _file(body: Action) -> str:
    path = body.get("path")
    return "" if isinstance(path, str) and path else "without a path"


def _txn(body: Action) -> str:
    if not isinstance(body.get("appId"), str):
        return "without a writer"
    number = body.get("version")
    return "" if isinstance(number, int) and not isinstance(number, bool) else "without a number"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _anything(_: Action) -> str:
    return ""


_CHECKS: Mapping[str, Callable[[Action], str]] = {
    "add": _add,
    "remove": _file,
    "sidecar": _file,
    "txn": _txn,
    "protocol": _anything,
    "metaData": _anything,
    "commitInfo": _anything,
}
