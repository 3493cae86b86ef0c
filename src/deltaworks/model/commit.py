"""What a write leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deltaworks.model.merge_facts import FilesUsed

LANDED_BEFORE = "this batch landed before"
TAKEN_OUT = "undone_token"
"""What the note of a commit that takes a batch out calls the batch's token."""


@dataclass(frozen=True)
class Txn:
    """The transaction Delta keeps with a commit, so that a batch lands once."""

    app_id: str
    version: int


@dataclass(frozen=True)
class Shown:
    """Rows for the screen, as text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class CommitInfo:
    """How a batch landed in one sink. A count that is not known is None, never 0."""

    committed: bool
    version: int | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    rows_unchanged: int | None = None
    rows_dropped: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    parked: str = ""
    """The folder that keeps the rows, when they could not be committed."""
    rows_parked: int | None = None
    """How many rows it keeps."""
    shown: Shown | None = None
    """Rows to put on the screen, from a sink that does just that."""
    strategy: str = ""
    """How the rows went in, where there was a choice."""
    files: FilesUsed | None = None


@dataclass(frozen=True, kw_only=True)
class UndoInfo:
    """What taking a batch out of one sink did, or would do."""

    committed: bool
    version: int | None
    rows_removed: int
    rows_put_back: int


@dataclass(frozen=True, kw_only=True)
class SinkState:
    """What stands at a sink before a batch: who it is and the last batch it holds."""

    identity: str
    exists: bool
    version: int | None = None
    txn_version: int | None = None
    writers: tuple[str, ...] = ()
    """All who ever landed a batch there, where that is written down."""
