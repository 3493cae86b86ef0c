"""The small manifest in a folder of files that batches land in, and which of its files count.

Files of an appended batch are moved in one by one, named after it, and the manifest says last that
it has landed. So whoever reads the manifest first and lists the files then sees whole batches.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.storage.paths import folders_around, read_text

MANIFEST = "_deltaworks.json"
EMPTY: dict[str, Any] = {"id": "", "writers": {}, "files": []}
_NAME = re.compile(r"batch(\d{8,})-([0-9a-f]{8})-.*")
_WRITTEN = re.compile(r"(?P<mark>batch\d{8,}-[0-9a-f]{8}-)?part-\d{5}-[0-9a-f-]{36}[\w.-]*")
"""A file as Spark names it, with the mark of its batch if it was moved in."""
_BESIDE = frozenset({MANIFEST, "_SUCCESS", f".{MANIFEST}.draft"})


def read_manifest(folder: str, stores: Stores = NO_STORES) -> dict[str, Any]:
    """What the manifest says; of a folder that has none, that nothing has landed."""
    text = read_text(f"{folder}/{MANIFEST}", stores)
    return EMPTY if text is None else dict(json.loads(text))


def is_ours(path: str, manifest: Mapping[str, Any]) -> bool:
    """Whether we put a file there; its path is told from the folder on.

    The manifest names the files of the last overwrite, and what is appended is named after its
    batch. Manifests of older versions name no files; there, all that Spark wrote is ours.
    """
    around, slash, name = path.rpartition("/")
    if name.startswith(".") and name.endswith(".crc"):  # Hadoop's sum of the file beside it
        return is_ours(f"{around}{slash}{name[1:-4]}", manifest)
    match = _WRITTEN.fullmatch(name)
    marked = match is not None and (match["mark"] is not None or "files" not in manifest)
    return marked or path in _BESIDE or path in manifest.get("files", ())


def is_seen(path: str) -> bool:
    """Whether readers of a folder see a file; what begins with "_" or "." they pass over."""
    return not path.rpartition("/")[2].startswith(("_", "."))


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


Landed = Mapping[str, tuple[int, int]]
"""For each writer, by its short name: the last batch that was replaced, the last that landed."""


def landed_batches(paths: Iterable[str], stores: Stores = NO_STORES) -> dict[str, Landed]:
    """For each folder around these files that has a manifest, what of each writer counts."""
    found: dict[str, Landed] = {}
    marked = [path for path in paths if batch_of(_name(path))]
    for folder in {parent for path in marked for parent in folders_around(path)}:
        manifest = read_manifest(folder, stores)
        if manifest is not EMPTY:
            found[folder] = counted(manifest)
    return found


def counted(manifest: Mapping[str, Any]) -> Landed:
    """What of each writer's batches counts, as a manifest tells."""
    gone = manifest.get("gone", {})
    return {
        short_name(app_id): (int(gone.get(short_name(app_id), 0)), n)
        for app_id, n in manifest["writers"].items()
    }


def is_landed(path: str, landed: Mapping[str, Landed]) -> bool:
    """Whether a file is of a batch that has landed and stands, as far as a manifest tells."""
    told = batch_of(_name(path))
    if told is None or not landed:
        return True
    own = next((landed[folder] for folder in folders_around(path) if folder in landed), None)
    return own is None or stands(told, own)


def stands(told: tuple[str, int], own: Landed) -> bool:
    """Whether a batch counts."""
    first, last = own.get(told[0], (0, 0))
    return first < told[1] <= last


def _name(path: str) -> str:
    return path.rpartition("/")[2]
