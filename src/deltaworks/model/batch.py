"""What a batch reads: the bounds of its sources, fixed before anything is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

FILES = "files"
VERSION = "version"
VERSIONS = "versions"
OFFSETS = "offsets"
WATERMARK = "watermark"
UNBOUNDED = "unbounded"
_TOLD = ("known", "repeats", "digest")
"""How the rows of an increment are told from those before it."""
_NEWER = ("commit", "ties", "digest")
"""Words that ledgers of older versions do not have."""


@dataclass(frozen=True, order=True)
class FileStamp:
    """One file as it was when the batch was planned."""

    path: str
    """Where it was read; another place once the project has moved."""
    size_bytes: int
    modified_ns: int
    tag: str = ""
    """What tells the content: the tag of an object store, or a hash of the beginning and end."""
    name: str = ""
    """What it is known by, however its path is spelled; empty in ledgers of older versions."""
    seen: str = field(default="", compare=False)
    """The file's own number and change time on the machine that saw it; no part of what it is."""
    unread: bool = field(default=False, compare=False)
    """Passed over, or undone: known, and yet free to be read when it changes."""

    @property
    def key(self) -> str:
        """What the file is known by."""
        return self.name or self.path

    def same_content(self, other: FileStamp) -> bool:
        """Whether nothing that both tell of the content differs."""
        plain = (self.size_bytes, self.modified_ns) == (other.size_bytes, other.modified_ns)
        return plain and (self.tag == other.tag or not (self.tag and other.tag))

    def to_json(self) -> dict[str, Any]:
        """A plain document for the ledger."""
        told = {"tag": self.tag, "name": self.name, "seen": self.seen}
        given = {key: value for key, value in told.items() if value}
        size, modified = self.size_bytes, self.modified_ns
        return {"path": self.path, "size_bytes": size, "modified_ns": modified, **given}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Exactly what a source will give, so that it can be read again identically."""

    kind: str
    identity: str
    files: tuple[FileStamp, ...] = ()
    passed: tuple[FileStamp, ...] = ()
    """Files that the caller asked to pass over; they count as read."""
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
    def repeats(self) -> int:
        """How many rows an earlier batch may have read, because they cannot be told apart."""
        return int(self.position.get("repeats", 0))

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

    def is_of_source(self, read: Bounds) -> bool:
        """Whether what was read is of the same source: the same table or topic, or common files."""
        if self.kind != read.kind or self.kind != FILES:
            return self.kind == read.kind and self.identity == read.identity
        mine = {word for stamp in self.files for word in (stamp.key, stamp.path)}
        return any({stamp.key, stamp.path} & mine for stamp in read.files)

    def from_the_start(self) -> Bounds:
        """All that was read up to here, but for what was undone."""
        counted = ("since", "rows", *_TOLD) if self.kind == WATERMARK else ()
        apart = ("since_version", "changed", "waiting", *counted)
        first = {"start": self.position["first"]} if self.kind == OFFSETS else {}
        kept = {key: value for key, value in self.position.items() if key not in apart}
        return replace(
            self,
            files=tuple(stamp for stamp in self.files if not stamp.unread),
            position={**kept, **first},
        )

    def to_json(self) -> dict[str, Any]:
        """A plain document for the ledger."""
        passed = [stamp.to_json() for stamp in self.passed]
        return {
            "kind": self.kind,
            "identity": self.identity,
            "files": [stamp.to_json() for stamp in self.files],
            **({"passed": passed} if passed else {}),
            "position": dict(self.position),
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Bounds:
        """The bounds a ledger document stands for."""
        return Bounds(
            kind=document["kind"],
            identity=document["identity"],
            files=tuple(FileStamp(**stamp) for stamp in document["files"]),
            passed=tuple(FileStamp(**stamp) for stamp in document.get("passed", ())),
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
    since: Mapping[str, int] = field(default_factory=dict)
    """The versions of the tables, by sink, when the rows were refused."""
    overwrite: bool = False
    """Whether rows that were written since then are overwritten."""

    def to_json(self) -> dict[str, Any]:
        """A plain document for the ledger."""
        return {
            "version": self.version,
            "batches": list(self.batches),
            "step": self.step,
            "rule": self.rule,
            "changes": dict(self.changes),
            "since": dict(self.since),
            "overwrite": self.overwrite,
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
    return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)


def _same(left: Bounds, right: Bounds) -> bool:
    if left.kind != right.kind or not (left.bounded and right.bounded):
        return False
    if left.kind == FILES:
        passed = _same_files(left.passed, right.passed)
        return passed and _same_files(left.files, right.files)
    apart = {name for name in _NEWER if (name in left.position) != (name in right.position)}
    one, two = (
        {key: value for key, value in bounds.position.items() if key not in apart}
        for bounds in (left, right)
    )
    return left.identity == right.identity and one == two


def _same_files(left: Iterable[FileStamp], right: Iterable[FileStamp]) -> bool:
    """Files are told by their names; by their paths where one side has no names yet."""
    one, two = list(left), list(right)
    named = all(stamp.name for stamp in (*one, *two))
    mine, theirs = (
        {stamp.name if named else stamp.path: stamp for stamp in stamps} for stamps in (one, two)
    )
    same = mine.keys() == theirs.keys() and len(one) == len(two)
    return same and all(stamp.same_content(theirs[key]) for key, stamp in mine.items())


def read_together(parts: Sequence[tuple[Bounds, bool]]) -> Bounds | None:
    """All that several batches read of one source, oldest first, as one; None for nothing.

    Each part says whether its batch was undone. Files add up, however the source spells its path;
    of everything else the last position counts.
    """
    if not parts:
        return None
    last = parts[-1][0]
    if last.kind != FILES:
        return last
    known: dict[str, FileStamp] = {}
    for bounds, undone in parts:
        known |= {stamp.key: replace(stamp, unread=True) for stamp in bounds.passed}
        known |= {
            stamp.key: replace(stamp, unread=undone or stamp.unread) for stamp in bounds.files
        }
    return replace(last, files=tuple(known.values()), passed=())
