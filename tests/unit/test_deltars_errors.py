"""delta-rs errors in our words."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError

from deltaworks.engines.deltars.errors import translated
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
