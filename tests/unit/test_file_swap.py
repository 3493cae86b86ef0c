"""A commit is taken back by its files; what another writer commits meanwhile is never lost."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.deltars.write.commit_undo import (
    FileSwap,
    commit_swap,
    file_names,
    file_swap,
)
from deltaworks.errors import CommitConflict, GuardError, VersionNotFound
from deltaworks.model.commit import Txn
from deltaworks.model.table_info import TableInfo
from deltaworks.model.write import Stamp

STAMP = Stamp(txn=Txn("p:undo", 7), user_metadata='{"undone_batch": 7}')
Rival = Callable[[str], object]


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A table of three appends: 1, 2 and 3."""
    location = str(tmp_path / "t")
    for n in (1, 2, 3):
        add(location, n)
    return location


def add(location: str, *ids: int, mode: Any = "append", **options: Any) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64()), "p": [f"a b/{n % 2}%" for n in ids]})
    write_deltalake(location, rows, mode=mode, **options)


def ids(location: str) -> list[int]:
    query = QueryBuilder().register("t", DeltaTable(location)).execute("SELECT id FROM t")
    return sorted(pa.table(query.read_all()).column("id").to_pylist())


def info(location: str) -> TableInfo:
    found = DeltaRsEngine().info(location)
    assert found is not None
    return found


def swap(location: str, version: int) -> FileSwap:
    return file_swap(info(location), version)


def log(location: str, version: int) -> Path:
    return Path(location, "_delta_log", f"{version:020d}.json")


def actions(location: str, version: int, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log(location, version).read_text().splitlines()]
    return [line[kind] for line in lines if kind in line]


def write_log(location: str, version: int, *lines: dict[str, Any]) -> None:
    log(location, version).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_an_append_goes_and_what_came_later_stays(place: str) -> None:
    found = swap(place, 1)
    assert found.obstacle() == ""
    assert found.names < file_names(found.table)
    assert commit_swap(found, STAMP) == 3
    assert ids(place) == [1, 3]
    last = DeltaTable(place).history(1)[0]
    assert (last["operation"], last["readVersion"], last["version"]) == ("UNDO", 2, 3)
    assert (last["userMetadata"], last["engineInfo"]) == (STAMP.user_metadata, "deltaworks")
    assert DeltaTable(place).transaction_version("p:undo") == 7
    assert not list(Path(place, "_delta_log").glob("*.tmp"))


def test_a_file_that_goes_is_named_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    add(location, 1, 2, partition_by=["p"])
    add(location, 3, 4)
    commit_swap(swap(location, 1), STAMP)
    assert ids(location) == [1, 2]
    gone, added = actions(location, 2, "remove"), actions(location, 1, "add")
    assert [file["partitionValues"] for file in gone] == [file["partitionValues"] for file in added]
    assert all(file["extendedFileMetadata"] and file["dataChange"] for file in gone)
    assert [file["size"] for file in gone] == [file["size"] for file in added]


def append_one(location: str) -> None:
    add(location, 1000)


def delete_one(location: str) -> None:
    DeltaTable(location).delete("id = 1")


@pytest.mark.parametrize("late", [False, True], ids=["before the draft", "at the link"])
@pytest.mark.parametrize(("rival", "left"), [(append_one, [1, 3, 1000]), (delete_one, [3])])
def test_what_others_commit_between_look_and_commit_stays(
    place: str, monkeypatch: pytest.MonkeyPatch, rival: Rival, left: list[int], late: bool
) -> None:
    found = swap(place, 1)
    meanwhile(place, rival, monkeypatch, late=late)
    assert commit_swap(found, STAMP) == 4
    assert ids(place) == left


def meanwhile(
    place: str, rival: Rival, monkeypatch: pytest.MonkeyPatch, *, late: bool = True
) -> None:
    """Somebody commits now, or just before our commit gets its name."""
    link, done = os.link, list[bool]()

    def overtaken(draft: str, name: str) -> None:
        if not done:
            done.append(True)
            rival(place)
        link(draft, name)

    if late:
        monkeypatch.setattr("os.link", overtaken)
    else:
        rival(place)


