"""Walks a plan up to its sinks: extract, transform, check. Nothing is written here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deltaworks.clock import Clock
from deltaworks.contracts.context import RunContext
from deltaworks.engines.spark.connection import resolved
from deltaworks.engines.spark.measure import RowCounter
from deltaworks.engines.spark.rejects import is_marked, unmarked
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import Bounds
from deltaworks.model.results import CheckResult, StepResult
from deltaworks.pipeline.stages import Apply, Extract, Load, Plan, Stage, Verify
from deltaworks.runtime.boundary import step_boundary
from deltaworks.runtime.frames import Keeper, Rejects, StepFrame, balance, split
from deltaworks.runtime.quality import check_step, parts_too, require_conditions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaworks.contracts.sink import Beside

_log = logging.getLogger("deltaworks")


@dataclass(frozen=True, kw_only=True)
class Passed:
    """One step that was walked, with its rows and the time its preparation took."""

    stage: Stage
    step: StepFrame
    duration_s: float


@dataclass(kw_only=True)
class Walked:
    """What a walk found: frames by step, rows refused, checks, and what was read."""

    frames: dict[str, StepFrame] = field(default_factory=dict)
    sources: dict[str, StepFrame] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)
    rejects: list[Rejects] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)
    filters: list[tuple[str, StepFrame, StepFrame]] = field(default_factory=list)
    left_out: list[RowCounter] = field(default_factory=list)
    """Counters of rows that steps leave out while they make several rows of others."""
    rows_dropped_by_checks: int = 0

    def rows_read(self) -> int | None:
        """Rows of all sources; None when one of them could not be counted."""
        return _sum(step.rows() for step in self.sources.values())

    def rows_dropped(self) -> int | None:
        """Rows that filters and checks left out by name."""
        total = _sum([self.rows_dropped_by_checks, *(left.rows() for left in self.left_out)])
        for name, before, after in self.filters:
            rows_in, rows_out = before.rows(), after.rows()
            if rows_in is None or rows_out is None or total is None:
                total = None
                continue
            if rows_out > rows_in:
                balance(name, rows_in, rows_out)
            total += rows_in - rows_out
        return total

    def count_all(self, rows: int | None) -> None:
        """Every step had so many rows: the sink has counted them."""
        for step in (*self.sources.values(), *self.frames.values()):
            step.known_rows = rows if step.known_rows is None else step.known_rows
        for item in self.passed:
            item.step.known_rows = rows if item.step.known_rows is None else item.step.known_rows

    def rows_quarantined(self) -> int:
        """Rows that were set aside."""
        return sum(part.rows for part in self.rejects)

    def steps(self) -> tuple[StepResult, ...]:
        """The steps for the result; rows are asked for now, when they have passed."""
        return tuple(
            StepResult(
                name=item.stage.name,
                type=item.stage.plugin.plugin_type(),
                rows=item.step.rows(),
                duration_s=item.duration_s,
            )
            for item in self.passed
        )


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


class Walker:
    """Walks one plan once."""

    def __init__(
        self,
        plan: Plan,
        ctx: RunContext,
        *,
        bounds: Mapping[str, Bounds],
        clock: Clock,
        keeper: Keeper,
        on_stage: Callable[[Stage], None],
        observe: bool = True,
        settled: frozenset[str] = frozenset(),
    ) -> None:
        self.plan = plan
        self.ctx = ctx
        self.bounds = bounds
        self.clock = clock
        self.keeper = keeper
        self.on_stage = on_stage
        self.observe = observe
        self.looked_ahead = False
        self.read: dict[str, DataFrame] = {}
        self.settled = settled
        """Sinks whose standing rows do not count: they have the batch, or it replaces all."""
        self.file = plan.pipeline.origin.file
        self.found = Walked()

    def walk(self) -> Walked:
        """Go through every stage but the loads."""
        try:
            for stage in self.plan.stages:
                if isinstance(stage, Extract):
                    self._timed(stage, self._extract)
                elif isinstance(stage, Apply):
                    self._timed(stage, self._apply)
        except DeltaworksError as error:
            raise self.explained(error) from error.__cause__
        return self.found

    def explained(self, error: DeltaworksError) -> DeltaworksError:
        """The error with the data file, line and value at fault, where a source can tell."""
        for stage in self.plan.stages:
            if stage.name == error.context.get("raised_by"):
                error.at(self.file, stage.line)
        suspects = [
            name
            for stage in self.plan.stages
            if isinstance(stage, Apply)
            for name in stage.plugin.columns_converted()
        ]
        error.context.setdefault("columns", suspects)
        for stage in self.plan.sources:
            if stage.name in self.bounds:
                error = _explained(stage, self.ctx, self.bounds[stage.name], error)
        return error

    def _timed(self, stage: Stage, do: Callable[..., StepFrame]) -> None:
        self.on_stage(stage)
        start = self.clock.monotonic()
        with step_boundary(stage, self.file):
            step = do(stage)
            resolved(step.frame)
        self._look_ahead(stage, step)
        checks = self._checks(stage)
        if not parts_too(step, checks):
            with step_boundary(stage, self.file):
                step, refused = split(step, stage, self.keeper)
            if refused is not None:
                self.found.rejects.append(refused)
        self.found.frames[stage.name] = step
        took = self.clock.monotonic() - start
        self.found.passed.append(Passed(stage=stage, step=step, duration_s=took))
        if checks:
            self._check(stage, checks)

    def _extract(self, stage: Extract) -> StepFrame:
        bounds = self.bounds[stage.name]
        rows = stage.plugin.rows(self.ctx.site, bounds)
        frame = self._read(stage)
        if self.observe:
            step = counted(frame, known_rows=rows)
        else:
            step = StepFrame(frame=frame, known_rows=rows)
        step.holds_rows = bool(rows) or stage.plugin.holds_rows(self.ctx.site, bounds)
        self.found.sources[stage.name] = step
        return step

    def _apply(self, stage: Apply) -> StepFrame:
        return self._applied(stage, self.found.frames[stage.inputs[0]])

    def _applied(self, stage: Apply, before: StepFrame) -> StepFrame:
        others = {name: self.found.frames[name].frame for name in stage.inputs[1:]}
        ctx = replace(self.ctx, step=stage.name)
        frame = stage.plugin.apply(ctx, self._watched(stage, before.frame), others)
        if stage.plugin.keeps_every_row():
            return replace(before, frame=frame, kept=False)
        step = counted(frame, known_rows=None)
        if stage.plugin.drops_rows:
            self.found.filters.append((stage.name, before, step))
        return step

    def _watched(self, stage: Apply, frame: DataFrame) -> DataFrame:
        """The step's input, counting what the step says it will leave out."""
        where = stage.plugin.left_out(frame)
        if where is None:
            return frame
        counter = RowCounter()
        self.found.left_out.append(counter)
        return counter.watch(frame, where=where)

    def _look_ahead(self, stage: Stage, step: StepFrame) -> None:
        """Before the first job: describe what follows, so that a wrong column is told at once."""
        if self.looked_ahead or not self._starts_job(stage, step):
            return
        self.looked_ahead = True
        frames = {name: found.frame for name, found in self.found.frames.items()}
        frames[stage.name] = unmarked(step.frame)
        for later in self.plan.stages[self.plan.stages.index(stage) + 1 :]:
            if isinstance(later, Load) or not set(later.inputs) <= frames.keys():
                continue  # its columns are known only when it runs
            with step_boundary(later, self.file):
                if isinstance(later, Extract):
                    frames[later.name] = resolved(unmarked(self._read(later)))
                elif isinstance(later, Verify):
                    require_conditions(self.ctx, frames[later.inputs[0]], later)
                elif later.plugin.columns_known():
                    frame, *others = (frames[name] for name in later.inputs)
                    named = dict(zip(later.inputs[1:], others, strict=True))
                    described = later.plugin.apply(self.ctx, frame, named)
                    frames[later.name] = resolved(unmarked(described))

    def _starts_job(self, stage: Stage, step: StepFrame) -> bool:
        """Whether rows are read as soon as the step is described: refused ones, or for a check."""
        checks = (later for later in self.plan.stages if isinstance(later, Verify))
        return is_marked(step.frame) or any(check.inputs[0] == stage.name for check in checks)

    def _read(self, stage: Extract) -> DataFrame:
        if stage.name not in self.read:
            self.read[stage.name] = stage.plugin.read(self.ctx, self.bounds[stage.name])
        return self.read[stage.name]

    def _checks(self, stage: Stage) -> list[Verify]:
        return [
            check
            for check in self.plan.stages
            if isinstance(check, Verify) and check.inputs[0] == stage.name
        ]

    def _check(self, stage: Stage, checks: Sequence[Verify]) -> None:
        """Check a step's rows; what passes takes their place."""
        self.on_stage(checks[0])
        start = self.clock.monotonic()
        checked = check_step(
            self.ctx,
            self.found.frames[stage.name],
            stage,
            checks,
            file=self.file,
            keeper=self.keeper,
            targets=lambda frame, columns: self._targets(stage, frame, columns),
        )
        self.found.frames[stage.name] = checked.step
        self.found.passed[-1] = replace(self.found.passed[-1], step=checked.taken)
        self.found.rejects.extend(checked.rejects)
        self.found.checks.extend(checked.results)
        self.found.rows_dropped_by_checks += checked.rows_dropped
        took = self.clock.monotonic() - start
        self.found.passed.append(Passed(stage=checks[0], step=checked.step, duration_s=took))

    def _targets(self, stage: Stage, frame: DataFrame, columns: Sequence[str]) -> list[Beside]:
        """What stands already where a step's rows go, and what of them goes there."""
        found = []
        for load in self.plan.loads:
            if load.inputs[0] == stage.name and load.name not in self.settled:
                with step_boundary(load, self.file):
                    found.append(load.plugin.beside(self.ctx, frame, columns))
        return found


def _explained(
    stage: Extract, ctx: RunContext, bounds: Bounds, error: DeltaworksError
) -> DeltaworksError:
    try:
        with step_boundary(stage, ""):
            return stage.plugin.explain_failure(ctx, bounds, error)
    except DeltaworksError as second:  # what went wrong first is what counts
        _log.debug("%s could not explain the failure: %s", stage.name, second)
        return error


def counted(frame: DataFrame, *, known_rows: int | None) -> StepFrame:
    """A step whose rows are counted as they pass, unless their number is known."""
    if known_rows is not None:
        return StepFrame(frame=frame, known_rows=known_rows)
    counter = RowCounter()
    return StepFrame(frame=counter.watch(frame), counter=counter)
