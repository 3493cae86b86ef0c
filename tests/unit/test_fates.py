"""Rows of a step add up, or their counts are not told; limits of what may go into quarantine."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from deltaworks.cli.commands.run import _end
from deltaworks.contracts.registry import find_plugin
from deltaworks.errors import GuardError, Interrupted
from deltaworks.model.results import FAILED, PARKED, RunResult, StepResult, status_of
from deltaworks.pipeline.spec import Pipeline
from deltaworks.pipeline.stages import Apply
from deltaworks.runtime.evaluation.frames import Count, StepFrame
from deltaworks.runtime.evaluation.row_fates import Passed, rows_dropped
from tests.workbench import Workbench

READ = "extract: {type: csv, path: in.csv%s}\n"
LOAD = "load: {type: delta, table: t}\n"


def passed(kind: str, rows_in: int | None, rows: int | None, **more: Any) -> StepResult:
    model = find_plugin("transform", kind)
    assert model is not None
    frame: Any = None
    return Passed(
        stage=Apply(name="it", plugin=model.model_validate(more.pop("words")), inputs=("source",)),  # type: ignore[arg-type]
        came=(Count(known=rows_in),),
        step=StepFrame(frame=frame, count=Count(known=rows)),
        duration_s=0.0,
        was_applied=True,
        **more,
    ).result()


FILTER: dict[str, Any] = {"condition": "a > 1"}
CAST: dict[str, Any] = {"columns": {"a": "int"}}


def test_what_a_filter_leaves_out_is_dropped_by_it() -> None:
    found = passed("filter", 10, 7, words=FILTER)
    assert (found.rows_in, found.rows, found.rows_dropped, found.uncounted) == (10, 7, 3, "")


def test_what_a_cast_refuses_is_neither_passed_on_nor_dropped() -> None:
    found = passed("cast", 10, 7, words=CAST, rows_refused=3)
    assert (found.rows_in, found.rows, found.rows_quarantined, found.rows_dropped) == (10, 7, 3, 0)


@pytest.mark.parametrize(
    ("kind", "words", "rows"), [("filter", FILTER, 11), ("cast", CAST, 9), ("cast", CAST, 12)]
)
def test_counts_that_do_not_add_up_are_not_told(
    kind: str, words: dict[str, Any], rows: int
) -> None:
    found = passed(kind, 10, rows, words=words)
    assert (found.rows_in, found.rows, found.rows_dropped) == (None, None, None)
    assert found.unbalanced
    assert f"10 rows came in, and Spark counted {rows}" in found.uncounted


def test_what_was_not_counted_is_null_with_the_reason() -> None:
    found = passed("filter", None, 7, words=FILTER)
    assert (found.rows_dropped, found.uncounted != "") == (None, True)
    sql = passed("sql", 10, 7, words={"query": "SELECT * FROM input"})
    assert (sql.rows_dropped, sql.unbalanced) == (None, False)
    assert rows_dropped([passed("filter", 5, 3, words=FILTER)]) == (2, "")
    total, why = rows_dropped([passed("filter", 5, 3, words=FILTER), sql])
    assert (total, why) == (None, f'step "it": {sql.uncounted}')


@pytest.mark.parametrize(
    ("how", "leaves_out"),
    [("inner", "watched"), ("left", "nothing"), ("semi", "difference"), ("right", "unknown")],
)
def test_a_join_says_how_its_rows_are_counted(how: str, leaves_out: str) -> None:
    model = find_plugin("transform", "join")
    assert model is not None
    join: Any = model.model_validate({"with": "other", "on": "id", "how": how})
    assert join.leaves_out() == leaves_out


def test_an_inner_join_that_nobody_watched_says_so() -> None:
    found = passed("join", 10, 7, words={"with": "other", "on": "id"})
    assert (found.rows_dropped, "take longer to count" in found.uncounted) == (None, True)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("max_failed: few\n" + READ % "", 2, '"max_failed": "few" is no number of rows'),
        (READ % ", max_failed: 3", 2, '"max_failed" goes with "on_error: quarantine"'),
        (
            READ % "" + "transform: [{type: cast, columns: {id: int}, max_failed: 1%}]\n",
            3,
            'cast: "max_failed" goes with "on_error: quarantine"',
        ),
    ],
)
def test_a_limit_that_limits_nothing_is_refused(
    desk: Workbench, text: str, line: int, message: str
) -> None:
    desk.pipeline("p", text + LOAD)
    (problem,) = desk.cli("validate", "--json").json["problems"]
    assert (problem["line"], message in problem["message"]) == (line, True)


def test_a_limit_of_the_whole_run_is_part_of_the_pipeline(desk: Workbench) -> None:
    desk.pipeline("p", "max_failed: 0.5%\n" + READ % "" + LOAD)
    (plan,) = desk.open().catalog().plans
    assert plan.pipeline.document()["max_failed"] == "0.5%"
    pipeline = plan.pipeline
    same = Pipeline.build("p", extract=pipeline.extract, load=pipeline.load, max_failed="0.5%")
    assert same.fingerprint() == pipeline.fingerprint()
    assert Pipeline.build("p", extract=pipeline.extract, load=pipeline.load).max_failed is None


def ended(*endings: Any) -> int:
    results = [
        RunResult(
            run_id=None,
            pipeline="p",
            status=one if isinstance(one, str) else FAILED,
            started_at="",
            duration_s=0.0,
            error=None if isinstance(one, str) else one,
        )
        for one in endings
    ]
    try:
        _end(results)
    except typer.Exit as stop:
        return int(stop.exit_code)
    return 0


def test_a_failure_counts_more_than_a_parked_batch_and_ctrl_c_more_than_both() -> None:
    assert ended("succeeded", "skipped", "stopped") == 0
    assert ended("succeeded", PARKED) == 6
    assert ended(PARKED, GuardError("no")) == 5
    assert ended(PARKED, GuardError("no"), Interrupted("stop")) == 130


def test_what_asks_for_attention_is_the_status() -> None:
    error = GuardError("no")
    assert status_of(error, parked=True, stopped=True, skipped=True) == "failed"
    assert status_of(None, parked=True, stopped=True, skipped=True) == "parked"
    assert status_of(None, parked=False, stopped=True, skipped=True) == "stopped"
    assert status_of(None, parked=False, stopped=False, skipped=True) == "skipped"
    assert status_of(None, parked=False, stopped=False, skipped=False) == "succeeded"
