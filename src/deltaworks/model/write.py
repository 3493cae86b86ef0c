"""What is asked of a table when rows are written to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from deltaworks.model.commit import Txn

MergeStrategy = Literal[
    "auto", "plain", "merge", "broadcast", "shuffle", "copy_on_write", "deletion_vectors"
]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a table is laid out and set up; asked for by the pipeline, verified after the write."""

    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    z_order: tuple[str, ...] = ()
    """Columns the files are sorted by once the rows are in."""
    bloom: tuple[str, ...] = ()
    """Columns whose values every file keeps a Bloom filter of."""
    sought: tuple[str, ...] = ()
    """Columns that rows are found by, such as the keys of a merge."""
    properties: Mapping[str, str] = field(default_factory=dict)
    target_file_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """What a commit carries besides its rows: its batch, and an audit note."""

    txn: Txn
    user_metadata: str


@dataclass(frozen=True, kw_only=True)
class Append:
    """Add the rows."""

    merge_schema: bool = False
    holds_rows: bool = False
    """Known to have rows, so that nobody needs to look."""

    def of_everything(self) -> Overwrite:
        """The same rows in the place of all that stand."""
        return Overwrite(merge_schema=self.merge_schema)


@dataclass(frozen=True, kw_only=True)
class Overwrite:
    """Replace the whole table, or what a predicate covers."""

    replace_where: str = ""
    overwrite_schema: bool = False
    merge_schema: bool = False

    def of_everything(self) -> Overwrite:
        """The same rows in the place of all that stand."""
        return replace(self, replace_where="")


@dataclass(frozen=True, kw_only=True)
class DuplicatePolicy:
    """Which of several rows with the same key wins."""

    keep: Literal["newest", "oldest"]
    by: str
    shown: str = ""
    """What people know `by` as, where it is a column that we made."""
    tie_hint: str = "choose a column for `duplicates.by` that tells them apart"


@dataclass(frozen=True, kw_only=True)
class Upsert:
    """Merge the rows by their keys."""

    keys: tuple[str, ...]
    update_condition: str = ""
    delete_condition: str = ""
    update_columns: tuple[str, ...] = ()
    insert_columns: tuple[str, ...] = ()
    delete_missing: bool = False
    duplicates: DuplicatePolicy | None = None
    """Refused when left out."""
    merge_schema: bool = False
    strategy: MergeStrategy = "auto"
    """How the rows go in; all ways give the same rows."""


@dataclass(frozen=True, kw_only=True)
class Scd2:
    """Keep every version of a row, each with the time it holds."""

    keys: tuple[str, ...]
    sequence_by: str = ""
    """The column that says since when a row holds; the time of the run when empty."""
    tracked: tuple[str, ...] = ()
    """The columns whose change makes a new version; all others when empty."""
    merge_schema: bool = False


Writer = Literal["auto", "spark", "deltars"]
"""Who commits a batch."""
Write = Append | Overwrite | Upsert | Scd2


def bloom_properties(columns: Sequence[str]) -> dict[str, str]:
    """What makes Parquet keep filters, each as large as the values of a file need."""
    filters = {f"parquet.bloom.filter.enabled#{name}": "true" for name in columns}
    return {"parquet.bloom.filter.adaptive.enabled": "true", **filters} if filters else {}
