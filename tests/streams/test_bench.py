"""The measurement of epochs measures both sides on the same rows (S8)."""

from __future__ import annotations

from pathlib import Path

from bench.epochs import Place, changelog, latency, throughput
from bench.epochs_memory import flatness, stream


def test_both_sides_write_the_same_rows_and_are_timed(tmp_path: Path) -> None:
    found = throughput(Place(str(tmp_path), {}), rounds=1, epochs=2, rows=100)
    assert set(found["rows_per_second"]) == {"ours", "bare"}
    assert changelog(Place(str(tmp_path), {}), epochs=2, rows=10)["changes_per_second"] > 0
    found = latency(Place(str(tmp_path), {}), epochs=40, bare_epochs=3)
    assert found["ours"]["p95_ms"] > 0
    assert len(found["ours"]["p50_ms_by_twentieth"]) == 20
    assert found["bare"]["epochs"] == 3


def test_memory_is_flat_when_its_end_needs_no_more_than_its_beginning(tmp_path: Path) -> None:
    epochs, megabytes = stream(str(tmp_path), 0.3, every=0.05)
    assert epochs > 0
    assert flatness(megabytes)["last_to_second"] > 0
    assert flatness([9, 10, 10, 10, 10, 20, 20, 20])["last_to_second"] == 2
    assert flatness([30, 30, 10, 10, 10, 10, 10, 10])["last_to_second"] == 1
