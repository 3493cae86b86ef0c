"""Where a table is: by name in the warehouse, or by path."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deltaworks.errors import ConfigError

QUARANTINE_SUFFIX = "__quarantine"
OWN_FOLDER = "_deltaworks"
_SAME_STORE = {"s3a": "s3", "s3n": "s3"}
_SLASHES = re.compile(r"/{2,}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]*(\.[A-Za-z0-9][A-Za-z0-9_\-]*)*")


@dataclass(frozen=True)
class TableRef:
    """A table under the name people use and the location engines use."""

    label: str
    location: str


def is_url(path: str) -> bool:
    """Whether a path names an object store rather than a folder."""
    return "://" in path


def absolute(path: str, *, root: Path) -> str:
    """A path as engines need it: URLs under one spelling, the rest from the project's folder."""
    if is_url(path):
        scheme, _, rest = path.partition("://")
        return f"{_SAME_STORE.get(scheme, scheme)}://{_SLASHES.sub('/', rest).rstrip('/')}"
    return str((root / Path(path).expanduser()).absolute())


def table_name_problem(name: str) -> str:
    """Why a table name cannot be used; empty when it can."""
    if not _NAME.fullmatch(name):
        return f'"{name}" is not a table name: letters, digits, "_" and "-", parts separated by "."'
    if any(part.endswith(QUARANTINE_SUFFIX) for part in name.split(".")):
        return f'"{name}" ends in "{QUARANTINE_SUFFIX}", which is kept for quarantine tables'
    return ""


def named_table(name: str, *, warehouse: str) -> TableRef:
    """The table of that name: each dot is a folder below the warehouse."""
    if problem := table_name_problem(name):
        raise ConfigError(problem)
    return TableRef(name, f"{warehouse}/{name.replace('.', '/')}")


def quarantine_table(pipeline: str, *, warehouse: str) -> TableRef:
    """The table that holds the rows a pipeline refused."""
    name = f"{pipeline}{QUARANTINE_SUFFIX}"
    return TableRef(name, f"{warehouse}/{name}")


def quarantined_pipelines(folders: Iterable[str]) -> tuple[str, ...]:
    """The pipelines that have such a table, by the names of the warehouse's folders."""
    found = (name for name in folders if name.endswith(QUARANTINE_SUFFIX))
    return tuple(sorted(name.removesuffix(QUARANTINE_SUFFIX) for name in found))
