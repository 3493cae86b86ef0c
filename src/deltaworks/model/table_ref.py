"""Where a table is: by name in the warehouse, or by path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deltaworks.errors import ConfigError

QUARANTINE_SUFFIX = "__quarantine"
OWN_FOLDER = "_deltaworks"
OWN_LOCK = "_deltaworks.lock"
_LOCKS = (".lock", ".lock.queue")
"""The lock of a table that is a whole bucket, which has no place beside it."""
_SAME_STORE = {"s3a": "s3", "s3n": "s3"}
_SLASHES = re.compile(r"/{2,}")
_MISREAD = re.compile(r"[\[\]|^\\\x00-\x1f\x7f]|%[0-9A-Fa-f]{2}")
"""What delta-rs takes for something else in a folder's name, or cannot bear there."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]*(\.[A-Za-z0-9][A-Za-z0-9_\-]*)*")


@dataclass(frozen=True)
class TableRef:
    """A table under the name people use and the location engines use."""

    label: str
    location: str


def is_lock(path: str) -> bool:
    """Whether a file or object is a lock of ours: they stay when they are let go."""
    name = path.rpartition("/")[2]
    return name == OWN_LOCK or (name.startswith(".") and name.endswith(_LOCKS))


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


def table_path_problem(path: str) -> str:
    """Why no table can lie at a path of this machine; empty when one can."""
    found = None if is_url(path) else _MISREAD.search(path)
    if found is None:
        return ""
    part = next(part for part in path.split("/") if found[0] in part)
    return (
        f"no table can lie at {json.dumps(path, ensure_ascii=False)}: a folder named "
        f"{json.dumps(part, ensure_ascii=False)} would be taken for another; use a name without "
        '"[", "]", "|", "^", backslashes and escapes such as "%20"'
    )


def table_place_problems(*, table: str, path: str) -> list[str]:
    """What is wrong with how a file names a table: by name in the warehouse, or by path."""
    if bool(table) == bool(path):
        return ['say either "table" or "path"']
    problem = table_name_problem(table) if table else table_path_problem(path)
    return [problem] if problem else []


def table_at(label: str, location: str) -> TableRef:
    """The table at a location, if one can lie there."""
    if problem := table_path_problem(location):
        raise ConfigError(problem)
    return TableRef(label, location)


def named_table(name: str, *, warehouse: str) -> TableRef:
    """The table of that name: each dot is a folder below the warehouse."""
    if problem := table_name_problem(name):
        raise ConfigError(problem)
    return table_at(name, f"{warehouse}/{name.replace('.', '/')}")


def quarantine_table(pipeline: str, *, warehouse: str) -> TableRef:
    """The table that holds the rows a pipeline refused."""
    name = f"{pipeline}{QUARANTINE_SUFFIX}"
    return TableRef(name, f"{warehouse}/{name}")


def quarantined_pipelines(folders: Iterable[str]) -> tuple[str, ...]:
    """The pipelines that have such a table, by the names of the warehouse's folders."""
    found = (name for name in folders if name.endswith(QUARANTINE_SUFFIX))
    return tuple(sorted(name.removesuffix(QUARANTINE_SUFFIX) for name in found))
