"""Four processes, Spark and delta-rs mixed, each under our lock: no commit is lost (M8)."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from tests.workbench import Workbench

pytestmark = [pytest.mark.prove, pytest.mark.timeout(0)]

SPARK_COMMITS, DELTARS_COMMITS = 50, 150
PIPELINE = """
extract: {type: csv, path: "in_WHO/*.csv", schema: "who string, n int", incremental: true}
load: {type: delta, table: t, writer: spark}
"""
BY_SPARK = f"""
import sys
from pathlib import Path
from deltaworks.api import Project

root, who = Path(sys.argv[1]), sys.argv[2]
project = Project.open(root)
for n in range({SPARK_COMMITS}):
    (root / f"in_{{who}}" / f"{{n:04d}}.csv").write_text(f"who,n\\n{{who}},{{n}}\\n")
    result = project.run(who)
    assert result.error is None, result.error
"""
BY_DELTARS = f"""
import sys
import pyarrow as pa
from deltalake import write_deltalake
from deltaworks.api import Project

root, who = sys.argv[1:3]
project = Project.open(root)
schema = pa.schema([("who", pa.string()), ("n", pa.int32())])
for n in range({DELTARS_COMMITS}):
    rows = pa.Table.from_pylist([{{"who": who, "n": n}}], schema)
    with project.locked("t"):
        write_deltalake(f"{{root}}/warehouse/t", rows, mode="append")
"""
WRITERS = {"spark_a": BY_SPARK, "spark_b": BY_SPARK, "rust_a": BY_DELTARS, "rust_b": BY_DELTARS}


def test_four_writers_of_one_table_lose_no_commit(bench: Workbench) -> None:
    bench.write(
        "deltaworks.yaml",
        "project: shop\nwarehouse: ./warehouse\nlocks: {wait_seconds: 300}\n",
    )
    for who in ("first", "spark_a", "spark_b"):
        bench.pipeline(who, PIPELINE.replace("WHO", who))
        (bench.root / f"in_{who}").mkdir()
    bench.write("in_first/a.csv", "who,n\nfirst,0\n")
    bench.run("first")
    running = {
        who: subprocess.Popen(
            [sys.executable, "-c", program, str(bench.root), who], stderr=subprocess.PIPE, text=True
        )
        for who, program in WRITERS.items()
    }
    for who, process in running.items():
        _, said = process.communicate()
        assert process.returncode == 0, f"{who}: {said}"
    rows = bench.rows("t")
    assert Counter(row["who"] for row in rows) == {
        "first": 1,
        "spark_a": SPARK_COMMITS,
        "spark_b": SPARK_COMMITS,
        "rust_a": DELTARS_COMMITS,
        "rust_b": DELTARS_COMMITS,
    }
    assert len({(row["who"], row["n"]) for row in rows}) == len(rows)
    assert bench.version("t") == 2 * (SPARK_COMMITS + DELTARS_COMMITS)
