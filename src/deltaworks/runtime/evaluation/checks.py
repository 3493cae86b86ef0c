"""Checks: looked at together in one pass, before anything is published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltaworks.contracts.check import RowCheck, TableCheck
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import REJECTED
from deltaworks.contracts.tolerance import NONE
from deltaworks.engines.spark.frames.columns import require_columns
from deltaworks.engines.spark.frames.json_rows import sample_rows
from deltaworks.engines.spark.frames.rejects import (
    accepted,
    failure,
    is_marked,
    refusal,
    refused,
    unmarked,
)
from deltaworks.errors import QualityError
from deltaworks.model.results import CheckResult
from deltaworks.pipeline.stages import Stage, Verify
from deltaworks.runtime.error_boundary import step_boundary
from deltaworks.runtime.evaluation.frames import Count, FrameCache, Rejects, StepFrame, balance

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from deltaworks.contracts.sink import Beside

    Targets = Callable[[DataFrame, Sequence[str]], Sequence[Beside]]
    """Each target of some rows, as it would be with them, as far as columns go."""

_FATE = "__deltaworks_fate"
_PASSED, _REFUSED = -1, -2
"""Fates other than a check: no check takes the row out, or the step itself refused it."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What is left after the checks of a step, and what they found."""

    step: StepFrame
    taken: StepFrame
    """The rows that were checked: those that the step itself did not refuse."""
    results: tuple[CheckResult, ...]
    rejects: tuple[Rejects, ...] = ()
    rows_dropped: int = 0


def parts_too(step: StepFrame, stages: Sequence[Verify]) -> bool:
    """Whether the pass that checks a step's rows can also part them from those it refused."""
    of_rows = [stage.plugin for stage in stages if isinstance(stage.plugin, RowCheck)]
    alone = [check for check in of_rows if not check.looks_at_targets()]
    return is_marked(step.frame) and bool(alone) and all(check.row_wise() for check in alone)


def check_step(
    ctx: RunContext,
    step: StepFrame,
    stage: Stage,
    stages: Sequence[Verify],
    *,
    file: str,
    keeper: FrameCache,
    targets: Targets,
) -> Checked:
    """Run every check of one step: those of its rows, then those of what they let pass."""
    of_rows = [check for check in stages if isinstance(check.plugin, RowCheck)]
    beside = [check for check in of_rows if _looks_at_targets(check)]
    alone = [check for check in of_rows if check not in beside]
    checked = Checked(step=step, taken=step, results=())
    if alone:
        conditions = _conditions(ctx, step.frame, alone, file=file)
        checked = _row_checks(step, stage, alone, conditions, file=file, keeper=keeper)
    results = list(checked.results)
    if beside:
        _keep(checked.step, keeper)
        frame = checked.step.frame
        conditions = _conditions(ctx, frame, beside, file=file, targets=targets)
        more = _row_checks(checked.step, stage, beside, conditions, file=file, keeper=keeper)
        results += more.results
    results += _table_checks(ctx, checked.step, stages, file=file, keeper=keeper)
    return replace(checked, results=tuple(results))


def failed(results: Sequence[CheckResult]) -> list[CheckResult]:
    """The results that stop a run."""
    return [result for result in results if result.stops]


def quality_error(results: Sequence[CheckResult], *, file: str, line: int) -> QualityError:
    """The error for checks that stop a run."""
    wrong = failed(results)
    lines = [f'check "{result.name}" failed: {result.detail}' for result in wrong[:3]]
    hint = "correct the rows or the rule; `on_fail: quarantine` quarantines such rows"
    if wrong[0].on_fail != "fail":
        hint = "correct the rows or the rule, or allow more with `max_failed`"
    elif wrong[0].rows_failed is None:
        hint = "correct what is read or the rule; `on_fail: warn` goes on with a warning"
    return QualityError(
        "\n".join(lines),
        hint=hint,
        file=file,
        line=line,
        context={"checks": [result.to_json() for result in results]},
    )


def _looks_at_targets(stage: Verify) -> bool:
    return isinstance(stage.plugin, RowCheck) and stage.plugin.looks_at_targets()


