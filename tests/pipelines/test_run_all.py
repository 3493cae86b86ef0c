"""Several pipelines at once: in order, apart from each other, stopped cleanly."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from deltaworks import Pipeline
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.transform import Transform
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.model.events import Event, StageStarted
from deltaworks.sinks.delta import DeltaSink
from deltaworks.sources.csv import CsvSource
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

GATE = threading.Barrier(2, timeout=60)
SLOW = threading.Event()


class Confess(Transform):
    """Sets the session up for itself, waits for the other run, and tells what it finds."""

    word: str
    """What this run sets and expects to find."""

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        ctx.spark.conf.set("spark.sql.session.timeZone", self.word)
        ctx.spark.range(1).selectExpr(f"'{self.word}' AS word").createOrReplaceTempView("same")
        GATE.wait()
        seen = ctx.spark.sql("SELECT word, current_timezone() AS zone FROM same")
        GATE.wait()
        return frame.crossJoin(seen)


class Endless(Transform):
    """Works for hours, unless it is told not to."""

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        if not SLOW.is_set():
            return frame
        hours = ctx.spark.range(10**13).selectExpr("max(id % 7) AS much")
        return frame.join(hours, hours.much >= 0, "left_semi")


def built(name: str, step: Transform, **sink: object) -> Pipeline:
    return Pipeline.build(
        name,
        extract=CsvSource.model_validate({"path": "in.csv", "schema": "id bigint, v string"}),
        transform=[step],
        load=DeltaSink.model_validate({"table": name, **sink}),
    )


def meet_at_loads(event: Event) -> None:
    if isinstance(event, StageStarted) and event.kind == "load":
        GATE.wait()


def test_runs_side_by_side_share_no_setting_and_no_view(bench: Workbench) -> None:
    merge = {"mode": "upsert", "merge_keys": ["id"]}
    pipelines = [
        built("a", Confess(word="Asia/Tokyo"), **merge, target_file_size="10mb"),
        built("b", Confess(word="America/Lima"), **merge, target_file_size="20mb"),
    ]
    project = bench.open(listeners=[meet_at_loads])
    for text in ("id,v\n1,x\n", "id,v\n1,y\n2,z\n"):  # the second batch is a MERGE
        bench.write("in.csv", text)
        results = project.run_all(*pipelines, parallel=2)
        assert [(r.pipeline, r.status, r.error) for r in results] == [
            ("a", "succeeded", None),
            ("b", "succeeded", None),
        ]
    for result, word in zip(results, ("Asia/Tokyo", "America/Lima"), strict=True):
        rows = bench.rows(result.pipeline)
        assert {(row["word"], row["zone"]) for row in rows} == {(word, word)}
        assert [(row["id"], row["v"]) for row in rows] == [(1, "y"), (2, "z")]
        last = DeltaRsEngine().history(str(bench.table(result.pipeline)), limit=1)[0]
        assert last.operation == "MERGE"
        assert last.user_metadata["run_id"] == result.run_id
        assert last.user_metadata["pipeline"] == result.pipeline
        assert result.batches[0].outputs[0].rows_updated == 1


@pytest.mark.parametrize("parallel", ["1", "2"])
def test_a_failure_stops_only_what_depends_on_it(bench: Workbench, parallel: str) -> None:
    bench.write(
        "deltaworks.yaml", "project: shop\nwarehouse: ./warehouse\nlocks: {wait_seconds: 0}\n"
    )
    bench.write("good.csv", "id\n1\n")
    bench.write("bad.csv", "id\noops\n")
    load = "load: {type: delta, table: TABLE, mode: append}\n"
    csv = 'extract: {type: csv, path: FILE, schema: "id bigint"}\n'
    bench.pipeline("z_orders", csv.replace("FILE", "bad.csv") + load.replace("TABLE", "orders"))
    read = "extract: {type: delta, table: TABLE}\n"
    bench.pipeline("a_totals", read.replace("TABLE", "orders") + load.replace("TABLE", "totals"))
    bench.pipeline("a_report", read.replace("TABLE", "totals") + load.replace("TABLE", "report"))
    for name in ("m_one", "m_two"):  # both write one table, and nobody waits for a lock
        bench.pipeline(name, csv.replace("FILE", "good.csv") + load.replace("TABLE", "both"))
    answer = bench.cli("run", "--all", "--parallel", parallel, "--json", "--quiet")
    runs = {run["pipeline"]: run for run in answer.json["runs"]}
    assert answer.code == 1
    assert runs["z_orders"]["error"]["code"] == "input"
    assert {name: run["status"] for name, run in runs.items()} == {
        "z_orders": "failed",
        "a_totals": "skipped",
        "a_report": "skipped",
        "m_one": "succeeded",
        "m_two": "succeeded",
    }
    assert runs["a_report"]["notes"] == ["not run: z_orders failed"]
    assert runs["a_report"]["run_id"] is None
    assert [row["id"] for row in bench.rows("both")] == [1, 1]
    shown = bench.cli("run", "--all", "--parallel", parallel)
    assert "a_totals: was not run\n  not run: z_orders failed\n" in shown.stdout
    summary = shown.stdout.splitlines()[-5:]
    assert sorted(line.split()[0] for line in summary) == sorted(runs)
    assert "m_one: run " in shown.stderr


def test_a_run_that_takes_too_long_is_cancelled_and_goes_on_later(bench: Workbench) -> None:
    bench.write("in.csv", "id,v\n1,x\n")
    slow, quick = built("slow", Endless()), built("quick", Endless(), mode="append")
    project = bench.open()
    assert project.run(slow).status == "succeeded"
    bench.write("in.csv", "id,v\n2,y\n")
    SLOW.set()
    started = time.monotonic()
    try:
        result = project.run(slow, timeout=timedelta(seconds=2))
    finally:
        SLOW.clear()
    assert time.monotonic() - started < 30
    assert result.status == "failed"
    assert result.error is not None
    assert (result.error.code, result.error.exit_code) == ("timeout", 124)
    assert result.error.message.startswith('stopped after 2 s, in load "slow"; no table')
    assert bench.version("slow") == 0
    assert project.find_run(str(result.run_id)).status == "failed"
    again = project.run(slow, timeout=timedelta(hours=1))
    assert again.notes == ("batch 2 was cut off and is finished now",)
    assert [row["id"] for row in bench.rows("slow")] == [1, 2]
    assert project.run(quick).status == "succeeded"  # no mark of the other run is left behind


def test_the_command_line_takes_a_timeout(bench: Workbench) -> None:
    bench.write("in.csv", "id\n1\n")
    bench.pipeline("p", "extract: {type: csv, path: in.csv}\nload: {type: delta, table: t}\n")
    refused = bench.fail("p", "--timeout", "soon")
    assert refused.code == 2
    assert '--timeout: "soon" is not a span of time' in refused.stderr
    late = bench.cli("run", "p", "--timeout", "0.001s", "--json", "--quiet")
    assert late.code == 124
    assert late.json["error"]["code"] == "timeout"
    assert bench.version("t") is None
    assert bench.run("p", "--timeout", "30m")["status"] == "succeeded"


def test_ctrl_c_stops_every_run_and_none_begins(bench: Workbench) -> None:
    bench.write("in.csv", "id,v\n1,x\n")
    begun: set[str] = set()

    def press(event: Event) -> None:
        if isinstance(event, StageStarted) and event.kind == "load":
            begun.add(event.pipeline)
            if len(begun) == 2:
                os.kill(os.getpid(), signal.SIGINT)

    SLOW.set()
    started = time.monotonic()
    try:
        pipelines = [built(name, Endless()) for name in ("a", "b", "c")]
        results = bench.open(listeners=[press]).run_all(*pipelines, parallel=2)
    finally:
        SLOW.clear()
    assert time.monotonic() - started < 30
    stopped = [r for r in results if r.error is not None]
    assert {r.error.code for r in stopped if r.error} == {"interrupted"}
    assert {r.pipeline for r in stopped} == begun == {"a", "b"}
    assert [r.notes for r in results if r.error is None] == [("not run: stopped by Ctrl-C",)]
    assert [bench.version(name) for name in "abc"] == [None, None, None]
    later = bench.open().run_all(*pipelines, parallel=2)
    assert [r.status for r in later] == ["succeeded"] * 3
    assert [len(bench.rows(name)) for name in "abc"] == [1, 1, 1]
