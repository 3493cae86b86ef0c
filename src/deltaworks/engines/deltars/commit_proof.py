"""Whether a commit is a batch's: by the note in it, never by a number alone.

Delta passes over a batch whose number the table has seen, and says nothing. The number may be that
of another ledger, or of this one before it was put back from a backup: its rows are other rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from deltaworks.engines.deltars.log.history import parse_user_metadata
from deltaworks.engines.deltars.snapshot import TableSnapshot
from deltaworks.errors import CommitConflict, GuardError
from deltaworks.model.commit import LANDED_BEFORE, TAKEN_OUT, CommitInfo
from deltaworks.model.table_info import CommitRecord
from deltaworks.model.write import Stamp

_ATTEMPT = "attempt"


def own_commit(look: TableSnapshot | None, stamp: Stamp, *, after: int = -1) -> CommitRecord | None:
    """The commit after a version that holds this batch; None when the table has no such number."""
    txn = stamp.txn
    last = None if look is None else look.transaction(txn.app_id)
    if look is None or last is None or last < txn.version:
        return None
    found = commit_with(look.history(after=after), stamp)
    if found is None:
        raise CommitConflict(
            f'batch {last} of "{txn.app_id}" is in "{look.location}" already, '
            f"and it is not the batch {txn.version} that was to be written",
            hint="run it again",
        )
    return found


def landed_before(look: TableSnapshot | None, stamp: Stamp, *, label: str) -> CommitInfo:
    """How a batch landed whose number the table has; raises when that was another batch."""
    found = None if look is None else commit_with(look.history(), stamp)
    if found is None:
        raise GuardError(
            f'"{label}" is ahead of the ledger: it has a batch {stamp.txn.version} '
            "that is not the batch of this run",
            hint="the ledger is older than the table: put the newer one back, "
            "or reload everything with --full-refresh",
        )
    return CommitInfo(committed=False, version=found.version, note=LANDED_BEFORE)


def commit_with(records: Iterable[CommitRecord], stamp: Stamp) -> CommitRecord | None:
    """The commit that holds a batch; the oldest, because a compaction may carry its note too."""
    wanted = parse_user_metadata(stamp.user_metadata)
    ours = [record for record in records if _is_same_batch(record.user_metadata, wanted)]
    return min(ours, key=lambda record: record.version, default=None)


def _is_same_batch(note: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether two notes are of one batch, or of taking out one batch, at whichever attempt."""
    for proof in ("token", TAKEN_OUT):
        if wanted.get(proof):
            return all(note.get(name) == wanted.get(name) for name in (proof, "step", "undo"))
    return {**note, _ATTEMPT: 1} == {**wanted, _ATTEMPT: 1}
