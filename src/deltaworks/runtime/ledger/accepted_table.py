"""What a ledger still knows of a table that was accepted as it is."""

from __future__ import annotations

from deltaworks.errors import GuardError
from deltaworks.runtime.ledger.state import LedgerState, Restore


def refuse_before_acceptance(table_id: str, version: int, state: LedgerState) -> None:
    """Of what a table held before it was accepted as it is, the ledger does not know enough."""
    for restore in state.restored:
        at = restore.version or 0
        is_here = restore.table_id == table_id
        if restore.accept.get("is_floor") and is_here and version < at:
            raise GuardError(
                f"version {version} is older than version {at}, in which the table was accepted "
                "as it is",
                hint=f"choose version {at} or a later one, "
                "or load everything anew with --full-refresh",
            )


def not_held(state: LedgerState, restore: Restore) -> list[int]:
    """Batches that a table which is accepted as it is does not hold: their rows stay out."""
    steps = restore.accept.get("steps", ())
    held = set(steps[-1][1]) if steps else {entry.n for entry in state.batches}
    return [entry.n for entry in state.batches if entry.n not in held]
