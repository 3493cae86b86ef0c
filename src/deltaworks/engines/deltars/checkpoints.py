"""Whether a checkpoint tells the truth about the files it stands for.

Engines believe a checkpoint without looking at the commits before it, so one that lists fewer files
is a table with fewer rows. Its own footer counts the files it lists; what the writers of the log
said their number was stands beside it.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from deltaworks.engines.deltars.errors import damaged

_CLASSIC = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_PATH = "add.path"


def check_checkpoint(location: str, version: int) -> None:
    """Refuse a checkpoint that is torn, or lists another number of files than was counted."""
    log = Path(location) / "_delta_log"
    parts = [
        entry
        for entry in log.glob(f"{version:020d}.checkpoint*.parquet")
        if _CLASSIC.fullmatch(entry.name)
    ]
    if not parts:  # a newer kind, which names and checks its own parts
        return
    listed = 0
    for part in parts:
        status = part.stat()
        found = _files_listed(str(part), status.st_size, status.st_mtime_ns)
        if found is None:
            raise damaged(location, f"checkpoint {version} is torn")
        listed += found
    for said in _files_said(log, version):
        if said != listed:
            raise damaged(
                location, f"checkpoint {version} lists {listed} files, and there were {said}"
            )


@lru_cache(maxsize=256)
def _files_listed(path: str, size_bytes: int, modified_ns: int) -> int | None:  # noqa: ARG001
    """Files that a checkpoint adds; None when it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        footer = pq.read_metadata(path)
        names = [footer.schema.column(i).path for i in range(footer.num_columns)]
        if _PATH not in names:
            return 0
        place = names.index(_PATH)
        chunks = [footer.row_group(i).column(place) for i in range(footer.num_row_groups)]
        if not all(chunk.is_stats_set and chunk.statistics.has_null_count for chunk in chunks):
            return _count(path)
    except (pa.ArrowException, OSError):
        return None
    return sum(int(chunk.num_values - chunk.statistics.null_count) for chunk in chunks)


def _count(path: str) -> int:
    """The same where the footer does not tell."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    added = pq.ParquetFile(path).read(columns=[_PATH])["add"].combine_chunks()
    return int(pc.count(pc.struct_field(added, "path")).as_py())


def _files_said(log: Path, version: int) -> list[int]:
    """The number of files that whoever wrote the log counted at a version."""
    checksum = _json(log / f"{version:020d}.crc").get("numFiles")
    last = _json(log / "_last_checkpoint")
    counted = last.get("numOfAddFiles") if last.get("version") == version else None
    return [said for said in (checksum, counted) if isinstance(said, int)]


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
