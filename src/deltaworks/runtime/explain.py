"""What a run would do: the same walk, with the sinks asked instead of told."""

from __future__ import annotations

from deltaworks.contracts.context import RunContext
from deltaworks.engines.spark.fit import frame_schema
from deltaworks.engines.spark.progress import rows_so_far
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import Bounds
from deltaworks.model.events import EngineStarted, EngineStarting, StageStarted
from deltaworks.model.results import OutputPlan, PlanResult, StagePlan
from deltaworks.pipeline.stages import Load, Plan, Stage
from deltaworks.runtime.boundary import step_boundary
from deltaworks.runtime.frames import Keeper
from deltaworks.runtime.runner import Workplace, new_run_id
from deltaworks.runtime.walk import Walked, Walker


def explain_offline(plan: Plan, place: Workplace) -> PlanResult:
    """What can be said without reading anything: no engine, no JVM."""
    return PlanResult(
        pipeline=plan.pipeline.name,
        offline=True,
        stages=tuple(_stage(stage) for stage in plan.stages),
        outputs=tuple(load.plugin.plan_offline(place.site) for load in plan.loads),
    )


def explain_plan(plan: Plan, place: Workplace) -> PlanResult:
    """Read the sources, compare with the tables, write nothing."""
    run_id = new_run_id(place.clock.now())
    bounds = _bounds(plan, place)
    place.bus.tell(EngineStarting(run_id=run_id, pipeline=plan.pipeline.name))
    spark = place.spark.session()
    ctx = RunContext(
        site=place.site,
        spark=spark,
        run_id=run_id,
        now=place.clock.now(),
        bounds=bounds,
    )
    place.bus.tell(
        EngineStarted(
            run_id=run_id, pipeline=plan.pipeline.name, rows_so_far=lambda: rows_so_far(spark)
        )
    )

    def tell(stage: Stage) -> None:
        place.bus.tell(
            StageStarted(
                run_id=run_id, pipeline=plan.pipeline.name, stage=stage.name, kind=stage.kind
            )
        )

    keeper = Keeper()
    walker = Walker(plan, ctx, bounds=bounds, clock=place.clock, keeper=keeper, on_stage=tell)
    try:
        walked = walker.walk()
        outputs = tuple(_output(plan, ctx, load, walked, keeper) for load in plan.loads)
        return _explained(plan, walked, outputs, bounds)
    except DeltaworksError as error:
        raise walker.explained(error) from error.__cause__
    finally:
        keeper.release()


def _bounds(plan: Plan, place: Workplace) -> dict[str, Bounds]:
    found = {}
    for stage in plan.sources:
        try:
            found[stage.name] = stage.plugin.bounds(place.site, None)
        except DeltaworksError as error:
            raise error.at(plan.pipeline.origin.file, stage.line) from error.__cause__
    return found


def _output(plan: Plan, ctx: RunContext, load: Load, walked: Walked, keeper: Keeper) -> OutputPlan:
    step = walked.frames[load.inputs[0]]
    if not step.kept:
        step.frame, step.kept = keeper.keep(step.frame), True
    with step_boundary(load, plan.pipeline.origin.file):
        return load.plugin.plan(ctx, step.frame)


def _explained(
    plan: Plan, walked: Walked, outputs: tuple[OutputPlan, ...], bounds: dict[str, Bounds]
) -> PlanResult:
    failing = [check for check in walked.checks if not check.passed and check.on_fail == "fail"]
    notes = [f'check "{check.name}" would stop the run: {check.detail}' for check in failing]
    return PlanResult(
        pipeline=plan.pipeline.name,
        offline=False,
        stages=tuple(_stage(stage, walked, bounds) for stage in plan.stages),
        rows_read=walked.rows_read(),
        rows_to_quarantine=walked.rows_quarantined(),
        checks=tuple(walked.checks),
        outputs=outputs,
        notes=tuple(notes),
    )


def _stage(
    stage: Stage, walked: Walked | None = None, bounds: dict[str, Bounds] | None = None
) -> StagePlan:
    columns = None
    if walked is not None and stage.name in walked.frames and stage.kind != "check":
        columns = tuple(frame_schema(walked.frames[stage.name].frame).to_json())
    detail = bounds[stage.name].summary() if bounds and stage.name in bounds else ""
    return StagePlan(
        kind=stage.kind,
        name=stage.name,
        type=stage.plugin.plugin_type(),
        inputs=stage.inputs,
        detail=detail,
        columns=columns,
    )
