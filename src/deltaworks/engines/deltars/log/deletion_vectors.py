"""Whether the deletion vectors that a table's files need are there.

delta-rs does not tell which files have one, and only who reads rows would notice that one is gone:
rows that were deleted cannot be left out then. So the log is read for them, where it names any.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from deltaworks.engines.deltars.log.checkpoints import checkpoint_parts
from deltaworks.engines.deltars.log.data_presence import damaged_data
from deltaworks.engines.deltars.log.file_names import log_names
from deltaworks.storage.durability import vector_file

if TYPE_CHECKING:
    from deltaworks.engines.deltars.log.soundness import SoundLog

Vector = Mapping[str, Any]
_AROUND_BYTES = 8
"""The length before a vector, and the checksum behind it."""


def check_vectors(log: SoundLog) -> None:
    """Refuse a table on this machine with a deletion vector that is missing or too short."""
    if not log.has_vectors:
        return
    for path, vector in live_vectors(log).items():
        if problem := _problem(log.location, vector):
            raise damaged_data(log.location, f'the deletion vector of "{path}" {problem}')


def _problem(location: str, vector: Vector) -> str:
    try:
        place, end = _place(location, vector), _end(vector)
    except (ValueError, TypeError):
        return "cannot be found by what the log says"
    if place is None:
        return ""
    size = _size(place)
    if size is None:
        return f'is missing: "{place.name}"'
    return f'is torn: "{place.name}" has {size} bytes' if size < end else ""


def live_vectors(log: SoundLog) -> dict[str, Vector]:
    """The deletion vector of each file of the table that has one."""
    found: dict[str, Vector] = dict(_of_checkpoint(log.location, log.checkpoint))
    first = -1 if log.checkpoint is None else log.checkpoint
    for version in range(first + 1, log.version + 1):
        actions = list(_of_commit(log.location, version))
        for action in actions:
            found.pop((action.get("remove") or {}).get("path", ""), None)
        adds = [action["add"] for action in actions if action.get("add")]
        found.update({one["path"]: one["deletionVector"] for one in adds if _has_one(one)})
    return found


def _of_checkpoint(location: str, version: int | None) -> Iterator[tuple[str, Vector]]:
    names = None if version is None else log_names(location)
    start = None if names is None else names.checkpoint_for(version)
    for place in () if start is None else checkpoint_parts(location, start):
        adds = _adds_of_parquet(place) if place.suffix == ".parquet" else _lines(place)
        found = (one.get("add") or {} for one in adds)
        yield from ((one["path"], one["deletionVector"]) for one in found if _has_one(one))


def _adds_of_parquet(place: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(place) as file:
        rows = file.read(columns=["add.path", "add.deletionVector"])
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def _of_commit(location: str, version: int) -> Iterable[Mapping[str, Any]]:
    return _lines(Path(location) / "_delta_log" / f"{version:020d}.json")


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def _has_one(add: Mapping[str, Any]) -> bool:
    return bool((add.get("deletionVector") or {}).get("storageType"))


def _place(location: str, vector: Vector) -> Path | None:
    """Where a vector is on this machine; None for one that is elsewhere, or in the log itself."""
    told = str(vector.get("pathOrInlineDv"))
    if vector["storageType"] == "u":
        return vector_file(Path(location), told)
    url = urlparse(told)
    is_here = vector["storageType"] == "p" and url.scheme in ("", "file")
    return Path(unquote(url.path)) if is_here else None


def _end(vector: Vector) -> int:
    """How far into its file a vector goes."""
    return int(vector.get("offset") or 0) + int(vector.get("sizeInBytes") or 0) + _AROUND_BYTES


def _size(place: Path) -> int | None:
    try:
        return place.stat().st_size
    except OSError:
        return None
