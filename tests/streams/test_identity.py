"""A writer is its table and its writer id, however the table is spelled (S3)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction

from deltaworks.errors import GuardError, StorageError
from deltaworks.streams.opening import stream_into
from tests.streams.tables import SCHEMA, batch, ids, opened, table
from tests.workbench import Workbench


def test_a_table_by_name_by_path_and_without_a_project_is_one_table(desk: Workbench) -> None:
    with desk.open().stream("ev", writer_id="w", schema=SCHEMA) as sink:
        for n in (1, 2, 3):
            sink.write(batch(n))
            sink.commit_epoch(n)
    (desk.root / "link").symlink_to(desk.root / "warehouse")
    for name in ("ev", "warehouse/ev", "./warehouse/../warehouse/ev", "link/ev"):
        with desk.open().stream(name, writer_id="w") as sink:
            assert sink.last_committed_epoch == 3, name
    with stream_into(f"{desk.root}/warehouse/ev", writer_id="w") as sink:
        assert sink.last_committed_epoch == 3
    shutil.rmtree(desk.root / "warehouse" / "_deltaworks", ignore_errors=True)
    with desk.open().stream("ev", writer_id="w") as sink:
        sink.write(batch(3))
        assert sink.commit_epoch(3).skipped
    assert [row["id"] for row in desk.rows("ev")] == [1, 2, 3]


def test_a_link_to_the_table_does_not_open_its_writer_twice(tmp_path: Path) -> None:
    with opened(tmp_path):
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "t").symlink_to(tmp_path / "t")
        with pytest.raises(GuardError, match="in use"):
            opened(tmp_path / "other")


def earlier(folder: Path, ledger: str, spelling: str, epoch: int, **more: int) -> None:
    """Commit an epoch as a version before this one recorded it."""
    found = DeltaTable(f"{folder}/t")
    name = f"deltaworks-stream:{ledger}:{spelling}:{found.metadata().id}:w"
    generation = more.get("generation", 0)
    kept = {f"{name}:{generation}": epoch, f"{name}:seen": found.version()}
    if generation:
        kept[f"{name}:generation"] = generation
    note = json.dumps({"stream": spelling, "writer": "w", "epoch": epoch})
    found.create_write_transaction(
        [],
        "append",
        found.schema(),
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": note},
            app_transactions=[Transaction(app_id, version) for app_id, version in kept.items()],
        ),
    )


@pytest.mark.parametrize("folded", [False, True])
def test_a_stream_of_an_earlier_version_goes_on(tmp_path: Path, folded: bool) -> None:
    opened(tmp_path).close()
    for epoch in (7, 8):
        earlier(tmp_path, "b1946ac9", "s3://lake/a:b", epoch)
    if folded:
        table(tmp_path).create_checkpoint()
    for _ in range(2):  # nothing was committed under today's name in the first round
        with opened(tmp_path) as sink:
            assert sink.last_committed_epoch == 8
    with opened(tmp_path) as sink:
        sink.write(batch(8))
        assert sink.commit_epoch(8).skipped
        sink.write(batch(9))
        assert not sink.commit_epoch(9).skipped
        name = sink.writer.name
    assert name == f"deltaworks-stream:{table(tmp_path).metadata().id}:w"
    assert table(tmp_path).transaction_version(f"{name}:0") == 9
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 9
    with opened(tmp_path, "x") as sink:
        assert sink.last_committed_epoch is None


def test_a_restore_to_an_earlier_version_of_ours_is_followed(tmp_path: Path) -> None:
    opened(tmp_path).close()
    for epoch in (1, 2):
        earlier(tmp_path, "l", "t", epoch)
    with opened(tmp_path) as sink:
        sink.commit_epoch(3)
    table(tmp_path).restore(1)
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 1
        sink.commit_epoch(2)
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 2


def test_a_restore_under_an_earlier_version_counts(tmp_path: Path) -> None:
    opened(tmp_path).close()
    for epoch in (1, 2):
        earlier(tmp_path, "l", "t", epoch)
    table(tmp_path).restore(1)
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 1
    earlier(tmp_path, "l", "t", 2, generation=3)
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 2


def test_epochs_under_several_spellings_count_if_they_end_alike(tmp_path: Path) -> None:
    opened(tmp_path).close()
    earlier(tmp_path, "a", "ev", 5)
    earlier(tmp_path, "b", "ev", 5)
    with opened(tmp_path) as sink:
        assert sink.last_committed_epoch == 5
    earlier(tmp_path, "b", "ev", 6)
    with pytest.raises(GuardError, match="2 spellings of its name, and they end differently"):
        opened(tmp_path)
    with opened(tmp_path, "another") as sink:
        sink.write(batch(1))
        sink.commit_epoch(1)
    assert ids(tmp_path) == [1]


def test_a_table_made_anew_stops_an_open_stream(tmp_path: Path) -> None:
    for mode in ({"mode": "append"}, {"mode": "upsert", "keys": ["id"]}):
        options: dict[str, Any] = mode
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        sink = opened(tmp_path, **options)
        for n in (1, 2):
            sink.write(batch(n))
            sink.commit_epoch(n)
        shutil.rmtree(tmp_path / "t")
        with opened(tmp_path, "other") as other:
            for n in range(4):
                other.write(batch(100 + n))
                other.commit_epoch(n)
        sink.write(batch(3))
        for _ in range(2):
            with pytest.raises(GuardError, match="dropped and recreated while the stream was open"):
                sink.commit_epoch(3)
        assert sink.close() == 1
        assert ids(tmp_path) == [100, 101, 102, 103]


def test_a_table_that_is_dropped_stops_an_open_stream(tmp_path: Path) -> None:
    options: dict[str, Any] = {"mode": "upsert", "keys": ["id"]}
    for words, error in (({}, StorageError), (options, GuardError)):
        sink = opened(tmp_path, **words)
        sink.write(batch(1))
        sink.commit_epoch(1)
        shutil.rmtree(tmp_path / "t")
        sink.write(batch(2))
        with pytest.raises(error) as caught:
            sink.commit_epoch(2)
        assert words == {} or "dropped while the stream was open" in str(caught.value)
        assert sink.close() == 1


def test_a_commit_that_is_written_again_with_the_same_content_stops_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.write(batch(1))
        sink.commit_epoch(1)
        path = tmp_path / "t" / "_delta_log" / f"{1:020d}.json"
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
        sink.write(batch(2))
        sink.commit_epoch(2)
    assert ids(tmp_path) == [1, 2]
