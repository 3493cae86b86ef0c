"""A small batch costs few Spark jobs: counts, because seconds depend on the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CSV = "extract: {type: csv, path: in.csv, schema: 'id bigint, v string'}\n"


class Counted:
    """Runs of one pipeline, each with a file of its own and the jobs it took."""

    def __init__(self, bench: Workbench, spark: SparkSession, mode: str) -> None:
        self.bench = bench
        self.spark = spark
        keys = "" if mode == "append" else ", merge_keys: id"
        bench.pipeline("p", f"{CSV}load: {{type: delta, table: t, mode: {mode}{keys}}}\n")

    def run(self, first: int, last: int, value: str) -> int:
        """The jobs of a batch with these keys."""
        lines = "".join(f"{n},{value}\n" for n in range(first, last))
        self.bench.write("in.csv", f"id,v\n{lines}")
        before = self._jobs()
        self.bench.run("p")
        return self._jobs() - before

    def _jobs(self) -> int:
        return int(self.spark._jsc.sc().dagScheduler().numTotalJobs())


@pytest.fixture
def counted(bench: Workbench, jvm: SparkSession, request: pytest.FixtureRequest) -> Counted:
    """A pipeline whose jobs are counted."""
    return Counted(bench, jvm, request.param)


@pytest.mark.parametrize("counted", ["upsert"], indirect=True)
def test_an_upsert_of_a_few_rows_takes_few_jobs(counted: Counted) -> None:
    assert counted.run(0, 100, "a") <= 3  # one pass, one write
    counted.run(50, 150, "b")
    assert counted.run(100, 200, "c") <= 11  # rows changed and rows added
    assert counted.run(100, 200, "c") <= 6  # nothing changes
    assert counted.run(500, 600, "c") <= 9  # rows added


@pytest.mark.parametrize("counted", ["scd2"], indirect=True)
def test_a_batch_of_versions_takes_few_jobs(counted: Counted) -> None:
    assert counted.run(0, 100, "a") <= 5
    assert counted.run(50, 150, "b") <= 16


@pytest.mark.parametrize("counted", ["append"], indirect=True)
def test_an_append_takes_no_pass_for_the_books(counted: Counted) -> None:
    assert counted.run(0, 100, "a") <= 2
    assert counted.run(100, 200, "a") <= 4
