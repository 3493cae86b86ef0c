"""A stream in a process of its own that kills itself at a point, and what its table must hold.

`python streaming.py FOLDER MODE POINT EPOCH LAST` streams the epochs up to LAST, beginning three
before where the table stands, and dies with SIGKILL when EPOCH reaches POINT. At `anywhere` EPOCH
has a fraction, and the blow falls so far into the time that two epochs take. FOLDER may be an
address; STORAGE in the environment then says how it is reached.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODES = ("append", "overwrite_partitions", "upsert", "changelog")
POINTS = (
    "opened",
    "written",
    "flushed",
    "committing",
    "committed",
    "durable",
    "acknowledged",
    "upkeep",
    "linked",
    "anywhere",
)
Record = tuple[int, str, str]


def records(epoch: int) -> list[Record]:
    """What an epoch brings: a key, a partition, and what happens to the key."""
    kinds = ("insert", "update", "delete")
    new = [(epoch * 7 + i * 3, f"p{(epoch + i) % 3}", kinds[(epoch + i) % 3]) for i in range(4)]
    return [*new, ((epoch - 1) * 7, f"p{epoch % 3}", kinds[epoch % 3])]


def model(mode: str, last: int) -> list[tuple[int, str, int]]:
    """What the table must hold after the epochs 1 to last, worked out without any code of ours."""
    kept: dict[Any, tuple[int, str, int]] = {}
    for epoch in range(1, last + 1):
        rows = records(epoch)
        if mode == "overwrite_partitions":
            touched = {place for _, place, _ in rows}
            kept = {key: row for key, row in kept.items() if row[1] not in touched}
        for i, (key, place, kind) in enumerate(rows):
            name = key if mode in ("upsert", "changelog") else (epoch, i)
            if mode == "changelog" and kind == "delete":
                kept.pop(name, None)
            else:
                kept[name] = (key, place, epoch)
    return sorted(kept.values())


def held(folder: Path | str, storage: dict[str, str] | None = None) -> list[tuple[int, str, int]]:
    """What the table holds, read by delta-rs itself."""
    from deltalake import DeltaTable

    rows = DeltaTable(f"{folder}/t", storage_options=storage).to_pyarrow_table().to_pylist()
    return sorted((row["key"], row["place"], row["epoch"]) for row in rows)


def left_over(folder: Path | str, storage: dict[str, str] | None = None) -> set[str]:
    """Files of the stream that no commit knows."""
    from deltaworks.engines.deltars.write.data_files import DataFolder

    place = DataFolder(f"{folder}/t", storage_options=storage)
    return set(place.names("stream.")) - place.committed_names()


def stream(
    folder: Path | str,
    mode: str,
    point: str,
    epoch: float,
    last: int,
    storage: dict[str, str] | None = None,
) -> int:
    """Run the process; its exit code."""
    command = [sys.executable, __file__, str(folder), mode, point, str(epoch), str(last)]
    environ = {**os.environ, "STORAGE": json.dumps(storage or {})}
    done = subprocess.run(
        command, check=False, timeout=120, capture_output=True, text=True, env=environ
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _strike(owner: Any, name: str, armed: threading.Event, *, after: bool) -> None:
    """Die before or after a call, once armed."""
    call: Callable[..., Any] = getattr(owner, name)

    def deadly(*arguments: Any, **options: Any) -> Any:
        if armed.is_set() and not after:
            _die()
        answer = call(*arguments, **options)
        if armed.is_set() and after:
            _die()
        return answer

    setattr(owner, name, deadly)


def _prepare(point: str, armed: threading.Event) -> None:
    from deltalake import DeltaTable

    from deltaworks.engines.deltars.write import epoch_table as epochs
    from deltaworks.streams.buffer import EpochBuffer

    if point == "flushed":
        _strike(EpochBuffer, "stored", armed, after=True)
    elif point == "committing":
        _strike(epochs, "refuse_unwritable", armed, after=True)
    elif point == "committed":
        _strike(epochs.EpochTable, "_landed", armed, after=False)
    elif point == "durable":
        _strike(epochs.EpochTable, "_landed", armed, after=True)
    elif point == "linked":
        _strike(os, "link", armed, after=True)
    elif point == "upkeep":
        _strike(epochs.EpochTable, "compact", armed, after=True)
        _strike(DeltaTable, "create_checkpoint", armed, after=False)


def _row(mode: str, epoch: int, record: Record) -> dict[str, Any]:
    key, place, kind = record
    row: dict[str, Any] = {"key": key, "place": place, "epoch": epoch}
    return {**row, "op": kind} if mode == "changelog" else row


def main() -> None:
    """Stream until the end, or until the point is reached."""
    import pyarrow as pa

    from deltaworks.model.epochs import Limits
    from deltaworks.streams.maintenance import MaintenancePlan
    from deltaworks.streams.opening import NewTable, StreamKwargs, stream_into

    folder, mode, point, epoch, last = sys.argv[1:6]
    armed = threading.Event()
    _prepare(point, armed)
    schema = pa.schema([("key", pa.int64()), ("place", pa.string()), ("epoch", pa.int64())])
    words: StreamKwargs = {
        "mode": mode,  # type: ignore[typeddict-item]
        "limits": Limits(flush_rows=2, retry_seconds=5),
        "upkeep": MaintenancePlan(checkpoint_every=4, compact_files=6),
        "storage_options": json.loads(os.environ.get("STORAGE", "{}")),
    }
    if mode in ("upsert", "changelog"):
        words["keys"] = ["key"]
    if mode == "changelog":
        words["op_column"] = "op"
    new = NewTable(schema=schema, partition_by=("place",))
    with stream_into(f"{folder}/t", writer_id="killed", new_table=new, **words) as sink:
        if point == "opened":
            _die()
        first = max(1, (sink.last_committed_epoch or 0) - 2)
        started = time.monotonic()
        for n in range(first, int(last) + 1):
            if n == int(float(epoch)) and point == "anywhere":
                pace = (time.monotonic() - started) / (n - first) if n > first else 0.05
                threading.Timer(float(epoch) % 1 * 2 * pace, _die).start()
            elif n == int(float(epoch)):
                armed.set()
            rows = [_row(mode, n, record) for record in records(n)]
            for start in (0, 2, 4):
                sink.write(pa.Table.from_pylist(rows[start : start + 2]))
            if armed.is_set() and point == "written":
                _die()
            sink.commit_epoch(n)
            if armed.is_set() and point == "acknowledged":
                _die()


if __name__ == "__main__":
    main()
