"""delta-rs errors in our words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltaworks.engines.objects.errors import unreachable
from deltaworks.errors import (
    CommitConflict,
    DamagedTable,
    EngineError,
    StorageError,
    TableNotFound,
    VersionNotFound,
)
from deltaworks.model.table_ref import is_url

_STORE = ("Generic S3 error", "Generic GCS error", "Generic MicrosoftAzure error", "privileges")
_DAMAGE = (
    *("Json error", "Malformed", "Expected ordered contiguous", "Invalid JSON", "LogSegment"),
    "found gap",
)
_GAP = re.compile(r"found gap: .*?version: (\d+)")


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Whatever delta-rs raises inside becomes one of our errors, its cause kept."""
    from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

    try:
        yield
    except TableNotFoundError as error:
        raise not_found(location) from error
    except CommitFailedError as error:
        raise CommitConflict(f'another writer was faster in "{location}"') from error
    except DeltaError as error:
        raise _classified(str(error), location) from error
    except OSError as error:
        if is_url(location):
            raise unreachable(location, str(error)) from error
        raise StorageError(f'"{location}" cannot be used: {_first_line(str(error))}') from error


def not_found(location: str) -> TableNotFound:
    """The error for a place where no table is."""
    return TableNotFound(
        f'"{location}" is not a Delta table',
        hint="check the name, or run the pipeline that makes it first",
    )


def _classified(text: str, location: str) -> EngineError:
    if "end version" in text:
        return VersionNotFound(f'"{location}" has no such version')
    if "oncurrent" in text or "already exists" in text:
        return CommitConflict(f'another writer was faster in "{location}"')
    if any(mark in text for mark in _DAMAGE):
        return _damage(text, location)
    if is_url(location) and any(mark in text for mark in _STORE):
        return unreachable(location, text)
    if "ermission denied" in text or "No space left" in text or "Read-only" in text:
        return StorageError(f'"{location}" cannot be written: {_first_line(text)}')
    return EngineError(f'"{location}": {_first_line(text)}')


def _damage(text: str, location: str) -> EngineError:
    """A log that cannot be read; a gap in it may be one of the listing alone."""
    gap = _GAP.search(text)
    if gap is None:
        return damaged(location, _broken_commit(location) or _first_line(text))
    version = int(gap[1]) + 1
    if has_commit(location, version):  # it came while the folder was listed
        return CommitConflict(f'another writer was faster in "{location}"')
    return damaged(location, f"commit {version} is missing")


def has_commit(location: str, version: int) -> bool:
    """Whether a commit is on the disk."""
    return Path(location, "_delta_log", f"{version:020d}.json").exists()


def damaged(location: str, what: str) -> DamagedTable:
    """The error for a log that cannot be trusted."""
    return DamagedTable(
        f'the log of "{location}" is damaged: {what}',
        hint="nothing was written; restore the file from a backup before you run again",
    )


def _broken_commit(location: str) -> str:
    """The commit that cannot be parsed, and its line; empty when no file on disk tells."""
    for path in sorted(Path(location).glob("_delta_log/*.json")):
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        for number, line in enumerate(lines, start=1):
            try:
                json.loads(line or "{}")
            except ValueError:
                return f"line {number} of commit {int(path.stem)} cannot be read"
    return ""


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "unknown error")
