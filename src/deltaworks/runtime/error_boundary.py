"""The edge between our code and what users and Spark do inside a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltaworks.errors import DeltaworksError, InputError
from deltaworks.pipeline.stages import Stage
from deltaworks.runtime.cancellation import CancellationToken

_DATA = {"value", "record", "path"}
"""What the context of an error holds when a value, a row or a file of a source is at fault."""


@contextmanager
def step_boundary(stage: Stage, file: str) -> Iterator[None]:
    """Whatever fails inside comes out as one of our errors that names the step."""
    from deltaworks.engines.spark.errors.translate import translate

    try:
        yield
    except DeltaworksError as error:
        raise _named(error, stage, file) from error.__cause__
    except Exception as error:
        if _was_interrupted(error):
            raise KeyboardInterrupt from error
        raise _named(translate(error), stage, file) from error


@contextmanager
def halt_boundary(halt: CancellationToken) -> Iterator[None]:
    """Whatever fails inside a run that was asked to stop fails for that reason."""
    try:
        yield
    except Exception:
        halt.raise_if_cancelled()
        raise


def _was_interrupted(error: BaseException) -> bool:
    """Whether an error came up only while a step was cleaning up after Ctrl-C."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause is not None


def _named(error: DeltaworksError, stage: Stage, file: str) -> DeltaworksError:
    if step := error.context.get("raised_by"):
        error.context["step"] = step  # its rows failed while a later one read them
        return error
    error.context.setdefault("step", stage.name)
    is_in_data = isinstance(error, InputError) and bool(_DATA & error.context.keys())
    if is_in_data and stage.kind != "extract":
        return error  # the fault lies in the data, read late; the step's line would mislead
    return error.at(file, stage.line)
