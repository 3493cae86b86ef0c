"""What a walk makes of a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.contracts.context import RunContext
from deltaworks.errors import DeltaworksError, InputError
from deltaworks.model.batch import Bounds
from deltaworks.pipeline.stages import Extract
from deltaworks.runtime.evaluation.evaluator import _explained
from deltaworks.sources.csv import CsvSource

if TYPE_CHECKING:
    import pytest


def test_a_source_that_cannot_explain_a_failure_does_not_hide_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> DeltaworksError:
        raise FileNotFoundError("the file went away meanwhile")

    monkeypatch.setattr(CsvSource, "explain_failure", fails)
    first = InputError("a row cannot be read")
    stage = Extract(name="orders", plugin=CsvSource(path="a.csv"))
    ctx: RunContext = object()  # type: ignore[assignment]
    assert _explained(stage, ctx, Bounds(kind="files", identity="a.csv"), first) is first