def _keep(step: StepFrame, keeper: FrameCache) -> None:
    if not step.kept:
        step.frame, step.kept = keeper.keep(step.frame), True


def _conditions(
    ctx: RunContext,
    frame: DataFrame,
    stages: Sequence[Verify],
    *,
    file: str,
    targets: Targets | None = None,
) -> list[Column]:
    found = []
    for stage in stages:
        if isinstance(stage.plugin, RowCheck):
            with step_boundary(stage, file):
                found.append(_condition(ctx, frame, stage.plugin, targets))
    return found


def _condition(
    ctx: RunContext, frame: DataFrame, check: RowCheck, targets: Targets | None = None
) -> Column:
    from pyspark.sql import functions as F

    require_columns(frame, check.columns_used(), where=f"check {check.plugin_type()}")
    beside = targets(frame, check.columns_used()) if targets else ()
    holds = check.condition_beside(ctx, frame, beside)
    passes = F.coalesce(holds.cast("boolean"), F.lit(0).cast("boolean"))
    frame.select(passes)  # Spark looks at the names here, where the step is known
    return passes


def require_conditions(ctx: RunContext, frame: DataFrame, stage: Verify) -> None:
    """Raise when a check names what these columns do not have; no row is read."""
    if isinstance(stage.plugin, RowCheck):
        _condition(ctx, frame, stage.plugin)


def _row_checks(
    step: StepFrame,
    stage: Stage,
    stages: Sequence[Verify],
    conditions: Sequence[Column],
    *,
    file: str,
    keeper: FrameCache,
) -> Checked:
    """Look at all of the checks in one pass over the rows, and at what the step refused."""
    from pyspark.sql import functions as F

    names = [f"__deltaworks_check_{i}" for i in range(len(stages))]
    columns = dict(zip(names, _where_taken(step.frame, conditions), strict=True))
    marked = step.frame.withColumns(columns).withColumn(_FATE, _fate(step.frame, stages, names))
    with step_boundary(stages[0], file):
        kept = keeper.keep(marked)
        figures = kept.agg(
            F.count(F.lit(1)),
            F.count_if(F.col(_FATE) == _REFUSED),
            F.count_if(F.col(_FATE) == _PASSED),
            *[F.count_if(~F.col(name)) for name in names],
            *[F.count_if(F.col(_FATE) == i) for i in range(len(stages))],
        ).collect()[0]
    rows_in, rows_refused, passed = (int(count) for count in figures[:3])
    failures = [int(count) for count in figures[3 : 3 + len(stages)]]
    fates = [int(count) for count in figures[3 + len(stages) :]]
    balance("checks", rows_in, rows_refused + passed + sum(fates))
    if step.count.known is not None:
        balance("checks", step.count.known, rows_in)
    step.count.known = rows_in
    plain = unmarked(step.frame).columns
    taken, rejects = _taken(step, kept, stage, rows=rows_in, rows_refused=rows_refused)
    results = tuple(
        _row_result(kept, plain, check, name, failed_rows=count, rows=rows_in - rows_refused)
        for check, name, count in zip(stages, names, failures, strict=True)
    )
    out = kept.filter(F.col(_FATE) == _PASSED).select(*_plain(plain))
    return Checked(
        step=StepFrame(frame=out, kept=True, count=Count(known=passed), read=True),
        taken=taken,
        results=results,
        rejects=(*rejects, *_rejects(kept, plain, stages, fates)),
        rows_dropped=_dropped(stages, fates),
    )


def _taken(
    step: StepFrame, kept: DataFrame, stage: Stage, *, rows: int, rows_refused: int
) -> tuple[StepFrame, tuple[Rejects, ...]]:
    """The rows that a step did not refuse, and those it did."""
    if not is_marked(step.frame):
        return step, ()
    count = Count(known=rows - rows_refused)
    taken = StepFrame(frame=accepted(kept), kept=True, count=count, read=True)
    parted = Rejects(frame=refused(kept), stage=stage.name, kind=stage.kind, rows=rows_refused)
    return taken, (parted,)


