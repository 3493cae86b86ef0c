"""Data files that cannot be read, on whatever way they are looked at first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deltaworks.engines.files import refuse_other_files
from deltaworks.engines.footers import rows_in_footers
from deltaworks.engines.spark.json_files import JsonFiles
from deltaworks.errors import StorageError
from deltaworks.model.batch import FILES, Bounds, FileStamp


def read_whole(path: str) -> int:
    return len(Path(path).read_bytes())


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
