"""Folders named `key=value` below a path: each key is a column of the rows in them."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from deltaworks.config.documents import shown_path
from deltaworks.errors import InputError
from deltaworks.model.batch import Bounds
from deltaworks.model.table_ref import is_url
from deltaworks.storage.paths import fixed_part

_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
"""How Spark spells what cannot stand in a folder's name, one letter at a time."""


def partition_base(bounds: Bounds) -> str:
    """The folder below which `key=value` counts: the path, or a glob up to its first wildcard."""
    identity = bounds.identity
    if is_url(identity):
        is_file = any(stamp.path == identity for stamp in bounds.files)
        return identity.rpartition("/")[0] if is_file else fixed_part(identity)
    if Path(identity).is_dir():
        return identity
    parts = Path(identity).parts
    if os.path.lexists(identity) or not glob.has_magic(identity):
        return str(Path(identity).parent)
    fixed = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return str(Path(*parts[:fixed]))


def partition_keys(bounds: Bounds) -> tuple[str, ...]:
    """The keys of the folders, outermost first; files that do not agree on them are refused.

    Spark would pass over files that lie outside the folders of the others, and say nothing.
    """
    base, found, first = Path(partition_base(bounds)), None, ""
    for stamp in bounds.files:
        keys = _keys(Path(stamp.path), base)
        if found is None:
            found, first = keys, stamp.path
        elif keys != found:
            raise InputError(
                f"{shown_path(stamp.path)} lies in {_told(keys)}, "
                f"and {shown_path(first)} in {_told(found)}",
                hint="put all files into folders of the same keys, or read them as two sources",
            )
    return found or ()


def _keys(path: Path, base: Path) -> tuple[str, ...]:
    """As Spark finds them: the innermost run of such folders, plain ones below it aside."""
    folders = path.relative_to(base).parts[:-1] if path.is_relative_to(base) else ()
    keys: list[str] = []
    for folder in reversed(folders):
        if folder.find("=") > 0:
            keys.append(_ESCAPED.sub(_letter, folder.partition("=")[0]))
        elif keys:
            break
    return tuple(reversed(keys))


def _letter(escaped: re.Match[str]) -> str:
    return chr(int(escaped[1], 16))


def _told(keys: tuple[str, ...]) -> str:
    return f"folders of {', '.join(keys)}" if keys else "no folder named key=value"