def rewrite(location: str) -> None:
    DeltaTable(location).delete("id = 2")


def reshape(location: str) -> None:
    DeltaTable(location).alter.set_table_properties({"delta.appendOnly": "true"})


def same_undo(location: str) -> None:
    commit_swap(swap(location, 1), STAMP)


def made_anew(location: str) -> None:
    shutil.rmtree(location)
    for n in range(5):
        add(location, n)


@pytest.mark.parametrize("late", [False, True], ids=["before the draft", "at the link"])
@pytest.mark.parametrize("rival", [rewrite, reshape, same_undo])
def test_who_touches_the_same_files_or_the_table_itself_is_a_conflict(
    place: str, monkeypatch: pytest.MonkeyPatch, rival: Rival, late: bool
) -> None:
    found = swap(place, 1)
    with monkeypatch.context() as context:
        meanwhile(place, rival, context, late=late)
        with pytest.raises(CommitConflict):
            commit_swap(found, STAMP)
    assert DeltaTable(place).version() == 3
    assert not list(Path(place, "_delta_log").glob("*.tmp"))


def test_a_table_that_was_made_anew_is_not_written(place: str) -> None:
    found = swap(place, 1)
    made_anew(place)
    with pytest.raises(CommitConflict, match="another writer changed"):
        commit_swap(found, STAMP)
    assert DeltaTable(place).version() == 4
    shutil.rmtree(place)
    with pytest.raises(CommitConflict, match="another writer changed"):
        commit_swap(found, STAMP)


def test_files_that_were_rewritten_are_not_taken_out(place: str) -> None:
    DeltaTable(place).optimize.compact()
    with pytest.raises(GuardError, match="version 3 rewrote files that version 1 had added"):
        swap(place, 1)


def test_a_file_is_named_with_its_deletion_vector_and_one_that_changed_is_refused(
    place: str,
) -> None:
    """Only Spark writes vectors, so the log is written here as it would."""
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
    (file,) = actions(place, 2, "add")
    again = {**file, "deletionVector": {**vector, "sizeInBytes": 40, "cardinality": 1}}
    write_log(place, 2, {"add": again})
    found = swap_unopened(place, 2)
    assert found.goes[file["path"]]["deletionVector"] == again["deletionVector"]
    write_log(place, 3, {"remove": {**file, "deletionTimestamp": 1}}, {"add": again})
    with pytest.raises(GuardError, match="version 3 rewrote files"):
        file_swap(replace(found.table, version=3), 2)


def swap_unopened(location: str, version: int) -> FileSwap:
    """A swap at a version whose files nobody has to read."""
    base = DeltaRsEngine().info(location, version=1)
    assert base is not None
    return file_swap(replace(base, version=version), version)


def test_statistics_that_came_later_stand_in_the_removal(place: str) -> None:
    (file,) = actions(place, 1, "add")
    newer = {**file, "stats": '{"numRecords": 1}', "dataChange": False}
    write_log(place, 3, {"add": newer})
    assert swap(place, 1).goes[file["path"]]["stats"] == '{"numRecords": 1}'


def test_nothing_is_taken_out_of_a_table_that_is_append_only(place: str) -> None:
    properties = {"delta.appendOnly": "TRUE"}
    with pytest.raises(GuardError, match="append-only"):
        file_swap(replace(info(place), properties=properties), 1)


def overwrite(location: str) -> None:
    add(location, 9, mode="overwrite")


def test_an_overwrite_is_taken_back_file_by_file(place: str) -> None:
    before = actions(place, 0, "add") + actions(place, 1, "add") + actions(place, 2, "add")
    overwrite(place)
    found = swap(place, 3)
    assert found.obstacle() == ""
    assert commit_swap(found, STAMP) == 4
    assert ids(place) == [1, 2, 3]
    back = sorted(actions(place, 4, "add"), key=lambda file: str(file["path"]))
    assert back == sorted(before, key=lambda file: str(file["path"]))


