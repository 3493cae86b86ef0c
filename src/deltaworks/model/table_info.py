"""What a Delta table says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deltaworks.model.schema import Schema

ISOLATION = "delta.isolationLevel"
SERIALIZABLE = "Serializable"
"""The only isolation that open-source Delta knows."""


@dataclass(frozen=True, kw_only=True)
class TableInfo:
    """One version of a table, read from its log. What is not known is None."""

    location: str
    table_id: str
    version: int
    schema: Schema
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]
    reader_version: int
    writer_version: int
    features: tuple[str, ...]
    clustering_columns: tuple[str, ...] = ()
    rows: int | None = None
    files: int | None = None
    size_bytes: int | None = None

    @property
    def isolation(self) -> str:
        """How writers are kept apart."""
        return self.properties.get(ISOLATION, SERIALIZABLE)


@dataclass(frozen=True, kw_only=True)
class CommitRecord:
    """One line of a table's history."""

    version: int
    timestamp_ms: int
    operation: str
    metrics: Mapping[str, Any] = field(default_factory=dict)
    user_metadata: Mapping[str, Any] = field(default_factory=dict)
    engine: str = field(default="", compare=False)
    """Who made the commit, by its own word; only delta-rs tells."""
    restored_to: int | None = field(default=None, compare=False)
    """The version that a commit set the table back to; None where it does not say."""
