"""delta-rs errors in our words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

from deltaworks.engines.deltars import log
from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.log import LogFile, open_table
from deltaworks.errors import (
    CommitConflict,
    DamagedTable,
    DeltaworksError,
    EngineError,
    StorageError,
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


def test_the_damaged_commit_and_its_line_are_found(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text("{}\n{}\n")
    (log / f"{1:020d}.json").write_text('{}\n{"add": {"pa')
    assert "line 2 of commit 1 cannot be read" in told(tmp_path, "Json error: torn").message


def test_damage_that_no_file_shows_is_told_as_delta_rs_tells_it(tmp_path: Path) -> None:
    assert told(tmp_path, "Json error: torn").message.endswith("is damaged: Json error: torn")


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
    monkeypatch.setattr(log, "commit_files", lambda *_, **__: (LogFile(2, 1, 1),))
    log.check_log(str(tmp_path))  # the files are there, whatever the listing said


def test_a_table_that_never_stands_still_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_of_commits(tmp_path, 3)

    def in_vain(*_: Any, **__: Any) -> Any:
        raise DeltaError(GAP)

    monkeypatch.setattr(deltalake, "DeltaTable", in_vain)
    with pytest.raises(CommitConflict, match="too quickly"):
        open_table(str(tmp_path), None, {})