@pytest.mark.parametrize("late", [False, True], ids=["before the draft", "at the link"])
def test_an_overwrite_is_taken_back_as_the_last_commit_only(
    place: str, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    overwrite(place)
    found = swap(place, 3)
    with monkeypatch.context() as context:
        meanwhile(place, append_one, context, late=late)
        with pytest.raises(CommitConflict):
            commit_swap(found, STAMP)
    assert ids(place) == [9, 1000]
    with pytest.raises(GuardError, match="1 later versions build upon it"):
        swap(place, 3)


@pytest.mark.parametrize("loss", ["gone", "torn"])
def test_files_that_are_gone_do_not_come_back(place: str, loss: str) -> None:
    (file,) = actions(place, 1, "add")
    overwrite(place)
    path = Path(place, file["path"])
    if loss == "gone":
        path.unlink()
    else:
        path.write_bytes(b"PAR1")
    with pytest.raises(GuardError, match="is gone or has another size"):
        swap(place, 3)


def test_an_overwrite_with_another_schema_is_not_taken_back(place: str) -> None:
    write_deltalake(place, pa.table({"other": [1]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(GuardError, match="replaced the schema too"):
        swap(place, 3)


def test_an_overwrite_that_says_the_same_schema_again_is_taken_back(place: str) -> None:
    rows = pa.table({"id": pa.array([9], pa.int64()), "p": ["x"]})
    write_deltalake(place, rows, mode="overwrite", schema_mode="overwrite")
    (shape,) = actions(place, 0, "metaData")
    with log(place, 3).open("a") as handle:
        handle.write(f"\n{json.dumps({'metaData': shape})}\n")
    commit_swap(swap(place, 3), STAMP)
    assert ids(place) == [1, 2, 3]


def test_what_a_checkpoint_alone_knows_is_left_to_spark(place: str) -> None:
    overwrite(place)
    DeltaTable(place).create_checkpoint()
    log(place, 0).unlink()
    assert "no longer shows" in swap(place, 3).obstacle()
    log(place, 3).unlink()
    with pytest.raises(VersionNotFound, match="no longer in its log"):
        swap(place, 3)


@pytest.mark.parametrize(
    ("changes", "obstacle"),
    [
        ({"features": ("appendOnly", "inCommitTimestamp")}, "the feature inCommitTimestamp"),
        ({"features": ("columnMapping", "deletionVectors")}, ""),
        ({"properties": {"delta.logRetentionDuration": "interval 1 minute"}}, "soon forgotten"),
    ],
)
def test_what_a_commit_of_files_cannot_keep_is_left_to_spark(
    place: str, changes: dict[str, Any], obstacle: str
) -> None:
    found = file_swap(replace(info(place), **changes), 1).obstacle()
    assert (obstacle in found, bool(found)) == (True, bool(obstacle))


def test_files_of_other_tables_and_returning_vectors_are_left_to_spark(place: str) -> None:
    (file,) = actions(place, 0, "add")
    overwrite(place)
    found = swap(place, 3)
    outside = {**file, "path": "file:/other/a.parquet"}
    write_log(place, 2, {"add": outside})
    (removed, *_) = actions(place, 3, "remove")
    (came,) = actions(place, 3, "add")
    write_log(place, 3, {"remove": outside}, {"add": came})
    assert "is outside of the table" in file_swap(found.table, 3).obstacle()
    marked = {**removed, "deletionVector": {"storageType": "i", "pathOrInlineDv": "x"}}
    write_log(place, 2, {"add": marked})
    write_log(place, 3, {"remove": marked}, {"add": came})
    assert "comes back with a deletion vector" in file_swap(found.table, 3).obstacle()
