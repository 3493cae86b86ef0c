"""Four streams on one table, read by Spark and by delta-rs throughout: no wrong read (S3, S10)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.streams.maintenance import MaintenancePlan
from deltaworks.streams.opening import NewTable, stream_into

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.prove, pytest.mark.spark, pytest.mark.timeout(0)]
SCHEMA = pa.schema([("writer", pa.int64()), ("epoch", pa.int64()), ("i", pa.int64())])
WRITERS, STATES, ROWS = 4, 8, 3


def write(place: str, writer: int, enough: threading.Event, written: list[int]) -> None:
    upkeep = MaintenancePlan(checkpoint_every=15, compact_files=20)
    with stream_into(place, writer_id=f"w{writer}", upkeep=upkeep) as sink:
        epoch = 0
        while not enough.is_set():
            epoch += 1
            for i in range(ROWS):
                sink.write(pa.table({"writer": [writer], "epoch": [epoch], "i": [i]}))
            sink.commit_epoch(epoch)
    written.append(epoch)


def refuse_halves(rows: Iterable[tuple[int, int]]) -> int:
    """Of every writer there must be the epochs up to some number, each with all of its rows."""
    found = Counter(rows)
    for writer in range(WRITERS):
        epochs = sorted(epoch for one, epoch in found if one == writer)
        assert epochs == list(range(1, len(epochs) + 1))
    assert set(found.values()) <= {ROWS}
    return sum(found.values())


def test_readers_see_whole_epochs_only(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    stream_into(place, writer_id="maker", new_table=NewTable(schema=SCHEMA)).close()

    def by_spark() -> Iterable[tuple[int, int]]:
        try:
            frame = spark.read.format("delta").load(place).select("writer", "epoch")
            return [(row.writer, row.epoch) for row in frame.collect()]
        except Exception as refused:
            # It listed the log while commits came, and was shown a later one without an earlier.
            # That is no read at all, and so no wrong one; whoever reads tries again.
            if "DELTA_VERSIONS_NOT_CONTIGUOUS" not in str(refused):
                raise
            return by_spark()

    def by_delta_rs() -> Iterable[tuple[int, int]]:
        rows = DeltaRsEngine().open(place).to_pyarrow_table(columns=["writer", "epoch"]).to_pylist()
        return [(row["writer"], row["epoch"]) for row in rows]

    enough, written = threading.Event(), list[int]()
    threads = [
        threading.Thread(target=write, args=(place, n, enough, written)) for n in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    seen: dict[str, list[int]] = {"spark": [], "delta_rs": []}
    readers: dict[str, Callable[[], Iterable[tuple[int, int]]]] = {
        "spark": by_spark,
        "delta_rs": by_delta_rs,
    }
    try:
        while min(len(set(counts)) for counts in seen.values()) < STATES:
            for name, read in readers.items():
                seen[name].append(refuse_halves(read()))
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert len(written) == WRITERS
    for name, read in readers.items():
        assert refuse_halves(read()) == sum(written) * ROWS
        assert seen[name] == sorted(seen[name])  # what was seen once is never gone
