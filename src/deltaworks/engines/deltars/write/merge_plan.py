"""A MERGE as delta-rs is asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MergePlan:
    """A MERGE in parts: what matches, and the conditions under which something happens."""

    on: str
    columns: Mapping[str, str]
    update: str | None
    insert: str | None
    delete: str = ""
    inserts: Mapping[str, str] | None = None
    """The columns of a new row, where they are not those of an update."""
    always_commits: bool = True
    """Whether the transactions are kept even when no row changes."""
    rows_mark: str = ""
    """What the commit calls its rows."""
    most_memory_bytes: int | None = None
    """What it may hold before it goes on on disk; no limit when left out."""
