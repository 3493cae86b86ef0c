"""What a batch reads: the bounds of its sources, fixed before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

FILES = "files"
VERSION = "version"
VERSIONS = "versions"
OFFSETS = "offsets"
WATERMARK = "watermark"
UNBOUNDED = "unbounded"


@dataclass(frozen=True, order=True)
class FileStamp:
    """One file as it was when the batch was planned."""

    path: str
    size_bytes: int
    modified_ns: int
    tag: str = ""
    """What an object store calls the content."""

    def to_json(self) -> dict[str, Any]:
        """A plain document for the ledger."""
        told = asdict(self)
        return told if self.tag else {key: value for key, value in told.items() if key != "tag"}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Exactly what a source will give, so that it can be read again identically."""

    kind: str
    identity: str
    files: tuple[FileStamp, ...] = ()
    position: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bounded(self) -> bool:
        """Whether the same bounds promise the same rows."""
        return self.kind != UNBOUNDED

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to read: no file, no row, or no version since the last one."""
        if self.kind == FILES:
            return not self.files
        if self.kind == OFFSETS:
            return bool(self.position["start"] == self.position["end"])
        if self.kind == WATERMARK:
            return self.position.get("rows") == 0
        since = self.position.get("since_version")
        return since is not None and since == self.position["version"]

    @property
    def changed(self) -> tuple[str, ...]:
        """Files that an earlier batch read and that are different now."""
        return tuple(self.position.get("changed", ()))

    @property
    def size_bytes(self) -> int:
        """Bytes to read, as far as they are known before reading."""
        return sum(stamp.size_bytes for stamp in self.files)

    @property
    def waiting(self) -> int:
        """How much more there was to read, which was left to later batches."""
        return int(self.position.get("waiting", 0))

    @property
    def messages(self) -> int:
        """How many offsets lie within the bounds, which may be more than there are messages."""
        start = self.position["start"] if self.kind == OFFSETS else {}
        return sum(self.position["end"][part] - offset for part, offset in start.items())

    def from_the_start(self) -> Bounds:
        """All that was read up to here, but for what was undone."""
        undone = set(self.position.get("undone", ()))
        counted = ("since", "rows") if self.kind == WATERMARK else ()
        apart = ("since_version", "undone", "changed", "waiting", *counted)
        first = {"start": self.position["first"]} if self.kind == OFFSETS else {}
        kept = {key: value for key, value in self.position.items() if key not in apart}
        return replace(
            self,
            files=tuple(stamp for stamp in self.files if stamp.path not in undone),
            position={**kept, **first},
        )

    def to_json(self) -> dict[str, Any]:
        """A plain document for the ledger."""
        return {
            "kind": self.kind,
            "identity": self.identity,
            "files": [stamp.to_json() for stamp in self.files],
            "position": dict(self.position),
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Bounds:
        """The bounds a ledger document stands for."""
        return Bounds(
            kind=document["kind"],
            identity=document["identity"],
            files=tuple(FileStamp(**stamp) for stamp in document["files"]),
            position=dict(document["position"]),
        )

    def summary(self) -> str:
        """A few words for the person who reads the run."""
        if self.kind == FILES:
            count = len(self.files)
            return f"{count} file{'' if count == 1 else 's'}, {self.size_bytes:,} bytes"
        if self.kind == VERSION:
            since = self.position.get("since_version")
            after = "" if since is None else f", changes after {since}"
            return f"version {self.position['version']}{after}"
        if self.kind == WATERMARK:
            return self._increment()
        if self.kind == VERSIONS:
            tables = self.position["tables"].items()
            return ", ".join(f"{name} at version {at['version']}" for name, at in tables)
        if self.kind == OFFSETS:
            more = f", {self.waiting:,} more are waiting" if self.waiting else ""
            count = len(self.position["start"])
            parts = f"{count} partition{'' if count == 1 else 's'}"
            return f"{self.messages:,} offsets of {parts}{more}"
        return "not bounded"

    def _increment(self) -> str:
        since, until = self.position.get("since"), self.position["until"]
        if until is None:
            return "no rows yet"
        rows = self.position.get("rows")
        count = "" if rows is None else f", {rows:,} rows"
        return f"up to {until}{count}" if since is None else f"after {since} up to {until}{count}"


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Rows of a quarantine that a batch brings back: all of some batches, or a part of them."""

    version: int
    """The version of the quarantine table that holds them."""
    batches: tuple[int, ...]
    step: str = ""
    rule: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)
    """Columns that get a new value on the way back, as SQL."""

    def to_json(self) -> dict[str, Any]:
        """A plain document for the ledger."""
        return {
            "version": self.version,
            "batches": list(self.batches),
            "step": self.step,
            "rule": self.rule,
            "changes": dict(self.changes),
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Replay:
        """The replay a ledger document stands for."""
        return Replay(**{**document, "batches": tuple(document["batches"])})


@dataclass(frozen=True)
class Pin:
    """A table that checks look into, and the version they see."""

    table_id: str
    version: int


def same_bounds(left: Mapping[str, Bounds], right: Mapping[str, Bounds]) -> bool:
    """Whether two batches would read the very same; unbounded sources never do."""
    if not all(bounds.bounded for bounds in (*left.values(), *right.values())):
        return False
    return {name: bounds.to_json() for name, bounds in left.items()} == {
        name: bounds.to_json() for name, bounds in right.items()
    }
