"""Setting a table back by delta-rs: upon the version that was looked at, or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.config.object_stores import Stores
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.deltars.write.restore import restore
from deltaworks.errors import CommitConflict


def grow(place: str, *values: int) -> None:
    for value in values:
        write_deltalake(place, pa.table({"id": [value]}), mode="append")


def ids(place: str) -> list[int]:
    return sorted(DeltaTable(place).to_pyarrow_table().column("id").to_pylist())


def test_a_restore_follows_what_was_looked_at(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    grow(place, 1, 2)
    assert restore(place, 0, base=1, note={"to": 0}) == 2
    assert ids(place) == [1]


def test_a_commit_that_came_after_the_look_is_not_set_back(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    grow(place, 1, 2, 3)
    with pytest.raises(CommitConflict, match="was changed meanwhile"):
        restore(place, 0, base=1, note={})
    assert ids(place) == [1, 2, 3]


def test_a_commit_that_comes_while_a_table_is_set_back_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a driver that was overtaken takes nothing back from the one that came after it."""
    place = str(tmp_path / "t")
    grow(place, 1, 2)
    opened = DeltaRsEngine.open

    def slowly(engine: DeltaRsEngine, location: str) -> DeltaTable:
        table = opened(engine, location)
        grow(place, 3)
        return table

    monkeypatch.setattr(DeltaRsEngine, "open", slowly)
    with pytest.raises(CommitConflict):
        restore(place, 0, base=1, note={}, stores=Stores())
    assert ids(place) == [1, 2, 3]
