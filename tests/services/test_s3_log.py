"""The end of a log on S3: what is not certain is left to delta-rs."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.config.object_stores import Stores
from deltaworks.engines.deltars.event_table import on_objects as object_events
from deltaworks.engines.deltars.event_table.table import EventTable, event_schema
from deltaworks.engines.deltars.log.object_tail import ObjectLog, object_log
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import CommitConflict, DamagedTable
from deltaworks.model.commit import Txn
from deltaworks.storage import objects as client
from deltaworks.storage.objects import Bucket
from tests.services.lakes import Lake

SCHEMA = event_schema([("name", "text"), ("n", "number")])


def book(lake: Lake, stores: Stores) -> EventTable:
    return EventTable(lake.at("book"), SCHEMA, stores=stores)


def event(n: int) -> dict[str, object]:
    return {"name": "a", "n": n}


def test_only_commits_that_surely_follow_are_told(lake: Lake, stores: Stores) -> None:
    log = ObjectLog(lake.at("t"), Bucket(lake.at("t"), stores))
    tags = [log.put(version, [{"commitInfo": {}}]) for version in (0, 1, 3)]
    assert tags[0] is not None
    assert log.since(0, tags[0]) is None  # 2 is missing
    assert log.since(0, "another") is None
    assert log.put(1, [{"commitInfo": {}}]) is None
    assert log.read(99) is None
    lake.put(f"t/_delta_log/{2:020d}.json", "{no json")
    assert log.read(2) is None
    assert log.since(0, tags[0]) is None  # 2 cannot be read


def test_a_store_with_another_way_to_commit_is_left_to_delta_rs(
    lake: Lake, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        client._client.cache_clear()
        without.setitem(sys.modules, "obstore.store", None)
        assert object_log(lake.at("t"), stores) is None
    assert object_log("/tmp/t", stores) is None
    lake.settle(f"endpoint: '{lake.server.endpoint}', path_style: true, log: {{store: dynamodb}}")
    shared = lake.open().config.stores
    assert object_log(lake.at("t"), shared) is None
    assert not book(lake, shared).exists()


def test_a_commit_that_does_more_than_add_files_is_a_conflict(lake: Lake, stores: Stores) -> None:
    one = book(lake, stores)
    assert not one.exists()
    one.append(event(1), txn=Txn("p", 1))
    assert one.exists()
    table = DeltaTable(lake.at("book"), storage_options=lake.options())
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 60 days"})
    with pytest.raises(CommitConflict):
        one.append(event(2), txn=Txn("p", 2))
    assert [row["n"] for row in one.read()] == [1]
    one.append(event(2), txn=Txn("p", 2))
    assert sorted(row["n"] for row in one.read()) == [1, 2]


def test_files_that_another_has_joined_are_not_joined_again(
    lake: Lake, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltaworks.engines.deltars.event_table.table._MAX_FILES", 2)
    monkeypatch.setattr(object_events, "_MAX_KEPT", 2)  # what is kept is not needed for this
    one, two = book(lake, stores), book(lake, stores)
    for n in range(3):
        one.append(event(n))
    assert len(two.read()) == 3
    two.compact()
    version = DeltaTable(lake.at("book"), storage_options=lake.options()).version()
    one.compact()
    table = DeltaTable(lake.at("book"), storage_options=lake.options())
    assert (table.version(), len(table.file_uris())) == (version, 1)
    assert len(one.read()) == 3


def test_a_table_whose_last_commit_is_only_in_a_checkpoint_is_looked_at_by_delta_rs(
    lake: Lake, stores: Stores
) -> None:
    place, options = lake.at("t"), lake.options()
    for n in range(2):
        write_deltalake(place, pa.table({"n": [n]}), mode="append", storage_options=options)
    DeltaTable(place, storage_options=options).create_checkpoint()
    log = f"{lake.corner}/t/_delta_log"
    for version in range(2):
        lake.server.files().delete_file(f"{log}/{version:020d}.json")
    for _ in range(2):
        look = DeltaRsEngine(stores).look(place)
        assert look is not None
        assert (look.version, look.info().rows) == (1, 2)


def test_of_two_who_make_a_book_at_once_the_later_writes_into_the_first(
    lake: Lake, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = EventTable._create

    def overtaken(self: EventTable) -> DeltaTable:
        make(self)
        raise CommitConflict("another writer was faster")

    monkeypatch.setattr(EventTable, "_create", overtaken)
    one = book(lake, stores)
    one.append(event(1))
    assert [row["n"] for row in one.read()] == [1]


def test_a_history_in_a_bucket_has_every_version(lake: Lake, stores: Stores) -> None:
    place, bucket = lake.at("t"), Bucket(lake.at("t"), stores)
    for n in range(3):
        write_deltalake(place, pa.table({"n": [n]}), mode="append", storage_options=lake.options())
    address = f"{place}/_delta_log/{1:020d}.json"
    found = bucket.read(address)
    assert found is not None
    lines = [line for line in found[0].splitlines() if b'"commitInfo"' not in line]
    bucket.put(address, b"\n".join(lines) + b"\n")
    records = DeltaRsEngine(stores).history(place)
    assert [record.version for record in records] == [2, 1, 0]
    assert records[1].operation == ""
    assert records[1].timestamp_ms > 0


def test_a_last_commit_of_blank_lines_in_a_bucket_is_damage(lake: Lake, stores: Stores) -> None:
    place, bucket = lake.at("t"), Bucket(lake.at("t"), stores)
    for n in range(2):
        write_deltalake(place, pa.table({"n": [n]}), mode="append", storage_options=lake.options())
    bucket.put(f"{place}/_delta_log/{1:020d}.json", b"\n\n")
    with pytest.raises(DamagedTable, match="commit 1 says nothing"):
        DeltaRsEngine(stores).info(place)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[1]", "line 2 of commit 1 cannot be read"),
        ('{"add": {"path": "x"}}', 'holds "add" without a size'),
        ('{"add": {"path": "x", "size": 1, "partitionValues": {}, "stats": "?"}}', "statistics"),
        ('{"txn": {"version": 1}}', "without a writer"),
    ],
)
def test_a_commit_in_a_bucket_is_read_as_carefully_as_one_on_a_disk(
    lake: Lake, stores: Stores, line: str, told: str
) -> None:
    place = lake.at("hostile")
    write_deltalake(place, pa.table({"id": [1]}), storage_options=lake.options())
    engine = DeltaRsEngine(stores)
    assert engine.info(place) is not None
    lake.put(f"hostile/_delta_log/{1:020d}.json", f'{{"commitInfo": {{}}}}\n{line}\n')
    with pytest.raises(DamagedTable, match=told):
        engine.info(place)
