"""What a batch, an undo or a restore did to the quarantine is reversed when it did not happen."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from deltaworks.model.batch import Replay
from deltaworks.runtime.ledger.state import PLANNED, BatchEntry
from deltaworks.runtime.quarantine.table import Quarantine

NAMES = ("project", "pipeline", "stage", "kind", "rule", "reason", "row", "run_id")


def entry(n: int, *, replaces: bool = False, replay: Replay | None = None) -> BatchEntry:
    """A batch that was planned when the quarantine had one version."""
    return BatchEntry(
        n=n,
        batch_id=None,
        run_id="r",
        spec="",
        generation=1 if replaces else 0,
        state=PLANNED,
        bounds={},
        sinks=(),
        at=datetime(2026, 1, 1, tzinfo=UTC),
        token=f"t{n}",
        replaces=replaces,
        replay=replay,
        quarantine_version=0,
    )


def quarantine(root: Path, project: str = "shop") -> Quarantine:
    """A quarantine with a row of two projects."""
    found = Quarantine.of(str(root), project=project, pipeline="p")
    if not found.exists():
        rows = [_row("shop", 0, 1), _row("other", 0, 1)]
        write_deltalake(found.location, pa.Table.from_pylist(rows))
    return found


def _row(project: str, generation: int, batch: int) -> dict[str, object]:
    texts = {**dict.fromkeys(NAMES, "x"), "project": project, "pipeline": "p"}
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return {**texts, "generation": generation, "batch": batch, "quarantined_at": at}


def batches(found: Quarantine) -> list[int]:
    return [group["batch"] for group in found.groups()]


def test_a_refresh_that_is_given_up_returns_what_it_had_settled(tmp_path: Path) -> None:
    found, refresh = quarantine(tmp_path), entry(2, replaces=True)
    rows = pa.Table.from_pylist([_row("shop", 1, 2)])
    write_deltalake(found.location, rows, mode="append")
    found.leave(refresh)
    assert batches(found) == [2]
    found.give_up(refresh)
    assert batches(found) == [1]
    version = found.version()
    found.give_up(refresh)  # once more changes nothing
    assert (batches(found), found.version()) == ([1], version)
    assert batches(quarantine(tmp_path, "other")) == [1]


def test_a_replay_that_is_given_up_returns_its_rows(tmp_path: Path) -> None:
    found, replay = quarantine(tmp_path), entry(2, replay=Replay(version=0, batches=(1,)))
    found.leave(replay)
    assert batches(found) == []
    found.give_up(replay)
    assert batches(found) == [1]


def test_an_undo_that_did_not_happen_returns_the_slice(tmp_path: Path) -> None:
    found = quarantine(tmp_path)
    found.take_back(entry(1), gone=(1,), key="undo-5")
    assert batches(found) == []
    found.set_back(0, by="undo-4")
    assert batches(found) == []
    found.set_back(0, by="undo-5")
    assert batches(found) == [1]


def test_what_nobody_changed_is_left_alone(tmp_path: Path) -> None:
    found = quarantine(tmp_path)
    found.give_up(entry(2))
    found.set_back(None, by="undo-5")
    assert (batches(found), found.version()) == ([1], 0)


def test_rows_that_are_there_do_not_return_twice(tmp_path: Path) -> None:
    found, replay = quarantine(tmp_path), entry(2, replay=Replay(version=0, batches=(1,)))
    found.take_back(replay, gone=(), key="r1")
    assert [group["rows"] for group in found.groups()] == [1]
    found.leave(replay)
    found.take_back(replay, gone=(), key="r2")
    assert [group["rows"] for group in found.groups()] == [1]
