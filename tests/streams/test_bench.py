"""The measurement of epochs measures both sides on the same rows (S8)."""

from __future__ import annotations

from pathlib import Path

from bench.epochs import Place, changelog, latency, throughput


def test_both_sides_write_the_same_rows_and_are_timed(tmp_path: Path) -> None:
    found = throughput(Place(str(tmp_path), {}), rounds=1, epochs=2, rows=100)
    assert set(found["rows_per_second"]) == {"ours", "bare"}
    assert changelog(Place(str(tmp_path), {}), epochs=2, rows=10)["changes_per_second"] > 0
    assert latency(Place(str(tmp_path), {}), epochs=3)["ours"]["p95_ms"] > 0
