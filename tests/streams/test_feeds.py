"""A copy kept by the change feed of its source: after each epoch it holds what the source holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from deltaworks.errors import SchemaMismatch
from tests.streams.tables import SCHEMA, opened, rows

FEED = {"delta.enableChangeDataFeed": "true"}


class Source:
    """A table with a change feed, changed by delta-rs."""

    def __init__(self, folder: Path) -> None:
        self.place = str(folder / "source")
        write_deltalake(self.place, self._rows(1, 2, 3), configuration=FEED)

    @staticmethod
    def _rows(*ids: int, s: str = "a") -> pa.Table:
        return pa.table({"id": list(ids), "s": [s] * len(ids)}, schema=SCHEMA)

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.place)

    def upsert(self, *ids: int, s: str) -> None:
        merger = self.table.merge(
            self._rows(*ids, s=s), "t.id = s.id", source_alias="s", target_alias="t"
        )
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def overwrite(self, *ids: int, s: str) -> None:
        write_deltalake(self.table, self._rows(*ids, s=s), mode="overwrite")

    def shift(self) -> None:
        """Give every row the key of the next one."""
        self.table.update({"id": "id + 1"})

    def rows(self) -> list[dict[str, Any]]:
        found = QueryBuilder().register("t", self.table).execute("SELECT * FROM t").read_all()
        return sorted(pa.table(found).to_pylist(), key=lambda row: json.dumps(row, default=str))

    def feed(self, first: int) -> pa.Table:
        """The changes since a version, what came last first: nobody promises an order."""
        changes = pa.table(self.table.load_cdf(starting_version=first).read_all()).to_pylist()
        order = sorted(changes, key=lambda row: (row["_commit_version"], row["_change_type"]))
        return pa.Table.from_pylist(order[::-1])


def changed(source: Source) -> Iterator[str]:
    """What happens to the source, one step for each epoch; several commits in the last."""
    steps = {
        "upserted": lambda: source.upsert(2, 4, s="b"),
        "deleted": lambda: source.table.delete("id = 1"),
        "overwritten": lambda: source.overwrite(1, 2, 9, s="c"),
        "restored": lambda: source.table.restore(1),
        "shifted": source.shift,
    }
    for name, step in steps.items():
        step()
        yield name
    for step in (steps["overwritten"], steps["upserted"], steps["restored"], steps["deleted"]):
        step()
    yield "all at once"


@pytest.mark.parametrize("options", [{}, {"op_column": "_change_type"}])
def test_a_copy_by_change_feed_follows_restores_and_overwrites(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    source, since = Source(tmp_path), 0
    with opened(tmp_path, mode="changelog", keys=["id"], **options) as sink:
        sink.write(source.feed(0))
        sink.commit_epoch(1)
        for epoch, what in enumerate(changed(source), start=2):
            sink.write(source.feed(since + 1))
            since = source.table.version()
            sink.commit_epoch(epoch)
            assert rows(tmp_path) == source.rows(), what
    assert DeltaTable(f"{tmp_path}/t").schema().to_arrow().names == ["id", "s"]


def test_a_feed_has_the_order_of_its_versions_and_no_other(tmp_path: Path) -> None:
    words: dict[str, Any] = {"mode": "changelog", "keys": ["id"], "sequence_by": "s"}
    with (
        opened(tmp_path, **words) as sink,
        pytest.raises(SchemaMismatch, match="which change of a change feed is the newer one"),
    ):
        sink.write(Source(tmp_path).feed(0))
