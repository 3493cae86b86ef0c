"""delta-rs errors in our words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.log import soundness
from deltaworks.engines.deltars.log.commits import check_log, open_table
from deltaworks.engines.deltars.log.file_names import log_names
from deltaworks.errors import (
    CommitConflict,
    DamagedData,
    DamagedTable,
    DeltaworksError,
    EngineError,
    StorageError,
    UnreadableTable,
    UnsupportedOperation,
    VersionNotFound,
)


def told(location: Path, text: str) -> DeltaworksError:
    with pytest.raises(DeltaworksError) as caught, translated(str(location)):
        raise DeltaError(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("LogSegment end version 1 not the same as the specified end version 7", VersionNotFound),
        ("Concurrent transaction failed", CommitConflict),
        ("Malformed log", DamagedTable),
        ("Permission denied (os error 13)", StorageError),
        ("Parquet error: Failed to fetch /t/part-1.parquet", DamagedData),
        ("Deletion Vector error: Invalid magic", DamagedData),
        ("Unsupported: Feature 'x' is not supported", UnsupportedOperation),
        ("something else\nand more", EngineError),
    ],
)
def test_an_error_is_known_by_its_words(
    tmp_path: Path, text: str, kind: type[DeltaworksError]
) -> None:
    error = told(tmp_path, text)
    assert type(error) is kind
    assert str(tmp_path) in error.message
    assert "\n" not in error.message
    assert "Kernel" not in error.message


def test_a_table_in_a_bucket_that_does_not_say_what_it_is_cannot_be_read() -> None:
    with pytest.raises(UnreadableTable, match="no protocol"), translated("s3://lake/t"):
        raise DeltaError("Kernel error: No protocol found in delta log.")


def test_what_a_reader_raises_is_told_as_well(tmp_path: Path) -> None:
    error = Exception("External error: Parquet error: Failed to fetch metadata for file x.parquet")
    with pytest.raises(DamagedData, match=r"x\.parquet"), translated(str(tmp_path)):
        raise error
    with pytest.raises(KeyError), translated(str(tmp_path)):
        raise KeyError("our own mistake")


def test_the_damaged_commit_and_its_line_are_found(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text("{}\n{}\n")
    (log / f"{1:020d}.json").write_text('{}\n{"add": {"pa')
    assert "line 2 of commit 1 cannot be read" in told(tmp_path, "Json error: torn").message


def test_damage_that_no_file_shows_is_told_without_delta_rs_words(tmp_path: Path) -> None:
    assert told(tmp_path, "Json error: torn").message.endswith("is damaged: it cannot be read")


def test_trouble_with_the_disk_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be used"), translated(str(tmp_path)):
        raise OSError("disk on fire")


def test_a_store_that_cannot_be_reached_is_told_as_such() -> None:
    with pytest.raises(StorageError), translated("s3://lake/t"):
        raise DeltaError("Generic S3 error: error sending request")


GAP = "Expected contiguous commit files, but found gap: Path { version: 1, x: 1 } -> { version: 4 }"


def table_of_commits(location: Path, count: int) -> None:
    for n in range(count):
        write_deltalake(str(location), pa.table({"n": [n]}), mode="append")


def test_a_gap_that_only_a_listing_had_is_a_conflict_and_a_real_one_damage(tmp_path: Path) -> None:
    table_of_commits(tmp_path, 3)
    assert isinstance(told(tmp_path, GAP), CommitConflict)
    (tmp_path / "_delta_log" / f"{2:020d}.json").unlink()
    assert isinstance(told(tmp_path, GAP), DamagedTable)


def test_a_table_that_grows_while_it_is_listed_is_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_of_commits(tmp_path, 3)
    real, tries = deltalake.DeltaTable, []

    def first_in_vain(*words: Any, **more: Any) -> Any:
        tries.append(words)
        if len(tries) == 1:
            raise DeltaError(GAP)
        return real(*words, **more)

    monkeypatch.setattr(deltalake, "DeltaTable", first_in_vain)
    assert open_table(str(tmp_path), None, {}).version() == 2
    assert len(tries) == 2


def test_a_listing_that_shows_a_later_commit_first_is_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_of_commits(tmp_path, 3)
    known = log_names(str(tmp_path))
    assert known is not None
    partly = replace(known, commits=(0, 2))
    monkeypatch.setattr(soundness, "log_names", lambda _: partly)
    assert check_log(str(tmp_path)) is not None  # the file is there, whatever the listing said


def test_a_table_that_never_stands_still_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_of_commits(tmp_path, 3)

    def in_vain(*_: Any, **__: Any) -> Any:
        raise DeltaError(GAP)

    monkeypatch.setattr(deltalake, "DeltaTable", in_vain)
    with pytest.raises(CommitConflict, match="too quickly"):
        open_table(str(tmp_path), None, {})


def test_other_files_of_a_log_are_not_taken_for_the_commit_that_is_broken(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{1:020d}.{2:020d}.compacted.json").write_text("{broken")
    assert "it cannot be read" in told(tmp_path, "Json error: whatever").message
    (log / f"{3:020d}.json").write_text("[" * 20_000)
    assert "line 1 of commit 3" in told(tmp_path, "Json error: whatever").message
