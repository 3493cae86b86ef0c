"""The actions of a commit, as the Delta protocol writes them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from deltaworks.model.commit import Txn


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A file that is written and not yet part of the table."""

    path: str
    size_bytes: int
    rows: int
    partition: Mapping[str, str | None]
    modified_ms: int
    statistics: str


ENGINE = "deltaworks"
"""Who commits, by the word of the commits made here."""


def commit_info(operation: str, parameters: Mapping[str, str], note: str) -> dict[str, Any]:
    """What a commit says about itself."""
    return {
        "commitInfo": {
            "timestamp": int(time.time() * 1000),
            "operation": operation,
            "operationParameters": dict(parameters),
            "engineInfo": ENGINE,
            "userMetadata": note,
        }
    }


def txn_action(txn: Txn) -> dict[str, Any]:
    """A transaction, which a commit carries."""
    return {"txn": {"appId": txn.app_id, "version": txn.version}}


def add_action(file: DataFile, *, is_new: bool) -> dict[str, Any]:
    """A file becomes part of the table, with rows that are new or were in other files before."""
    return {
        "add": {
            "path": quote(file.path),
            "partitionValues": dict(file.partition),
            "size": file.size_bytes,
            "modificationTime": file.modified_ms,
            "dataChange": is_new,
            "stats": file.statistics,
        }
    }


class Removable(Protocol):
    """A file of the table, as far as its removal is concerned."""

    @property
    def path(self) -> str:
        """Its name in the table's folder."""
        ...

    @property
    def size_bytes(self) -> int:
        """How large it is."""
        ...

    @property
    def partition(self) -> Mapping[str, str | None]:
        """The partition it is in."""
        ...


def remove_action(file: Removable, *, is_new: bool) -> dict[str, Any]:
    """A file is no part of the table any more; its rows go, or are in other files."""
    return {
        "remove": {
            "path": quote(file.path),
            "deletionTimestamp": int(time.time() * 1000),
            "dataChange": is_new,
            "extendedFileMetadata": True,
            "partitionValues": dict(file.partition),
            "size": file.size_bytes,
        }
    }
