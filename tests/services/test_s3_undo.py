"""A commit on S3 is taken back by its files, where delta-rs is the one who commits there."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.config.object_stores import Stores
from deltaworks.engines.commit_protocol import committer_of
from deltaworks.engines.deltars.log.object_tail import ObjectLog
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.deltars.write.commit_undo import FileSwap, commit_swap, file_swap
from deltaworks.errors import CommitConflict, GuardError
from deltaworks.model.commit import Txn
from deltaworks.model.write import Stamp
from tests.services.lakes import Lake

STAMP = Stamp(txn=Txn("p:undo", 7), user_metadata='{"undone_batch": 7}')


def add(lake: Lake, *ids: int, mode: Any = "append") -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64()), "p": [f"a b/{n % 2}%" for n in ids]})
    place, options = lake.at("t"), lake.options()
    write_deltalake(place, rows, mode=mode, partition_by=["p"], storage_options=options)


def ids(lake: Lake) -> list[int]:
    table = DeltaTable(lake.at("t"), storage_options=lake.options())
    return sorted(table.to_pyarrow_table().column("id").to_pylist())


def swap(lake: Lake, stores: Stores, version: int) -> FileSwap:
    table = DeltaRsEngine(stores).info(lake.at("t"))
    assert table is not None
    return file_swap(table, version, stores)


def test_a_foreign_commit_meanwhile_is_a_conflict_and_the_committer_stays(
    lake: Lake, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        add(lake, n)
    found = swap(lake, stores, 1)
    add(lake, 1000)
    with pytest.raises(CommitConflict, match="another writer changed"):
        commit_swap(found, STAMP, stores)
    found, put = swap(lake, stores, 1), ObjectLog.put

    def overtaken(self: ObjectLog, version: int, actions: Any) -> str | None:
        add(lake, 1001)
        return put(self, version, actions)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectLog, "put", overtaken)
        with pytest.raises(CommitConflict, match="another writer changed"):
            commit_swap(found, STAMP, stores)
    assert ids(lake) == [0, 1, 2, 1000, 1001]
    found = swap(lake, stores, 1)
    assert found.obstacle(stores) == ""
    assert commit_swap(found, STAMP, stores) == 5
    assert ids(lake) == [0, 2, 1000, 1001]
    assert committer_of(lake.at("t"), stores) == "delta-rs"  # it was put where none was


def test_an_overwrite_is_taken_back_and_a_lost_answer_is_no_conflict(
    lake: Lake, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = ObjectLog.put

    def unheard(self: ObjectLog, version: int, actions: Any) -> None:
        put(self, version, actions)

    add(lake, 1, 2)
    add(lake, 9, mode="overwrite")
    monkeypatch.setattr(ObjectLog, "put", unheard)
    assert commit_swap(swap(lake, stores, 1), STAMP, stores) == 2
    assert ids(lake) == [1, 2]
    add(lake, 9, mode="overwrite")
    lake.settle(f"endpoint: '{lake.server.endpoint}', path_style: true, log: {{store: dynamodb}}")
    shared = lake.open().config.stores
    assert swap(lake, stores, 3).obstacle(shared) == "the store has another way to commit"
    name = next(name for name in lake.names("t") if name.endswith(".parquet"))
    lake.server.files().delete_file(f"{lake.corner}/t/{name}")
    with pytest.raises(GuardError, match="is gone or has another size"):
        swap(lake, stores, 3)
