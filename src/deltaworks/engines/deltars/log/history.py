"""A table's history, read from its commits by ourselves.

delta-rs leaves out commits that say nothing about themselves and numbers the others anew, and finds
none where the folder's name has a `#`. So each commit is read by its own name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.text import read_json
from deltaworks.model.table_info import CommitRecord
from deltaworks.model.table_ref import is_url
from deltaworks.storage.paths import read_text

_AT_ONCE = 16


def commit_records(
    location: str, times: Sequence[tuple[int, int]], stores: Stores = NO_STORES
) -> list[CommitRecord]:
    """The records of some commits, each given with the milliseconds its file was made at."""

    def record(made: tuple[int, int]) -> CommitRecord:
        version, modified_ms = made
        text = read_text(f"{location}/_delta_log/{version:020d}.json", stores)
        entry = {"timestamp": modified_ms, **_own_words(text or ""), "version": version}
        return record_of(entry)

    if not is_url(location):
        return [record(made) for made in times]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(record, times))


def _own_words(text: str) -> Mapping[str, Any]:
    """What a commit says about itself; nothing where it does not, or cannot be read."""
    for line in text.split("\n"):  # other breaks of lines stand within values
        if '"commitInfo"' not in line:
            continue
        try:
            found = read_json(line).get("commitInfo")
        except (ValueError, AttributeError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def record_of(entry: Mapping[str, Any]) -> CommitRecord:
    """A commit by what it says about itself."""
    metrics = entry.get("operationMetrics")
    made = entry.get("inCommitTimestamp", entry.get("timestamp"))
    return CommitRecord(
        version=int(entry["version"]),
        timestamp_ms=made if isinstance(made, int) else 0,
        operation=str(entry.get("operation") or ""),
        metrics=dict(metrics) if isinstance(metrics, dict) else {},
        user_metadata=parse_user_metadata(entry.get("userMetadata")),
        engine=str(entry.get("engineInfo") or ""),
        restored_to=restored_to(entry),
    )


def restored_to(entry: Mapping[str, Any]) -> int | None:
    """The version that a commit set the table back to; None where it says none."""
    told = entry.get("operationParameters")
    version = str(told.get("version")) if isinstance(told, dict) else ""
    is_restore = entry.get("operation") == "RESTORE"
    return int(version) if is_restore and version.isdecimal() else None


def parse_user_metadata(text: object) -> dict[str, Any]:
    """Our note in a commit; empty for anybody else's."""
    try:
        value = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
