"""What a run would do: the same walk, with the sinks asked instead of told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from deltaworks.contracts.context import RunContext
from deltaworks.engines.spark.delta.schema_fit import frame_schema
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import Bounds
from deltaworks.model.results import CheckResult, OutputPlan, PlanResult, StagePlan
from deltaworks.pipeline.stages import Extract, Load, Plan, Stage
from deltaworks.runtime.batch.load import audited
from deltaworks.runtime.environment import RunEnv, new_run, start_engine, tell_stage
from deltaworks.runtime.error_boundary import step_boundary
from deltaworks.runtime.evaluation.checks import failed
from deltaworks.runtime.evaluation.evaluator import Evaluation, PlanEvaluator
from deltaworks.runtime.evaluation.frames import FrameCache
from deltaworks.runtime.evaluation.quarantine_limits import excesses
from deltaworks.runtime.quarantine.replay import ReplayEvaluator
from deltaworks.runtime.source_bounds import no_files, nothing_new, take_bounds


def explain_offline(plan: Plan, place: RunEnv) -> PlanResult:
    """What can be said without reading anything: no engine, no JVM."""
    return PlanResult(
        pipeline=plan.pipeline.name,
        offline=True,
        stages=tuple(_stage(stage) for stage in plan.stages),
        outputs=tuple(load.plugin.plan_offline(place.project_ctx) for load in plan.loads),
    )


def explain_plan(plan: Plan, place: RunEnv) -> PlanResult:
    """Read the sources, compare with the tables, write nothing."""
    bounds = take_bounds(plan, place.project_ctx, place.ledger(plan.pipeline.name).state())
    if nothing_new(plan, bounds) and no_files(bounds):
        note = "no source has a new file: a run would do nothing"
        return replace(explain_offline(plan, place), offline=False, notes=(note,))
    return explained(plan, place, bounds, partial(PlanEvaluator, plan))


def explained(
    plan: Plan, place: RunEnv, bounds: Mapping[str, Bounds], make: Callable[..., PlanEvaluator]
) -> PlanResult:
    """What a walker finds, and what the sinks would make of it."""
    from deltaworks.engines.spark.session.connect import let_go
    from deltaworks.engines.spark.session.start import cancel_work

    run = new_run(plan.pipeline.name, place)
    ctx = start_engine(place, run, connectors=plan.connectors, keep_log=False)
    keeper = FrameCache()
    walker = make(
        ctx,
        bounds=bounds,
        clock=place.clock,
        keeper=keeper,
        on_stage=lambda stage: tell_stage(place, run, stage),
    )
    try:
        walked = walker.walk()
        outputs = tuple(_output(plan, ctx, load, walked, keeper) for load in plan.loads)
        broken = [found for load in plan.loads for found in _violations(plan, ctx, load, walked)]
        found = _explained(plan, walked, outputs, bounds, broken)
        held = walker.held_back if isinstance(walker, ReplayEvaluator) else ()
        return replace(found, notes=(*held, *found.notes))
    except DeltaworksError as error:
        raise walker.explained(error) from error.__cause__
    except KeyboardInterrupt:
        cancel_work(ctx.spark)
        raise
    finally:
        ctx.until_end.close()
        keeper.release()
        let_go(ctx.spark)


def _output(
    plan: Plan, ctx: RunContext, load: Load, walked: Evaluation, keeper: FrameCache
) -> OutputPlan:
    step = walked.frames[load.inputs[0]]
    if not step.kept:
        step.frame, step.kept = keeper.keep(step.frame), True
    with step_boundary(load, plan.pipeline.origin.file):
        return load.plugin.plan(ctx, audited(plan, load, step.frame, run_id=ctx.run_id, n=0))


def _violations(
    plan: Plan, ctx: RunContext, load: Load, walked: Evaluation
) -> tuple[CheckResult, ...]:
    with step_boundary(load, plan.pipeline.origin.file):
        return load.plugin.violations(ctx, walked.frames[load.inputs[0]].frame)


def _explained(
    plan: Plan,
    walked: Evaluation,
    outputs: tuple[OutputPlan, ...],
    bounds: Mapping[str, Bounds],
    broken: Sequence[CheckResult],
) -> PlanResult:
    return PlanResult(
        pipeline=plan.pipeline.name,
        offline=False,
        stages=tuple(_stage(stage, walked, bounds) for stage in plan.stages),
        rows_read=walked.rows_read(),
        rows_to_quarantine=walked.rows_quarantined(),
        checks=(*walked.checks, *broken),
        outputs=outputs,
        notes=(
            *(
                f'check "{check.name}" would stop the run: {check.detail}'
                for check in failed((*walked.checks, *broken))
            ),
            *(f"this would stop the run: {one.message}" for one in excesses(plan, walked)),
        ),
    )


def _stage(
    stage: Stage, walked: Evaluation | None = None, bounds: Mapping[str, Bounds] | None = None
) -> StagePlan:
    columns = None
    if walked is not None and stage.name in walked.frames and stage.kind != "check":
        columns = tuple(frame_schema(walked.frames[stage.name].frame).to_json())
    return StagePlan(
        kind=stage.kind,
        name=stage.name,
        type=stage.plugin.plugin_type(),
        inputs=stage.inputs,
        detail=bounds[stage.name].summary() if bounds and stage.name in bounds else "",
        columns=columns,
        found=isinstance(stage, Extract) and stage.plugin.finds_columns(),
    )
