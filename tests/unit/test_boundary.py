"""The edge of a step: what fails inside names its step, and Ctrl-C stays Ctrl-C."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from deltaworks.engines.spark.session.start import cancel_work
from deltaworks.errors import ConstraintViolated, EngineError, InputError
from deltaworks.pipeline.stages import Extract, Load
from deltaworks.runtime.error_boundary import step_boundary
from deltaworks.sinks.delta import DeltaSink
from deltaworks.sources.csv import CsvSource

LOAD = Load(name="delta", plugin=DeltaSink(table="t"), inputs=("source",), line=7)
EXTRACT = Extract(name="source", plugin=CsvSource(path="a"), line=2)


def test_an_error_of_ours_gets_the_steps_place() -> None:
    with pytest.raises(ConstraintViolated) as caught, step_boundary(LOAD, "p.yaml"):
        raise ConstraintViolated("no")
    assert (caught.value.file, caught.value.line) == ("p.yaml", 7)
    assert caught.value.context["step"] == "delta"


def test_a_foreign_error_becomes_ours_and_stays_the_cause() -> None:
    with pytest.raises(EngineError) as caught, step_boundary(LOAD, "p.yaml"):
        raise ZeroDivisionError("by zero")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_bad_value_that_a_later_step_met_is_not_put_on_that_step() -> None:
    with pytest.raises(InputError) as caught, step_boundary(LOAD, "p.yaml"):
        raise InputError("bad", context={"value": "x"})
    assert caught.value.file == ""
    with pytest.raises(InputError) as caught, step_boundary(EXTRACT, "p.yaml"):
        raise InputError("bad", context={"value": "x"})
    assert caught.value.line == 2


def test_a_sink_that_refuses_its_place_is_named() -> None:
    with pytest.raises(InputError) as caught, step_boundary(LOAD, "p.yaml"):
        raise InputError("the folder holds files")
    assert caught.value.line == 7


def interrupted_while_cleaning_up() -> None:
    try:
        raise KeyboardInterrupt
    finally:
        raise Py4JNetworkError("Answer from Java side is empty")


def test_an_error_met_while_cleaning_up_after_ctrl_c_is_still_ctrl_c() -> None:
    with pytest.raises(KeyboardInterrupt), step_boundary(LOAD, "p.yaml"):
        interrupted_while_cleaning_up()


def session_that_fails(times: int) -> tuple[Any, list[str]]:
    """A session whose connection gives no answer at first."""
    calls: list[str] = []

    def cancel() -> None:
        calls.append("cancel")
        if len(calls) <= times:
            raise Py4JNetworkError("Answer from Java side is empty")

    return SimpleNamespace(_jvm=object(), sparkContext=SimpleNamespace(cancelAllJobs=cancel)), calls


def test_work_is_cancelled_though_ctrl_c_broke_the_connection() -> None:
    spark, calls = session_that_fails(1)
    cancel_work(spark)
    assert len(calls) == 2


def test_a_spark_that_never_answers_does_not_hide_the_ctrl_c() -> None:
    spark, calls = session_that_fails(9)
    cancel_work(spark)
    assert len(calls) == 3
