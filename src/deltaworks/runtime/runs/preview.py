"""A look at the rows of a step: the same walk as a run's, as far as the step, and no sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from deltaworks.engines.spark.delta.schema_fit import frame_schema
from deltaworks.errors import ConfigError, DeltaworksError
from deltaworks.model.batch import Bounds
from deltaworks.model.results import PreviewResult
from deltaworks.pipeline.stages import Apply, Extract, Load, Plan, Stage, Verify
from deltaworks.runtime.environment import RunEnv, new_run, start_engine, tell_stage
from deltaworks.runtime.error_boundary import step_boundary
from deltaworks.runtime.evaluation.checks import failed
from deltaworks.runtime.evaluation.evaluator import Evaluation, PlanEvaluator
from deltaworks.runtime.evaluation.frames import FrameCache
from deltaworks.runtime.ledger.state import LedgerState
from deltaworks.runtime.source_bounds import no_files, nothing_new, take_bounds
from deltaworks.suggest import did_you_mean


def preview_plan(
    plan: Plan, place: RunEnv, *, step: str = "", limit: int = 20, full: bool = False
) -> PreviewResult:
    """The first rows of a step as the next batch would read them. Nothing is written."""
    stage = find_stage(plan, step)
    part = part_of(plan, stage)
    state = _state(plan, place)
    bounds = take_bounds(part, place.project_ctx, LedgerState() if full else state)
    if nothing_new(part, bounds) and (state.loaded() or no_files(bounds)):
        last = next((entry.n for entry in reversed(state.loaded())), None)
        note = f"nothing is new since batch {last}; --full looks at everything"
        note = "there is nothing to read yet" if last is None or full else note
        return PreviewResult(
            pipeline=plan.pipeline.name, step=stage.name, kind=stage.kind, notes=(note,)
        )
    return _walked(part, place, stage, bounds, limit)


def find_stage(plan: Plan, name: str) -> Stage:
    """The stage that a person means; without a name what the first sink gets."""
    if not name:
        return plan.loads[0]
    by_name: dict[str, Stage] = {}
    for kind in (Load, Verify, Apply, Extract):  # rows before those who only look at them
        by_name |= {stage.name: stage for stage in plan.stages if isinstance(stage, kind)}
    if name not in by_name:
        names = [stage.name for stage in plan.stages]
        raise ConfigError(
            f'pipeline "{plan.pipeline.name}" has no step "{name}"',
            hint=did_you_mean(name, dict.fromkeys(names)),
        )
    return by_name[name]


def part_of(plan: Plan, stage: Stage) -> Plan:
    """What must be walked for the rows of one stage; its own checks only if they come before."""
    after_checks = isinstance(stage, Verify | Load)
    wanted = {stage.inputs[0] if after_checks else stage.name}
    own = set() if after_checks else {stage.name}
    stages: list[Stage] = []
    for other in reversed(plan.stages):
        if isinstance(other, Extract | Apply) and other.name in wanted:
            wanted |= set(other.inputs)
            stages.insert(0, other)
        elif isinstance(other, Verify) and other.inputs[0] in wanted - own:
            stages.insert(0, other)
    return replace(plan, stages=tuple(stages))


def _state(plan: Plan, place: RunEnv) -> LedgerState:
    return place.ledger(plan.pipeline.name).state()


def _walked(
    part: Plan, place: RunEnv, stage: Stage, bounds: Mapping[str, Bounds], limit: int
) -> PreviewResult:
    from deltaworks.engines.spark.session.connect import let_go
    from deltaworks.engines.spark.session.start import cancel_work

    run = new_run(part.pipeline.name, place)
    ctx = start_engine(place, run, connectors=part.connectors, keep_log=False)
    keeper = FrameCache()
    walker = PlanEvaluator(
        part,
        ctx,
        bounds=bounds,
        clock=place.clock,
        keeper=keeper,
        on_stage=lambda stage: tell_stage(place, run, stage),
        observe=False,
    )
    try:
        return _look(walker.walk(), part, stage, limit)
    except DeltaworksError as error:
        raise walker.explained(error) from error.__cause__
    except KeyboardInterrupt:
        cancel_work(ctx.spark)
        raise
    finally:
        ctx.until_end.close()
        keeper.release()
        let_go(ctx.spark)


def _look(walked: Evaluation, part: Plan, stage: Stage, limit: int) -> PreviewResult:
    from deltaworks.engines.spark.frames.json_rows import plain_rows

    name = stage.inputs[0] if isinstance(stage, Verify | Load) else stage.name
    frame = walked.frames[name].frame
    with step_boundary(stage, part.pipeline.origin.file):
        rows = plain_rows(frame, limit=limit + 1)
    return PreviewResult(
        pipeline=part.pipeline.name,
        step=stage.name,
        kind=stage.kind,
        columns=tuple(frame_schema(frame).to_json()),
        rows=tuple(rows[:limit]),
        more=len(rows) > limit,
        rows_quarantined=walked.rows_quarantined(),
        checks=tuple(walked.checks),
        notes=tuple(
            f'check "{check.name}" would stop the run: {check.detail}'
            for check in failed(walked.checks)
        ),
    )
