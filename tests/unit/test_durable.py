"""Which files a commit needs on the disk, and what a power cut left of them."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from deltaworks.errors import StorageError
from deltaworks.storage.durability import fsync_path, fsync_paths, make_durable, torn_files

SYNCED = list[str]


@pytest.fixture
def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SYNCED:
    """What was synced, in order, as paths within the table's folder."""
    found: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        real(handle)
        place = Path(f"/proc/self/fd/{handle}").readlink()
        if place.is_relative_to(tmp_path):
            found.append(place.relative_to(tmp_path).as_posix())

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def commit(table: Path, version: int, *actions: dict[str, Any]) -> Path:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    path = log / f"{version:020d}.json"
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    return path


def data(table: Path, name: str, content: str = "rows") -> dict[str, Any]:
    path = table / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return {"path": name.replace(" ", "%20"), "size": len(content)}


def old(path: Path) -> None:
    os.utime(path, (1_700_000_000, 1_700_000_000))


def test_files_come_before_the_commit_that_names_them_and_folders_after(
    tmp_path: Path, synced: SYNCED
) -> None:
    table = tmp_path / "t"
    old(commit(table, 6))
    kept = data(table, "c=a b/d=1/part-0.parquet")
    (table / "c=a b/d=1/.part-0.parquet.crc").write_text("sum")
    (table / "gone.parquet").write_text("not of this commit")
    changes = data(table, "_change_data/cdc-0.parquet")
    commit(table, 7, {"commitInfo": {}}, {"add": kept}, {"cdc": changes}, {"remove": {"path": "x"}})
    (table / "_delta_log" / "00000000000000000007.crc").write_text("{}")
    make_durable(str(table), 7)
    files = {"t/c=a b/d=1/part-0.parquet", "t/c=a b/d=1/.part-0.parquet.crc"}
    files |= {"t/_change_data/cdc-0.parquet"}
    folders = {"t/c=a b/d=1", "t/c=a b", "t/_change_data"}
    log = {"t/_delta_log/00000000000000000007.json", "t/_delta_log/00000000000000000007.crc"}
    assert [set(synced[:3]), set(synced[3:6]), set(synced[6:8])] == [files, folders, log]
    assert set(synced[8:]) == {"t/_delta_log", "t"}


def test_commits_just_before_and_all_after_are_kept_too(tmp_path: Path, synced: SYNCED) -> None:
    table = tmp_path / "t"
    for version in (100, 101, 102, 103, 104):
        commit(table, version, {"add": data(table, f"part-{version}.parquet")})
    old(table / "_delta_log" / f"{101:020d}.json")
    commit(table, 1)
    (table / "_delta_log" / f"{104:020d}.json").write_text('{"add": {"path": "torn')
    (table / "_delta_log" / "_commit_x.json.tmp").symlink_to("nothing")
    make_durable(str(table), 103)
    names = {path.rpartition("/")[2].lstrip("0") for path in synced}
    assert names == {"part-103.parquet", "100.json", "102.json", "103.json", "104.json"} | {
        "_delta_log",
        "t",
    }


def test_the_folders_around_a_new_table_are_kept_with_it(tmp_path: Path, synced: SYNCED) -> None:
    table = tmp_path / "lake" / "shop" / "t"
    commit(table, 0, {"add": data(table, "part-0.parquet")})
    make_durable(str(table), 0)
    assert {"lake/shop", "lake", "."} <= set(synced)


def test_a_deletion_vector_is_found_by_its_id(tmp_path: Path, synced: SYNCED) -> None:
    table = tmp_path / "t"
    add = data(table, "part-0.parquet")
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
    own = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    data(table, own)
    commit(table, 3, {"add": {**add, "deletionVector": vector}})
    make_durable(str(table), 3)
    assert {f"t/{own}", "t/ab"} <= set(synced)


def test_an_object_store_answers_for_itself(synced: SYNCED) -> None:
    make_durable("s3://lake/t", 3)
    assert torn_files("s3://lake/t", 3) == ()
    fsync_paths(())
    assert synced == []


def test_a_file_that_is_not_what_its_commit_says_is_told(tmp_path: Path) -> None:
    table = tmp_path / "t"
    adds = [data(table, f"part {n}.parquet") for n in range(4)]
    commit(table, 5, {"commitInfo": {}}, *({"add": add} for add in adds))
    assert torn_files(str(table), 5) == ()
    (table / "part 1.parquet").write_text("ro")
    (table / "part 2.parquet").unlink()
    (table / "part 3.parquet").unlink()
    commit(table, 6, {"remove": {"path": adds[3]["path"]}})
    assert torn_files(str(table), 5) == tuple(str(table / f"part {n}.parquet") for n in (1, 2))


def test_a_disk_that_fails_is_told_and_one_that_knows_no_folders_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(number: int) -> None:
        def fsync(_: int) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fsync)

    failing(errno.EINVAL)
    fsync_path(str(tmp_path))
    failing(errno.EIO)
    with pytest.raises(StorageError, match=f'"{tmp_path}" cannot be put on the disk'):
        fsync_paths([str(tmp_path)])
