"""A writer that did not see that files were joined brings no row back (S10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from deltaworks.engines.deltars.log.local_tail import LogTail
from deltaworks.engines.deltars.write.compaction_undo import JoinWatch
from deltaworks.engines.deltars.write.data_files import DataFolder
from deltaworks.engines.deltars.write.epoch_table import EpochTable, TableLocation
from deltaworks.errors import CommitConflict
from deltaworks.model.events import Event, Warned
from deltaworks.model.table_ref import TableRef
from deltaworks.streams.maintenance import MaintenancePlan
from deltaworks.streams.opening import NewTable, StreamOptions, open_stream
from tests.streams.tables import QUICK, SCHEMA, batch, ids, opened, table

JOINS = MaintenancePlan(checkpoint_every=6, compact_files=2)


def operations(folder: Path) -> list[str]:
    return [entry["operation"] for entry in table(folder).history()]


def joined_under(folder: Path, **made: Any) -> Any:
    """A table as somebody else looked at it before its files were joined."""
    with opened(folder, upkeep=JOINS, **made) as sink:
        for n in range(1, 6):
            sink.write(batch(n, s="pq"[n % 2]))
            sink.commit_epoch(n)
        looked = table(folder)
        sink.write(batch(6, s="p"))
        sink.commit_epoch(6)
    assert "OPTIMIZE" in operations(folder)
    return looked


def warned_while_open(folder: Path) -> list[str]:
    heard: list[Event] = []
    options = StreamOptions(writer_id="w", limits=QUICK, upkeep=JOINS)
    open_stream(TableRef("t", f"{folder}/t"), options, tell=heard.append).close()
    return [event.message for event in heard if isinstance(event, Warned)]


@pytest.mark.parametrize("partition_by", [(), ("s",)])
def test_a_late_overwrite_replaces_what_it_saw(
    tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    looked = joined_under(tmp_path, partition_by=partition_by)
    write_deltalake(looked, pa.table({"id": [100], "s": ["x"]}), mode="overwrite")
    assert ids(tmp_path) != [6, 100]
    (message,) = warned_while_open(tmp_path)
    assert "did not see that files had been joined" in message
    assert ids(tmp_path) == [6, 100]
    assert warned_while_open(tmp_path) == []
    with opened(tmp_path, upkeep=JOINS) as sink:
        assert sink.last_committed_epoch == 6
        sink.write(batch(7))
        sink.commit_epoch(7)
    assert ids(tmp_path) == [6, 7, 100]


def test_an_open_stream_notices_it_and_goes_on(tmp_path: Path) -> None:
    heard: list[Event] = []
    options = StreamOptions(writer_id="w", limits=QUICK, upkeep=JOINS)
    new, ref = NewTable(schema=SCHEMA), TableRef("t", f"{tmp_path}/t")
    with open_stream(ref, options, new_table=new, tell=heard.append) as sink:
        looked = None
        for n in range(1, 20):
            sink.write(batch(n))
            sink.commit_epoch(n)
            if n == 5:
                looked = table(tmp_path)
            if n >= 6 and looked is not None and "OPTIMIZE" in operations(tmp_path):
                write_deltalake(looked, pa.table({"id": [100], "s": ["x"]}), mode="overwrite")
                looked = None
    assert ids(tmp_path) == [*range(6, 20), 100]
    assert len([event for event in heard if isinstance(event, Warned)]) == 1


def test_who_was_faster_does_not_stop_it_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = joined_under(tmp_path)
    write_deltalake(looked, pa.table({"id": [100], "s": ["x"]}), mode="overwrite")
    place = TableLocation(f"{tmp_path}/t", {})
    found = EpochTable(place, place.open())
    watch = JoinWatch(found.folder())
    with monkeypatch.context() as context:
        context.setattr(LogTail, "commit", faster)
        with pytest.raises(CommitConflict):
            found.unjoin(watch)
    assert len(found.unjoin(watch)) == 1
    assert ids(tmp_path) == [6, 100]


def faster(*_: object, **__: object) -> int:
    raise CommitConflict("another writer was faster")


def test_a_table_that_was_set_back_and_emptied_is_left_alone(tmp_path: Path) -> None:
    joined_under(tmp_path)
    table(tmp_path).restore(5)
    table(tmp_path).delete()
    assert warned_while_open(tmp_path) == []
    assert ids(tmp_path) == []


def test_joined_files_that_are_gone_since_are_left_alone(tmp_path: Path) -> None:
    looked = joined_under(tmp_path)
    table(tmp_path).delete()
    write_deltalake(looked, pa.table({"id": [100], "s": ["x"]}), mode="overwrite")
    assert warned_while_open(tmp_path) == []
    assert ids(tmp_path) == [100]


def test_a_commit_that_was_cleaned_up_says_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.commit_epoch(1)
    folder = DataFolder(f"{tmp_path}/t")
    assert folder.actions(1)
    assert folder.actions(99) == []
