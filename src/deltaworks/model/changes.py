"""The words of change records: what they say happened to a row."""

from __future__ import annotations

STAYS = frozenset({"c", "r", "i", "u", "insert", "update", "upsert", "update_postimage"})
"""The row is there afterwards, as the record has it."""
GOES = frozenset({"d", "delete"})
"""The row is gone afterwards."""
PASSED_OVER = frozenset({"update_preimage"})
"""The record tells only how the row was before."""
KNOWN = tuple(sorted(STAYS | GOES | PASSED_OVER))
ENVELOPE = ("before", "after", "op")
"""The columns by which Debezium's records are known."""
