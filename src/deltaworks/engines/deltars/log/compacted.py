"""Compacted commits, `<first>.<last>.compacted.json`: one file in place of several commits.

delta-rs reads the commits, and Spark may read the file. So a compacted file that says something
else than its commits gives a table two truths, and Spark's is the one that pipelines read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltaworks.engines.deltars.log.file_names import Compacted
from deltaworks.engines.deltars.text import read_json

Action = Mapping[str, Any]
_FileKey = tuple[str, str]


@dataclass
class _Net:
    """What some commits come to."""

    added: dict[_FileKey, Any] = field(default_factory=dict)
    """The files that are there, each with what decides about its rows."""
    removed: set[_FileKey] = field(default_factory=set)
    was_added: set[_FileKey] = field(default_factory=set)
    said: dict[str, Any] = field(default_factory=dict)

    def take(self, action: Action) -> None:
        for kind, body in action.items():
            if kind == "add":
                self.added[_key(body)] = _content(body)
                self.was_added.add(_key(body))
                self.removed.discard(_key(body))
            elif kind == "remove":
                self.added.pop(_key(body), None)
                self.removed.add(_key(body))
            elif kind == "txn":
                self.said[f"txn {body['appId']}"] = body["version"]
            elif kind in ("protocol", "metaData"):
                self.said[kind] = body

    def same(self, other: _Net) -> bool:
        """Whether two come to the same; what came and went again leaves no trace."""
        gone, also_gone = self.removed - self.was_added, other.removed - self.was_added
        return (self.added, gone, self.said) == (other.added, also_gone, other.said)


def disagreeing(
    location: str, compacted: Iterable[Compacted], tail: Sequence[int]
) -> tuple[str, ...]:
    """Compacted files that engines may read and that do not say what their commits say."""
    there = set(tail)
    return tuple(
        one.name
        for one in compacted
        if one.last in there and not _says_the_same(Path(location) / "_delta_log", one, there)
    )


def _says_the_same(log: Path, compacted: Compacted, there: set[int]) -> bool:
    versions = range(compacted.first, compacted.last + 1)
    if not all(version in there for version in versions):
        return False
    try:
        whole = _net([log / compacted.name])
        return _net([log / f"{version:020d}.json" for version in versions]).same(whole)
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ):  # no compacted commits at all
        return False


def _net(files: Iterable[Path]) -> _Net:
    found = _Net()
    for file in files:
        for line in file.read_text(encoding="utf-8").split("\n"):
            found.take(read_json(line) if line.strip() else {})
    return found


def _content(body: Action) -> Any:
    """What engines take from the log about a file's rows: partitions, and what they skip by."""
    stats = read_json(body.get("stats") or "null")
    return body.get("partitionValues"), body.get("size"), stats


def _key(body: Action) -> _FileKey:
    vector = body.get("deletionVector") or {}
    place = (vector.get("storageType"), vector.get("pathOrInlineDv"), vector.get("offset"))
    return str(body["path"]), json.dumps(place)
