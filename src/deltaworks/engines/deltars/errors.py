"""delta-rs errors in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType

from deltaworks.engines.deltars.text import read_json
from deltaworks.errors import (
    CommitConflict,
    DamagedData,
    DamagedTable,
    EngineError,
    StorageError,
    TableNotFound,
    UnreadableTable,
    UnsupportedOperation,
    VersionNotFound,
)
from deltaworks.model.table_ref import is_url
from deltaworks.storage.object_errors import unreachable

_STORE = ("Generic S3 error", "Generic GCS error", "Generic MicrosoftAzure error", "privileges")
_DAMAGE = (
    *("Json error", "Malformed", "Expected ordered contiguous", "Invalid JSON", "LogSegment"),
    "found gap",
)
_SHAPELESS = ("No protocol found", "No table metadata", "Invalid protocol", "Schema error")
_UNKNOWN = ("nsupported", "not supported", "min_writer_version", "catalog-managed")
_DATA = ("Parquet error", "Deletion Vector error", "File not found", "deletion_vector_")
_NOT_TEXT = ("non UTF-8", "invalid utf-8", "invalid UTF-8", "Invalid UTF8")
_DATA_FILE = re.compile(r"([^\s/:]+\.(?:parquet|bin))")
_GAP = re.compile(r"found gap: .*?version: (\d+)")


class _Reading(AbstractContextManager[None]):
    """What delta-rs' reader raises: no error of delta-rs', but a plain one in its words."""

    def __init__(self, location: str) -> None:
        self.location = location

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is Exception:
            raise _classified(str(error), self.location) from error


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Whatever delta-rs raises inside becomes one of our errors, its cause kept."""
    from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

    try:
        with _Reading(location):
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
    if is_url(location) and any(mark in text for mark in _STORE):
        return unreachable(location, text)
    if "ermission denied" in text or "No space left" in text or "Read-only" in text:
        return StorageError(f'"{location}" cannot be written: {_first_line(text)}')
    return _by_table(text, location)


def _by_table(text: str, location: str) -> EngineError:
    """What is wrong with the table itself; never in delta-rs' own words."""
    if any(mark in text for mark in _NOT_TEXT):
        return UnsupportedOperation(
            f'"{location}" has text that is not UTF-8, which delta-rs does not read',
            hint="let Spark read it",
        )
    if any(mark in text for mark in _DATA):
        return _damaged_data(text, location)
    if any(mark in text for mark in _DAMAGE):
        return _damage(text, location)
    if any(mark in text for mark in _UNKNOWN):
        return UnsupportedOperation(
            f'"{location}" has features that delta-rs does not know',
            hint="Spark may know them: use it in a pipeline",
        )
    if is_url(location) and any(mark in text for mark in _SHAPELESS):
        return UnreadableTable(
            f'"{location}" cannot be read: its log has no protocol or columns that make sense',
            hint="nothing was written; restore the log from a backup, or rewrite the table",
        )
    return EngineError(
        f'delta-rs could not do this with "{location}"', hint="--debug shows what it said"
    )


def _damaged_data(text: str, location: str) -> DamagedData:
    """A data file or deletion vector that cannot be read, named where delta-rs names it."""
    found = _DATA_FILE.search(text)
    name = f'"{found[1]}"' if found else "a data file"
    return DamagedData(
        f'"{location}" is damaged: {name} is missing or cannot be read',
        hint="nothing was written; restore the file from a backup, or the table to a version "
        "without it",
    )


def _damage(text: str, location: str) -> EngineError:
    """A log that cannot be read; a gap in it may be one of the listing alone."""
    gap = _GAP.search(text)
    if gap is None:
        return damaged(location, _broken_commit(location) or "it cannot be read")
    version = int(gap[1]) + 1
    if has_commit(location, version):  # it came while the folder was listed
        return CommitConflict(f'another writer was faster in "{location}"')
    return damaged(location, f"commit {version} is missing")


def has_commit(location: str, version: int) -> bool:
    """Whether a commit is on the disk."""
    return Path(location, "_delta_log", f"{version:020d}.json").exists()


def damaged(location: str, what: str, kind: type[DamagedTable] = DamagedTable) -> DamagedTable:
    """The error for a log that cannot be trusted."""
    return kind(
        f'the log of "{location}" is damaged: {what}',
        hint="nothing was written; restore the file from a backup before you run again",
    )


def _broken_commit(location: str) -> str:
    """The commit that cannot be parsed, and its line; empty when no file on disk tells."""
    for path in sorted(Path(location).glob(f"_delta_log/{'[0-9]' * 20}.json")):
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        for number, line in enumerate(lines, start=1):
            try:
                read_json(line or "{}")
            except ValueError:
                return f"line {number} of commit {int(path.stem)} cannot be read"
    return ""


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "unknown error")
