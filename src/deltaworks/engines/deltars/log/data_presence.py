"""Whether the files that a table is made of are the ones that its log names.

The log knows each file's size. A file that is missing or has another size would be noticed by
whoever reads it, in an engine's own words and perhaps after a commit; on this machine it costs next
to nothing to look first. In a bucket it would be a request for each file, and readers tell.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from deltaworks.engines.deltars.errors import damaged
from deltaworks.engines.deltars.log.checkpoints import json_file
from deltaworks.errors import DamagedData

if TYPE_CHECKING:
    import pyarrow as pa

_MARKS = (b"PAR1", b"PARE")
_MAX_OPENED = 1000
"""Of so many files each one's first and last bytes are read too."""


def check_data(location: str, adds: pa.Table) -> None:
    """Refuse a table with a data file that is missing, of another size, or no Parquet file."""
    paths, sizes = (adds.column(name).to_pylist() for name in ("path", "size_bytes"))
    is_opened = len(paths) <= _MAX_OPENED
    for path, size in zip(paths, sizes, strict=True):
        place = _place(location, path)
        if place and (problem := _problem(place, size, is_opened=is_opened)):
            raise damaged_data(location, f'data file "{path}" {problem}')


def check_checksum(location: str, version: int, adds: pa.Table) -> None:
    """Refuse a last commit that lost lines: what its writer counted stands beside it."""
    said = json_file(Path(location) / "_delta_log" / f"{version:020d}.crc")
    listed = {
        "numFiles": adds.num_rows,
        "tableSizeBytes": sum(adds.column("size_bytes").to_pylist()),
    }
    for name, found in listed.items():
        if isinstance(said.get(name), int) and said[name] != found:
            what = f"{'files' if name == 'numFiles' else 'bytes'}"
            raise damaged(
                location,
                f"up to commit {version} it lists {found} {what}, and its writer counted "
                f"{said[name]}",
            )


def damaged_data(location: str, what: str) -> DamagedData:
    """The error for a table whose files are not what its log says."""
    return DamagedData(
        f'"{location}" is damaged: {what}',
        hint="nothing was written; restore the file from a backup, or the table to a version "
        "without it",
    )


def _place(location: str, path: str) -> Path | None:
    """Where a file is on this machine; None when it is elsewhere."""
    if ":/" not in path:
        return Path(location, unquote(path))
    found = urlparse(path)
    return Path(unquote(found.path)) if found.scheme == "file" else None


def _problem(place: Path, size: int, *, is_opened: bool) -> str:
    try:
        status = place.stat()
        if not stat.S_ISREG(status.st_mode):
            return "is not a file"
        if status.st_size != size:
            return f"has {status.st_size} bytes, and the log says {size}"
        return "" if not is_opened or _is_parquet(place, size) else "is not a Parquet file"
    except (FileNotFoundError, NotADirectoryError, ValueError):  # or no name at all
        return "is missing"


def _is_parquet(place: Path, size: int) -> bool:
    with place.open("rb") as file:
        begins = file.read(4)
        file.seek(max(0, size - 4))
        return begins in _MARKS and file.read(4) in _MARKS
