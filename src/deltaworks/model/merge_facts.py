"""What is known of a batch and of the table it goes to before the one is merged into the other."""

from __future__ import annotations

from dataclasses import dataclass

DUPLICATES = "duplicates"
"""What rows are called that gave way to others of their key."""


@dataclass(frozen=True, kw_only=True)
class KeyRange:
    """The lowest and the highest value of one merge key in a batch, as text."""

    column: str
    kind: str
    """The column's type as SQL spells it; times are in UTC."""
    low: str
    high: str
    values: tuple[str, ...] = ()
    """All the values, where the column makes folders of the table and they are few."""


@dataclass(frozen=True, kw_only=True)
class BatchFacts:
    """What one pass over a batch finds; its keys are whole and stand in it once each."""

    rows: int
    bytes: int = 0
    """About how much memory the rows take."""
    rows_null_key: int = 0
    """Rows with NULL in a key."""
    keys_repeated: int = 0
    """Keys of several rows; of rows that tie where one of several wins."""
    rows_dropped: int = 0
    """Rows that gave way to another one with their key."""
    ranges: tuple[KeyRange, ...] = ()
    """By key; a key whose type gives no safe range is left out."""


@dataclass(frozen=True, kw_only=True)
class FileScope:
    """The files of a table that rows with keys in certain ranges can be in."""

    files_total: int = 0
    bytes_total: int = 0
    rows_total: int | None = None
    """Rows in all files, those that deletion vectors hide included; None when not recorded."""
    files: int = 0
    bytes: int = 0

    @property
    def files_skipped(self) -> int:
        """Files that need not be opened."""
        return self.files_total - self.files


@dataclass(frozen=True, kw_only=True)
class DiffFacts:
    """What a batch would do to a table; `missing` rows of the table are not in the batch."""

    insert: int = 0
    update: int = 0
    delete: int = 0
    unchanged: int = 0
    ignored: int = 0
    missing: int = 0
    files_matched: int = 0
    """Files with a row that the batch has a row for."""
    bytes_matched: int = 0
    files_touched: int = 0
    """Files with a row that would change."""
    bytes_touched: int = 0
    scope: FileScope = FileScope()

    @property
    def changes(self) -> int:
        """Rows of the table that would be different afterwards."""
        return self.insert + self.update + self.delete + self.missing

    @property
    def rows(self) -> int:
        """Rows of the batch."""
        return self.insert + self.update + self.delete + self.unchanged + self.ignored

    def unchanged_of(self, rows: int) -> int:
        """How many of a batch's rows change nothing, counted as delta-rs counts them.

        `unchanged` has a row for each match: more where the table holds a key several times.
        """
        return max(0, rows - self.insert - self.update - self.delete - self.ignored)

    @property
    def takes_away(self) -> bool:
        """Whether rows of the table are changed or removed."""
        return self.update + self.delete + self.missing > 0

    @property
    def only_inserts(self) -> bool:
        """Whether rows are added and none of the table's changes."""
        return self.insert > 0 and self.insert == self.changes


@dataclass(frozen=True, kw_only=True)
class FilesUsed:
    """How many files of a table a write looked into, left alone and replaced."""

    scanned: int
    skipped: int
    rewritten: int

    def text(self) -> str:
        """In one line."""
        return (
            f"files: {self.scanned:,} scanned, {self.skipped:,} skipped, "
            f"{self.rewritten:,} rewritten"
        )

    def to_json(self) -> dict[str, int]:
        return {"scanned": self.scanned, "skipped": self.skipped, "rewritten": self.rewritten}
