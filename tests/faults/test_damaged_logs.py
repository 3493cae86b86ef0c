"""Pipelines and tables whose logs others wrote, damaged or strange (P11)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.damages import (
    PLAIN,
    POINTED,
    Subject,
    catalogue,
    compacted,
    plain_table,
    pointed_table,
    tree,
    version2_checkpoint,
)
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE = (
    "last commit blank lines",
    "cut at a line end, files counted",
    "last commit a folder",
    "size wrong in the log",
    "data file of the checkpoint missing",
    "sidecar torn",
    "reader feature timeCrystals",
    "no columns",
)


@pytest.fixture
def damaged(bench: Workbench, tmp_path: Path) -> dict[str, str]:
    """Tables of the warehouse, each damaged in its own way, and the codes that say so."""
    good = {PLAIN: tmp_path / "plain", POINTED: tmp_path / "pointed"}
    plain_table(good[PLAIN])
    pointed_table(good[POINTED])
    codes = {}
    for number, entry in enumerate(one for one in catalogue() if one.name in SAMPLE):
        name = f"t{number}"
        shutil.copytree(good[entry.base], bench.table(name))
        entry.damage(Subject(bench.table(name)))
        bench.pipeline(
            f"from_{name}",
            f"extract: {{type: delta, table: {name}}}\nload: {{type: delta, table: out}}\n",
        )
        bench.pipeline(
            f"into_{name}",
            'extract: {type: csv, path: in.csv, schema: "id bigint, v string"}\n'
            f"load: {{type: delta, table: {name}}}\n",
        )
        codes[name] = entry.code
    assert len(codes) == len(SAMPLE)
    return codes


def test_no_run_reads_or_writes_a_damaged_table(bench: Workbench, damaged: dict[str, str]) -> None:
    bench.write("in.csv", "id,v\n7,g\n")
    for name, code in damaged.items():
        before = tree(bench.table(name))
        for words in (
            ("run", f"from_{name}", "--quiet"),
            ("run", f"into_{name}", "--quiet"),
            ("preview", f"from_{name}"),
            ("table", "restore", name, "--version", "0"),
        ):
            answered = bench.cli(*words, "--json")
            told = answered.stdout + answered.stderr
            assert answered.code == 4, (words, told)
            assert answered.json["error"]["code"] == code, (words, told)
            assert "org.apache" not in told
            assert "Traceback" not in told
        assert tree(bench.table(name)) == before
    assert not bench.table("out").exists()


def test_rows_marked_as_deleted_stay_out_when_the_property_is_off(
    bench: Workbench, spark: SparkSession
) -> None:
    place = bench.table("t")
    spark.range(100).coalesce(1).write.format("delta").option(
        "delta.enableDeletionVectors", "true"
    ).save(str(place))
    spark.sql(f"DELETE FROM delta.`{place}` WHERE id < 10")
    spark.sql(
        f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
    )
    assert bench.cli("table", "show", "t", "--json").json["rows"] == 90
    bench.pipeline(
        "copy",
        "extract: {type: delta, table: t}\nchecks: [{type: not_null, columns: [id]}]\n"
        "load: {type: delta, table: c}\n",
    )
    bench.run("copy")
    assert len(bench.rows("c")) == 90


def test_where_engines_may_disagree_spark_answers_and_commits(bench: Workbench) -> None:
    plain_table(bench.table("t"))
    subject = Subject(bench.table("t"))
    compacted(subject, 1, 3, most=1)  # Spark reads this one, delta-rs the commits
    shown = bench.cli("table", "show", "t", "--json").json
    assert (shown["rows"], shown["version"]) == (3, 4)
    bench.write("in.csv", "id,v\n7,g\n")
    bench.pipeline(
        "p",
        'extract: {type: csv, path: in.csv, schema: "id bigint, v string"}\n'
        "load: {type: delta, table: t}\n",
    )
    bench.run("p")
    assert bench.cli("table", "show", "t", "--json").json["rows"] == 4
    info = next(a["commitInfo"] for a in subject.read(5) if "commitInfo" in a)
    assert info["engineInfo"].startswith("Apache-Spark")


def test_what_only_spark_understands_goes_through_a_pipeline(bench: Workbench) -> None:
    pointed_table(bench.table("a"))
    version2_checkpoint(Subject(bench.table("a")), Subject(bench.table("a")).checkpoint().name)
    plain_table(bench.table("b"))
    Subject(bench.table("b")).protocol(1, 0)  # older than delta-rs
    bench.pipeline("p", "extract: {type: delta, table: b}\nload: {type: delta, table: a}\n")
    bench.run("p")
    assert bench.cli("table", "show", "a", "--json").json["rows"] == 10
    shown = bench.cli("table", "show", "b", "--json")
    assert shown.json["rows"] == 5, json.dumps(shown.json)


def test_a_first_load_that_fails_leaves_no_folder(bench: Workbench) -> None:
    bench.write("in.csv", "id\n1\nx\n")
    bench.pipeline(
        "p",
        "extract: {type: csv, path: in.csv, schema: 'id string'}\n"
        "transform: [{type: derive, columns: {n: 'CAST(id AS int)'}}]\n"
        "load: {type: delta, table: t, writer: spark}\n",
    )
    bench.fail("p")
    assert not bench.table("t").exists()
    bench.write("in.csv", "id\n1\n2\n")
    bench.run("p")
    assert len(bench.rows("t")) == 2
