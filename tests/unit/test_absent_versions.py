"""Versions that a table does not have, and how files in buckets are known."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import VersionNotFound
from deltaworks.storage.listing import Names


@pytest.mark.parametrize("version", [5, 2**70])
def test_a_version_that_is_not_there_is_refused(tmp_path: Path, version: int) -> None:
    table = str(tmp_path / "t")
    write_deltalake(table, pa.table({"id": [1]}))
    with pytest.raises(VersionNotFound):
        DeltaRsEngine().open_or_none(table, version)


def test_a_file_in_a_bucket_is_known_by_its_address() -> None:
    assert Names(None, "s3://lake/in/*.csv").of("s3://lake/in/a.csv") == "s3://lake/in/a.csv"
