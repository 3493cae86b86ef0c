"""Data files that cannot be read, on whatever way they are looked at first."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaworks.engines.files import refuse_other_files
from deltaworks.engines.footers import rows_in_footers
from deltaworks.engines.spark.json_files import JsonFiles
from deltaworks.errors import StorageError
from deltaworks.model.batch import FILES, Bounds, FileStamp


@pytest.mark.parametrize("kind", ["text", "avro", "parquet"])
def test_a_file_that_cannot_be_read_is_told_with_the_reason(tmp_path: Path, kind: str) -> None:
    """A folder stands where a file was: the system refuses to read it, even for root."""
    path = tmp_path / "file"
    path.mkdir()
    bounds = Bounds(kind=FILES, identity=str(path), files=(FileStamp(str(path), 1, 1),))

    def open_it(name: str) -> int:
        with open(name, "rb") as handle:
            return len(handle.read())

    with pytest.raises(StorageError, match="Is a directory"):
        if kind == "avro":
            refuse_other_files(bounds, b"Obj", kind="an Avro")
        elif kind == "parquet":
            rows_in_footers(bounds, open_it, kind="a Parquet")
        else:
            list(JsonFiles(encoding="UTF-8", multiline=False).lines(str(path)))
