"""What a commit by delta-rs carries: transactions, notes, and the clauses of a merge."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaworks.model.commit import Txn

if TYPE_CHECKING:
    from deltalake import CommitProperties, PostCommitHookProperties

_COMMIT_RETRIES = 100
"""delta-rs tries again at once when another writer was faster; 15 times unless told otherwise."""
ALONE = 0
"""For a commit that must follow the very version it was made from.

delta-rs judges by the text of a condition whether the commits in between matter, and misreads its
own text of decimals, of fractions of a second and of quotes.
"""


ROWS_MARK = "deltaworksRows"
"""What a commit of a batch calls its rows and what was done with them."""


def commit_properties(
    txns: Sequence[Txn],
    note: Mapping[str, Any],
    *,
    rows_mark: str = "",
    retries: int = _COMMIT_RETRIES,
) -> CommitProperties:
    """What a commit carries besides its files."""
    from deltalake import CommitProperties, Transaction

    marked = {ROWS_MARK: rows_mark} if rows_mark else {}
    return CommitProperties(
        app_transactions=[Transaction(txn.app_id, txn.version) for txn in txns],
        max_commit_retries=retries,
        custom_metadata={"userMetadata": json.dumps(dict(note)), **marked},
    )


def no_hooks() -> PostCommitHookProperties:
    """Checkpoints are made beside the stream, so that no epoch waits for one."""
    from deltalake import PostCommitHookProperties

    return PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@dataclass(frozen=True, kw_only=True)
class MergePlan:
    """A MERGE in parts: what matches, and the conditions under which something happens."""

    on: str
    columns: Mapping[str, str]
    update: str | None
    insert: str | None
    delete: str = ""
    inserts: Mapping[str, str] | None = None
    """The columns of a new row, where they are not those of an update."""
    always_commits: bool = True
    """Whether the transactions are kept even when no row changes."""
    rows_mark: str = ""
    """What the commit calls its rows."""
    max_memory_bytes: int | None = None
    """What it may hold before it goes on on disk; no limit when left out."""
