"""Epochs of a stream, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class EpochCommit:
    """How an epoch ended."""

    epoch: int
    version: int | None
    """The table's version that holds it; None when it was there before."""
    skipped: bool = False
    """Whether it had landed earlier, so that its rows were passed over."""
    rows: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    files: int = 0
    size_bytes: int = 0
    seconds: float = 0.0
    """How long the commit took, from the call to the answer."""
    lag_seconds: float = 0.0
    """How old its oldest row was when it could be read."""


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """Which version an epoch became."""

    writer_id: str
    epoch: int
    version: int
    rows: int | None
    generation: int
    timestamp_ms: int
    kept: bool
    """False when a later restore took it out again."""

    def to_json(self) -> dict[str, Any]:
        """A plain document for programs."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When rows leave the buffer, and how many may be in it."""

    flush_bytes: int = 64 * 1024 * 1024
    """A file is written when so much has gathered."""
    flush_rows: int = 1_000_000
    """Or so many rows."""
    flush_seconds: float = 5.0
    """Or when the oldest row has waited so long."""
    buffer_bytes: int = 256 * 1024 * 1024
    """Beyond this much in memory `write` waits."""
    flush_threads: int = 2
    """How many files are written at once."""
    retry_seconds: float = 30.0
    """How long storage may be out before an error is raised; nothing is lost by it."""
