"""Commits of streams on disk that list no log, and stay right beside everybody else's (S3, S8)."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.engines.deltars.log import local_tail as log_tail
from deltaworks.engines.deltars.log.local_tail import LogTail, tail_of
from deltaworks.engines.deltars.write.epoch_table import EpochTable, TableLocation
from deltaworks.errors import CommitConflict, CommitUnknown, GuardError
from deltaworks.model.commit import Txn
from deltaworks.streams.maintenance import MaintenancePlan
from tests.streams.tables import batch, ids, opened, own_files, rows, table

Rival = Callable[[Path], object]
NO_UPKEEP = MaintenancePlan(checkpoint_every=0)


def log(folder: Path) -> Path:
    return folder / "t" / "_delta_log"


def place(folder: Path) -> TableLocation:
    return TableLocation(f"{folder}/t", {})


def tail(folder: Path, writer: str = "w") -> LogTail:
    return LogTail(f"{folder}/t", writer, table(folder).version())


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("the log was listed")


def test_an_epoch_lists_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, upkeep=NO_UPKEEP) as sink:
        sink.write(batch(1))
        sink.commit_epoch(1)
        with monkeypatch.context() as context:
            for name in ("update_incremental", "create_write_transaction", "transaction_version"):
                context.setattr(DeltaTable, name, refuse)
            for n in range(2, 6):
                sink.write(batch(n))
                assert sink.commit_epoch(n).version == n
    assert ids(tmp_path) == [1, 2, 3, 4, 5]
    assert table(tmp_path).history(1)[0]["operation"] == "WRITE"
    assert not list(log(tmp_path).glob("*.tmp"))


def test_what_delta_rs_commits_in_between_is_kept(tmp_path: Path) -> None:
    with opened(tmp_path, upkeep=NO_UPKEEP) as sink:
        for n in range(4):
            sink.write(batch(n))
            sink.commit_epoch(n)
            write_deltalake(f"{tmp_path}/t", batch(100 + n), mode="append")
    assert ids(tmp_path) == [0, 1, 2, 3, 100, 101, 102, 103]
    assert table(tmp_path).version() == 8


def test_who_is_overtaken_at_the_link_commits_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, overtaken = os.link, list[str]()

    def late(draft: str, place: str) -> None:
        if len(overtaken) < 3:
            write_deltalake(f"{tmp_path}/t", batch(100 + len(overtaken)), mode="append")
            overtaken.append(str(place))
        link(draft, place)

    with opened(tmp_path, upkeep=NO_UPKEEP) as sink:
        sink.write(batch(1))
        with monkeypatch.context() as context:
            context.setattr("os.link", late)
            assert sink.commit_epoch(1).version == 4
        sink.write(batch(2))
        assert sink.commit_epoch(2).version == 5
    assert ids(tmp_path) == [1, 2, 100, 101, 102]


def set_back(folder: Path) -> None:
    table(folder).restore(1)


def change(folder: Path) -> None:
    table(folder).alter.set_table_properties({"delta.appendOnly": "true"})


@pytest.mark.parametrize(
    ("rival", "message"), [(set_back, "was set back"), (change, "columns or properties changed")]
)
def test_who_is_overtaken_by_a_change_of_the_table_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rival: Rival, message: str
) -> None:
    link, done = os.link, list[bool]()

    def late(draft: str, place: str) -> None:
        if not done:
            done.append(True)
            rival(tmp_path)
        link(draft, place)

    with opened(tmp_path, upkeep=NO_UPKEEP) as sink:
        for n in (1, 2):
            sink.write(batch(n))
            sink.commit_epoch(n)
        monkeypatch.setattr("os.link", late)
        sink.write(batch(3))
        with pytest.raises(GuardError, match=message):
            sink.commit_epoch(3)
    assert 3 not in ids(tmp_path)


def test_a_draft_that_a_crash_left_is_never_written_over(tmp_path: Path) -> None:
    """It may be a commit by another name: what is written into it would change the log."""
    with opened(tmp_path) as sink:
        sink.write(batch(1))
        sink.commit_epoch(1)
    first = log(tmp_path) / f"{1:020d}.json"
    before = first.read_bytes()
    drafts = [log(tmp_path) / f"_commit_{name}.json.tmp" for name in ("w", "w.joining")]
    for draft in drafts:
        os.link(first, draft)
    with opened(tmp_path) as sink:
        assert not [draft for draft in drafts if draft.exists()]
        os.link(first, drafts[0])  # as if a commit had failed halfway
        sink.write(batch(2))
        sink.commit_epoch(2)
    assert first.read_bytes() == before
    assert ids(tmp_path) == [1, 2]


@pytest.mark.parametrize(
    ("settings", "is_quick"),
    [
        ({}, True),
        ({"delta.logRetentionDuration": "interval 2 days"}, True),
        ({"delta.logRetentionDuration": "interval 5 minutes"}, False),
        ({"delta.logRetentionDuration": "interval 0 days"}, False),
    ],
)
def test_a_log_that_is_soon_forgotten_is_listed(
    tmp_path: Path, settings: dict[str, str], is_quick: bool
) -> None:
    found = tail_of(str(tmp_path), writer="w", version=0, settings=settings)
    assert (found is not None) is is_quick
    assert tail_of("s3://b/t", writer="w", version=0, settings=settings) is None


def test_a_log_is_listed_again_after_a_while_and_when_its_end_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as sink:
        sink.commit_epoch(1)
    known = tail(tmp_path)
    assert known.follow()
    (log(tmp_path) / f"{1:020d}.json").rename(log(tmp_path) / "aside")
    assert not known.follow()
    (log(tmp_path) / "aside").rename(log(tmp_path) / f"{1:020d}.json")
    monkeypatch.setattr(log_tail, "_TRUSTED_S", -1.0)
    assert not known.follow()
    with opened(tmp_path) as sink:  # and it works all the same
        sink.write(batch(2))
        sink.commit_epoch(2)
    assert ids(tmp_path) == [2]


def test_a_commit_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with opened(tmp_path, upkeep=NO_UPKEEP) as sink:
        sink.write(batch(1))
        sink.commit_epoch(1)
        (log(tmp_path) / f"{2:020d}.json").write_text('{"add": ', encoding="utf-8")
        sink.write(batch(2))
        with pytest.raises(CommitUnknown, match="line 1 of commit 2 cannot be read"):
            sink.commit_epoch(2)


def test_nobody_commits_under_a_name_that_was_used_meanwhile(tmp_path: Path) -> None:
    opened(tmp_path).close()
    one, two = tail(tmp_path, "a"), tail(tmp_path, "b")
    assert one.commit([], [Txn("name", 1)]) == 1
    with pytest.raises(CommitConflict):
        two.commit([], [Txn("name", 1)])
    assert two.commit([], [Txn("other", 1)]) == 2


def test_files_are_joined_while_a_stream_commits_without_pause(tmp_path: Path) -> None:
    stop = threading.Event()
    opened(tmp_path).close()

    def flood() -> None:
        with opened(tmp_path, "flood", upkeep=NO_UPKEEP) as sink:
            for n in range(10_000):
                sink.write(batch(n))
                sink.commit_epoch(n)
                if stop.is_set():
                    return

    writer = threading.Thread(target=flood)
    writer.start()
    try:
        while len(own_files(tmp_path, "flood")) < 20:
            pass
        handle = EpochTable(opened(tmp_path)._table.place, table(tmp_path), joins="w")
        assert handle.compact({"upkeep": "compact"}, small_bytes=10**6) >= 20
    finally:
        stop.set()
        writer.join()
    found = ids(tmp_path)
    assert found == list(range(len(found)))
    assert len(table(tmp_path).file_uris()) < len(found)


def test_what_is_joined_keeps_partitions_and_columns_that_came_later(tmp_path: Path) -> None:
    import pyarrow as pa

    plan = MaintenancePlan(checkpoint_every=4, compact_files=2)
    more = pa.table({"id": [8], "s": ["b"], "extra": [1.5]})
    with opened(tmp_path, partition_by=("s",), upkeep=plan, evolution="add_columns") as sink:
        for n in range(6):
            sink.write(batch(n, s="ab"[n % 2]))
            if n == 3:
                sink.write(more)
            sink.commit_epoch(n)
    joined = [name for name in own_files(tmp_path) if name.endswith(".joined.parquet")]
    assert len(joined) >= 2
    found = rows(tmp_path)
    assert {(row["id"], row["s"]) for row in found} == {
        *((n, "ab"[n % 2]) for n in range(6)),
        (8, "b"),
    }
    assert [row["extra"] for row in found if row["extra"] is not None] == [1.5]
    assert sum("remove" in line for line in _lines(tmp_path)) >= 4


def _lines(folder: Path) -> list[dict[str, Any]]:
    files = sorted(log(folder).glob("*.json"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_files_that_somebody_else_removed_are_not_joined(tmp_path: Path) -> None:
    with opened(tmp_path, upkeep=NO_UPKEEP) as sink:
        for n in range(4):
            sink.write(batch(n))
            sink.commit_epoch(n)
    stale = EpochTable(place(tmp_path), table(tmp_path), joins="w")
    table(tmp_path).delete("id = 2")
    with pytest.raises(CommitConflict):
        stale.compact({"upkeep": "compact"}, small_bytes=10**6)
    assert ids(tmp_path) == [0, 1, 3]
    assert not [name for name in own_files(tmp_path) if "joined" in name]
    assert EpochTable(place(tmp_path), table(tmp_path), joins="w").compact({}, small_bytes=1) == 0


def test_large_groups_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltaworks.engines.deltars.write import compaction as joining

    with opened(tmp_path, upkeep=NO_UPKEEP) as sink:
        for n in range(4):
            sink.write(batch(n))
            sink.commit_epoch(n)
    size = max(file.stat().st_size for file in (tmp_path / "t").glob("*.parquet"))
    monkeypatch.setattr(joining, "_MAX_BYTES", 2 * size)
    groups = joining.small_groups(table(tmp_path), 10**6)
    assert [len(group) for group in groups] == [2, 2]
    assert joining.joinable(groups) == 3
    assert joining.joinable(()) == 0
