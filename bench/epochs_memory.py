"""`python -m bench.epochs_memory`: the memory of a process that streams on and on, as JSON.

Twenty epochs of a thousand rows in a second, into one table that is looked after as usual. Memory
is flat when the last quarter of the time needs no more than the second; the first one warms up.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import psutil

from bench.epochs import SCHEMA, orders
from deltaworks.streams.opening import NewTable, stream_into

ROWS = 1000
EPOCHS_PER_SECOND = 20


def stream(folder: str, seconds: float, *, every: float) -> tuple[int, list[float]]:
    """Stream so long; how many epochs there were, and the megabytes at regular times."""
    process, found = psutil.Process(), list[float]()
    start = time.monotonic()
    new, epoch = NewTable(schema=SCHEMA), 0
    with stream_into(f"{folder}/t", writer_id="bench", new_table=new) as sink:
        while (passed := time.monotonic() - start) < seconds:
            sink.write(orders(epoch * ROWS, ROWS))
            sink.commit_epoch(epoch)
            epoch += 1
            if passed >= every * len(found):
                found.append(round(process.memory_info().rss / 2**20, 1))
            time.sleep(max(0.0, start + epoch / EPOCHS_PER_SECOND - time.monotonic()))
    return epoch, found


def flatness(megabytes: Sequence[float]) -> dict[str, Any]:
    """The second quarter of the time against the last."""
    quarter = max(1, len(megabytes) // 4)
    second, last = megabytes[quarter : 2 * quarter] or megabytes, megabytes[-quarter:]
    return {
        "second_quarter_mb": statistics.median(second),
        "last_quarter_mb": statistics.median(last),
        "last_to_second": round(statistics.median(last) / statistics.median(second), 3),
        "most_mb": max(megabytes),
    }


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(prog="python -m bench.epochs_memory")
    parser.add_argument("--minutes", type=float, default=10)
    asked = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="deltaworks-bench-")
    try:
        epochs, found = stream(folder, asked.minutes * 60, every=max(0.1, asked.minutes))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    document = {"minutes": asked.minutes, "epochs": epochs, "rows": epochs * ROWS}
    print(json.dumps({**document, **flatness(found), "megabytes": found}))


if __name__ == "__main__":
    main()