def _where_taken(frame: DataFrame, conditions: Sequence[Column]) -> list[Column]:
    """Conditions that hold for rows which the step refused itself, without looking at them."""
    from pyspark.sql import functions as F

    if not is_marked(frame):
        return list(conditions)
    refused_row = F.col(REJECTED).isNotNull()
    return [F.when(~refused_row, condition).otherwise(refused_row) for condition in conditions]


def _fate(frame: DataFrame, stages: Sequence[Verify], names: Sequence[str]) -> Column:
    """Which check takes a row out: the first in the file that fails."""
    from pyspark.sql import functions as F

    fate = F.lit(_PASSED)
    for i in reversed(range(len(stages))):
        if _on_fail(stages[i]) in ("quarantine", "drop"):
            fate = F.when(~F.col(names[i]), F.lit(i)).otherwise(fate)
    if is_marked(frame):
        fate = F.when(F.col(REJECTED).isNotNull(), F.lit(_REFUSED)).otherwise(fate)
    return fate


def _on_fail(stage: Verify) -> str:
    return str(getattr(stage.plugin, "on_fail", "fail"))


def _plain(columns: Sequence[str]) -> list[str]:
    from deltaworks.engines.spark.frames.columns import quoted

    return [quoted(name) for name in columns]


def _row_result(
    kept: DataFrame,
    plain: Sequence[str],
    stage: Verify,
    name: str,
    *,
    failed_rows: int,
    rows: int,
) -> CheckResult:
    from pyspark.sql import functions as F

    limit = getattr(stage.plugin, "max_failed", None)
    samples: tuple[str, ...] = ()
    detail = "all rows pass"
    if failed_rows:
        samples = sample_rows(kept.filter(~F.col(name)).select(*_plain(plain)))
        shown = f"{failed_rows:,} row{'' if failed_rows == 1 else 's'}"
        if limit is not None:
            shown = f"{failed_rows:,} of {rows:,} rows, {limit} allowed"
        detail = f"{shown}, for example {samples[0]}"
    return _result(
        stage,
        passed=(limit or NONE).allows(failed_rows, of=rows),
        max_failed=None if limit is None else str(limit),
        rows_checked=rows,
        rows_failed=failed_rows,
        detail=detail,
        samples=samples,
    )


def _result(stage: Verify, **found: Any) -> CheckResult:
    return CheckResult(
        name=stage.name,
        type=stage.plugin.plugin_type(),
        step=stage.inputs[0],
        description=stage.plugin.description,
        on_fail=_on_fail(stage),
        **found,
    )


def _rejects(
    kept: DataFrame, plain: Sequence[str], stages: Sequence[Verify], fates: Sequence[int]
) -> tuple[Rejects, ...]:
    from pyspark.sql import functions as F

    found = []
    for i, stage in enumerate(stages):
        if _on_fail(stage) == "quarantine" and fates[i]:
            rows = kept.filter(F.col(_FATE) == i).select(*_plain(plain))
            reason = failure(rows, stage.plugin.plugin_type(), stage.plugin.columns_used())
            frame = rows.select(*refusal(rows, rule=stage.name, reason=reason))
            found.append(
                Rejects(frame=frame, stage=stage.inputs[0], kind=stage.kind, rows=fates[i])
            )
    return tuple(found)


def _dropped(stages: Sequence[Verify], fates: Sequence[int]) -> int:
    return sum(
        count for stage, count in zip(stages, fates, strict=True) if _on_fail(stage) == "drop"
    )


def _table_checks(
    ctx: RunContext, step: StepFrame, stages: Sequence[Verify], *, file: str, keeper: FrameCache
) -> tuple[CheckResult, ...]:
    found = []
    for stage in stages:
        check = stage.plugin
        if not isinstance(check, TableCheck):
            continue
        _keep(step, keeper)
        with step_boundary(stage, file):
            seen = check.measure(ctx, step.frame)
        found.append(_result(stage, passed=seen.passed, rows_checked=seen.rows, detail=seen.detail))
    return tuple(found)
