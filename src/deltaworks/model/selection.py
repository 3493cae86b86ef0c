"""Which rows of a table someone wants to see."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Rows and columns of one version of a table."""

    columns: tuple[str, ...] = ()
    """The columns by name, in order; all when empty."""
    where: str = ""
    """A condition in Spark's SQL; all rows when empty."""
    version: int | None = None
    """The version to read; None for the latest."""
    limit: int | None = None
    """How many rows to read at most; None for all."""
