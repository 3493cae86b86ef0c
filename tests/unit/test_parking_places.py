"""Every sink of a batch parks in a folder of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations

from deltaworks.runtime.ledger.parking import folder_name, parked_here
from deltaworks.runtime.ledger.state import BatchEntry, LedgerState, SinkEntry


def test_no_two_sinks_share_a_folder_even_where_case_does_not_count() -> None:
    sinks = ("out/a", "out_a", "out:a", "Out_a", "OUT_A", "out a", "orders", "ords\u00e9", "ords_")
    names = [folder_name(3, sink) for sink in sinks]
    assert all("/" not in name for name in names)
    assert all(one.lower() != two.lower() for one, two in combinations(names, 2))
    assert folder_name(3, "orders") == "3-orders"


def test_what_is_parked_is_found_in_a_warehouse_that_moved_and_nowhere_else() -> None:
    """A copy of a project must not touch what is parked in the original."""
    places = ("/old/warehouse/_deltaworks/parked/p/2-orders", "")
    sinks = [SinkEntry(name=p, app_id="a", identity="", txn_found=None, parked=p) for p in places]
    entry = BatchEntry(
        n=2,
        batch_id=None,
        run_id="r",
        spec="s",
        generation=0,
        state="done",
        bounds={},
        sinks=tuple(sinks),
        at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    found = parked_here(LedgerState(batches=(entry,)), "/new/warehouse").batches[0].sinks
    here = "/new/warehouse/_deltaworks/parked/p/2-orders"
    assert [sink.parked for sink in found] == [here, ""]
