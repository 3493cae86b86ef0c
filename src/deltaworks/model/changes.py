"""The words of change records: what they say happened to a row."""

from __future__ import annotations

from collections.abc import Iterable

STAYS = frozenset({"c", "r", "i", "u", "insert", "update", "upsert", "update_postimage"})
"""The row is there afterwards, as the record has it."""
GOES = frozenset({"d", "delete"})
"""The row is gone afterwards."""
PASSED_OVER = frozenset({"update_preimage"})
"""The record tells only how the row was before."""
KNOWN = tuple(sorted(STAYS | GOES | PASSED_OVER))
ENVELOPE = ("before", "after", "op")
"""The columns by which Debezium's records are known."""
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = FEED = (
    "_change_type",
    "_commit_version",
    "_commit_timestamp",
)
"""The columns that Delta's change feed adds to a row; a copy of the table does not store them."""
FEED_GOES = GOES | PASSED_OVER
"""In a feed a row as it was before an update is gone too: the update may have changed its key.

One commit deletes rows that were there before it and inserts those that are there after it, so
within a version what goes comes before what stays. A restore or an overwrite does both to one key.
"""
FEED_TIE_HINT = "for a change feed say `mode: changelog`: it takes what one commit did in order"
FEED_HINT = "leave out `sequence_by`: a change feed has the order of its versions"


def is_feed(columns: Iterable[str], *, op_column: str) -> bool:
    """Whether records are those of Delta's change feed."""
    is_named = op_column.lower() in ("", CHANGE_TYPE)
    return is_named and {CHANGE_TYPE, COMMIT_VERSION} <= set(columns)


def feed_problem(sequence_by: str) -> str:
    """What is wrong with the order that is asked of a change feed; empty when nothing is."""
    if sequence_by.lower() in ("", COMMIT_VERSION, COMMIT_TIMESTAMP):
        return ""
    return f'"{sequence_by}" does not tell which change of a change feed is the newer one'
