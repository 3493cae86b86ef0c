"""The small manifest in a folder of files that batches land in, and which of its files count.

Files of an appended batch are moved in one by one, named after it, and the manifest says last that
it has landed. So whoever reads the manifest first and lists the files then sees whole batches.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

MANIFEST = "_deltaworks.json"
_NAME = re.compile(r"batch(\d{8,})-([0-9a-f]{8})-.*")


def read_manifest(folder: Path) -> dict[str, Any]:
    """What the manifest says; of a folder that has none, that nothing has landed."""
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {"id": "", "writers": {}}
    document: dict[str, Any] = json.loads(text)
    return document


def short_name(app_id: str) -> str:
    """A writer in the names of its files."""
    return hashlib.sha256(app_id.encode()).hexdigest()[:8]


def batch_mark(n: int, app_id: str) -> str:
    """How the names of a batch's files begin."""
    return f"batch{n:08d}-{short_name(app_id)}-"


def batch_of(name: str) -> tuple[str, int] | None:
    """The writer and the batch that a file's name tells; None for any other file."""
    match = _NAME.fullmatch(name)
    return None if match is None else (match[2], int(match[1]))


def landed_batches(paths: Iterable[str]) -> dict[str, dict[str, int]]:
    """For each folder around these files that has a manifest, the last batch of each writer."""
    found: dict[str, dict[str, int]] = {}
    folders = {parent for path in paths if batch_of(Path(path).name) for parent in _around(path)}
    for folder in folders:
        if (folder / MANIFEST).is_file():
            writers = read_manifest(folder)["writers"]
            found[str(folder)] = {short_name(app_id): n for app_id, n in writers.items()}
    return found


def is_landed(path: str, landed: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether a file is of a batch that has landed, as far as a manifest tells."""
    told = batch_of(Path(path).name)
    own = next((landed[str(folder)] for folder in _around(path) if str(folder) in landed), None)
    if told is None or own is None:
        return True
    writer, n = told
    return n <= own.get(writer, 0)


def _around(path: str) -> tuple[Path, ...]:
    return tuple(Path(path).parents)
