"""From an empty folder to a table, from the command line, from a file and from code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaworks import Pipeline, Project
from deltaworks.checks.expression import ExpressionCheck
from deltaworks.sinks.delta import DeltaSink, Duplicates
from deltaworks.sources.csv import CsvSource
from deltaworks.transforms.cast import CastTransform
from tests.workbench import Workbench, run_cli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def same_in_code(name: str = "orders") -> Pipeline:
    """What `init` writes as a file."""
    return Pipeline.build(
        name,
        description="Orders of one day, newest version of each.",
        extract=CsvSource(path="data/orders_2026-01-01.csv"),
        transform=[
            CastTransform(
                name="typed",
                columns={"order_id": "bigint", "amount": "double", "updated_at": "timestamp"},
                on_error="quarantine",
            )
        ],
        checks=[ExpressionCheck(rule="amount >= 0", on_fail="quarantine")],
        load=DeltaSink(
            table=name,
            mode="upsert",
            merge_keys=("order_id",),
            update_condition="source.updated_at > target.updated_at",
            duplicates=Duplicates(keep="newest", by="updated_at"),
        ),
    )


@pytest.fixture
def started(bench: Workbench) -> Workbench:
    """The project that `deltaworks init` writes."""
    (bench.root / "deltaworks.yaml").unlink()
    assert run_cli("init", str(bench.root)).code == 0
    return bench


def test_init_then_run_fills_a_table(started: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(started.root)
    answer = run_cli("run", "orders")
    assert answer.code == 0
    assert "batch 1: 5 rows read, 2 quarantined, 1 dropped" in answer.stdout
    assert [(row["order_id"], row["amount"]) for row in started.rows("orders")] == [
        (1, 10.5),
        (2, 22.0),
    ]
    assert len(started.rows("orders__quarantine")) == 2


def test_a_pipeline_in_code_is_the_file_by_another_spelling(started: Workbench) -> None:
    project = started.open()
    from_file = project.catalog("orders").plans[0].pipeline
    assert same_in_code() == from_file
    assert same_in_code().fingerprint() == from_file.fingerprint()


def test_a_pipeline_in_code_gives_the_same_result_as_its_file(started: Workbench) -> None:
    project = started.open()
    by_file = project.run("orders")
    by_code = project.run(same_in_code("orders_too"))
    assert (by_file.status, by_code.status) == ("succeeded", "succeeded")
    counts = [
        (b.rows_read, b.rows_quarantined, b.rows_dropped, b.outputs[0].rows_inserted)
        for b in (by_file.batches[0], by_code.batches[0])
    ]
    assert counts[0] == counts[1] == (5, 2, 1, 2)
    assert started.rows("orders") == started.rows("orders_too")
    again = project.run(same_in_code())
    assert again.batches[0].outputs[0].committed is False


def test_a_plan_from_python_is_what_the_run_does(started: Workbench) -> None:
    project = started.open()
    planned = project.plan("orders")
    done = project.run("orders").batches[0]
    assert planned.outputs[0].rows_to_insert == done.outputs[0].rows_inserted
    assert planned.rows_to_quarantine == done.rows_quarantined


def test_the_projects_session_reads_and_writes_delta(started: Workbench) -> None:
    project = started.open()
    project.run("orders")
    location = project.table("orders").show().location
    assert project.spark.read.format("delta").load(location).count() == 2
    copy = started.root / "copy"
    project.spark.range(3).write.format("delta").save(str(copy))
    assert project.table(str(copy)).show().rows == 3


def test_a_session_of_ones_own_may_be_brought(started: Workbench, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    spark.range(1).createOrReplaceTempView("mine")
    with Project.open(started.root, spark=spark) as project:
        result = project.run("orders")
        assert result.error is None
        assert project.spark.sparkContext is spark.sparkContext
    assert spark.sql("select * from mine").count() == 1  # still alive, and untouched
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"


def test_closing_a_project_leaves_a_spark_that_others_started(started: Workbench) -> None:
    first, second = started.open(), started.open()
    assert first.spark.range(2).count() == 2
    with second:
        assert second.run("orders").error is None
    assert first.spark.range(3).count() == 3


def test_a_wrong_pipeline_in_code_is_refused_like_a_file(bench: Workbench) -> None:
    from deltaworks.errors import SpecError
    from deltaworks.transforms.filter import FilterTransform

    wrong = Pipeline.build(
        "p",
        extract=CsvSource(path="a.csv"),
        transform=[FilterTransform(condition="true", input="nowhere")],
        load=DeltaSink(table="t"),
    )
    with pytest.raises(SpecError, match='there is no step or source "nowhere"'):
        bench.open().run(wrong)


def test_fields_that_exclude_each_other_are_refused_in_code_too(bench: Workbench) -> None:
    from deltaworks.errors import SpecError

    wrong = Pipeline.build(
        "p", extract=CsvSource(path="a.csv"), load=DeltaSink(table="t", mode="upsert")
    )
    with pytest.raises(SpecError, match='mode "upsert" needs "merge_keys"'):
        bench.open().run(wrong)


def test_variables_can_be_given_to_one_run(started: Workbench) -> None:
    data = started.root / "data"
    (data / "orders_2026-01-02.csv").write_text(
        (data / "orders_2026-01-01.csv").read_text().replace("10.50", "11.50")
    )
    project = started.open()
    result = project.run("orders", variables={"day": "2026-01-02"})
    assert result.error is None
    assert started.rows("orders")[0]["amount"] == 11.5


def test_a_file_outside_any_project_runs_in_its_own_folder(bench: Workbench) -> None:
    folder = bench.root / "alone"
    (folder / "in").mkdir(parents=True)
    (bench.root / "deltaworks.yaml").unlink()
    (folder / "in" / "a.csv").write_text("id\n1\n2\n")
    file = folder / "p.yaml"
    file.write_text(
        "pipeline: p\nextract: {type: csv, path: in/a.csv}\nload: {type: delta, table: t}\n"
    )
    assert run_cli("run", str(file), "--quiet").code == 0
    assert Path(folder / "warehouse" / "t" / "_delta_log").is_dir()
