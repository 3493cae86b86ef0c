"""Whether a path or glob of files leads into a folder that somebody else writes."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import PurePath

from deltaworks.model.table_ref import is_url

_ANY_DEPTH = "**"


def reaches(pattern: str, folder: str) -> bool:
    """Whether a source of that path may read files of the folder: it, what is in it or around it.

    Folders are read with all that lies below them, so that either may be the longer one.
    """
    read, written = _parts(pattern), _parts(folder)
    fixed = tuple(takewhile(lambda part: part != _ANY_DEPTH, read))
    return all(
        part == wanted or fnmatchcase(part, wanted)
        for part, wanted in zip(written, fixed, strict=False)
    )


def _parts(path: str) -> tuple[str, ...]:
    return PurePath(path if is_url(path) else os.path.normpath(path)).parts
