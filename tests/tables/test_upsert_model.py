"""P3: whatever the batches, an upsert leaves what a plain dictionary would."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tables.loader import Loader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[int, str | None, int]
SCHEMA = "id int, v string, ts int"
batches = st.lists(
    st.dictionaries(
        st.integers(0, 20),
        st.tuples(st.sampled_from(["a", "b", "gone", None]), st.integers(0, 3)),
        max_size=15,
    ),
    min_size=2,
    max_size=2,
)


@dataclass
class Model:
    """The table as a dictionary; newer rows win, and "gone" deletes."""

    rows: dict[int, tuple[str | None, int]] = field(default_factory=dict)
    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def upsert(self, batch: dict[int, tuple[str | None, int]]) -> None:
        self.inserted = self.updated = self.deleted = 0
        for key, (value, ts) in batch.items():
            before = self.rows.get(key)
            if value == "gone":
                self.deleted += self.rows.pop(key, None) is not None
            elif before is None:
                self.rows[key] = (value, ts)
                self.inserted += 1
            elif ts > before[1]:
                self.rows[key] = (value, ts)
                self.updated += 1


@settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(batches)
def test_upserts_equal_a_dictionary_row_for_row(
    spark: SparkSession, history: list[dict[int, tuple[str | None, int]]]
) -> None:
    with TemporaryDirectory() as folder:
        loader, model = Loader(spark, Path(folder)), Model()
        for batch in history:
            rows: list[Row] = [(key, *values) for key, values in batch.items()]
            info = loader.upsert(
                spark.createDataFrame(rows, SCHEMA),
                update_condition="source.ts > target.ts",
                delete_condition="source.v = 'gone'",
            )
            model.upsert(batch)
            made = loader.path.exists()
            found = {row[0]: row[1:] for row in loader.rows()} if made else {}
            assert found == model.rows
            assert info.rows_inserted == model.inserted
            assert (info.rows_updated or 0, info.rows_deleted or 0) == (
                model.updated,
                model.deleted,
            )
            assert info.committed == bool(model.inserted + model.updated + model.deleted)
