"""Data files that cannot be read, on whatever way they are looked at first."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from deltaworks.engines.spark.read.json import JsonFiles
from deltaworks.errors import DeltaworksError, InputError, StorageError
from deltaworks.model.batch import FILES, Bounds, FileStamp
from deltaworks.storage.listing import found_files, refuse_other_files
from deltaworks.storage.parquet_footers import Footer, rows_in_footers


def read_whole(path: str | IO[bytes]) -> Footer:
    return Footer(rows=len(Path(str(path)).read_bytes()))


LOOKS: dict[str, Callable[[Bounds], object]] = {
    "first bytes": lambda bounds: refuse_other_files(bounds, b"Obj", kind="an Avro"),
    "footer": lambda bounds: rows_in_footers(bounds, read_whole, kind="a Parquet"),
    "lines": lambda bounds: list(
        JsonFiles(encoding="UTF-8", multiline=False).lines(bounds.files[0].path)
    ),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_file_that_cannot_be_read_is_told_with_the_reason(tmp_path: Path, look: str) -> None:
    """A folder stands where a file was: the system refuses to read it, even for root."""
    path = tmp_path / "file"
    path.mkdir()
    bounds = Bounds(kind=FILES, identity=str(path), files=(FileStamp(str(path), 1, 1),))
    with pytest.raises(StorageError, match="Is a directory"):
        LOOKS[look](bounds)


@pytest.mark.parametrize(
    "content", [b"not packed at all", gzip.compress(b'{"a": 1}' * 99, mtime=0)[:-9]]
)
def test_a_torn_archive_is_damaged_not_forbidden(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "records.json.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="check that it was written completely"):
        list(JsonFiles(encoding="UTF-8", multiline=False).lines(str(path)))


def test_a_file_that_was_found_and_cannot_be_opened_is_named(tmp_path: Path) -> None:
    stamp = FileStamp(str(tmp_path), 0, 1)  # not even root opens a folder as a file
    bounds = Bounds(kind=FILES, identity=str(tmp_path), files=(stamp,))
    with pytest.raises(DeltaworksError, match=re.escape(str(tmp_path))):
        found_files(bounds)
