"""What accepting a table means, for the people and programs who read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What accepting a table means for one pipeline."""

    pipeline: str
    found: str
    """In which way the table is not what the ledger knows."""
    held: tuple[int, ...] = ()
    """The batches that count as in the table afterwards."""
    read_again: tuple[int, ...] = ()
    undone: tuple[int, ...] = ()
    """Batches that are not in the table, and whose rows are not read again."""
    unknown: tuple[int, ...] = ()
    """Batches that are in the table and not in the ledger."""
    counts_as_read: Mapping[str, str] = field(default_factory=dict)
    """What the sources hold now, where that counts as read."""

    def to_json(self) -> dict[str, Any]:
        """A plain document for programs."""
        return {
            "pipeline": self.pipeline,
            "found": self.found,
            "in": list(self.held),
            "read_again": list(self.read_again),
            "undone": list(self.undone),
            "unknown": list(self.unknown),
            "counts_as_read": dict(self.counts_as_read),
        }


@dataclass(frozen=True, kw_only=True)
class AcceptResult:
    """What accepting a table did, or would do."""

    table: str
    version: int | None
    keeps_position: bool
    applied: bool
    pipelines: tuple[Meaning, ...]

    def to_json(self) -> dict[str, Any]:
        """A plain document for programs."""
        return {
            "table": self.table,
            "version": self.version,
            "choice": "keep-position" if self.keeps_position else "read-again",
            "applied": self.applied,
            "pipelines": [meaning.to_json() for meaning in self.pipelines],
        }
