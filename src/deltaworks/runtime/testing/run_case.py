"""Runs the tests of pipelines: a real run, with rows given, in a warehouse that is thrown away."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.contracts.sink import Sink
from deltaworks.errors import ConfigError, DeltaworksError
from deltaworks.model.results import CaseFailure, CaseResult, RunResult
from deltaworks.observe.bus import Bus
from deltaworks.pipeline.stages import Extract, Load, Plan, Stage
from deltaworks.pipeline.test_cases import (
    ONLY_SINK,
    LocatedCase,
    Row,
    expected_columns,
    require_names,
)
from deltaworks.runtime.environment import RunEnv
from deltaworks.runtime.error_boundary import step_boundary
from deltaworks.runtime.runs.runner import RunOptions, run_plan
from deltaworks.runtime.testing.fakes import SeenSink, stand_in
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

Seen = tuple["StructType", list[dict[str, Any]]]


def run_case(placed: LocatedCase, plan: Plan, place: RunEnv) -> CaseResult:
    """Run one test; a test that cannot be run fails too."""
    start = place.clock.monotonic()
    place.spark.shared()  # or the first run would start Spark with a log in the real warehouse
    with tempfile.TemporaryDirectory(prefix="deltaworks-test-") as folder:
        rows_quarantined: int | None = None
        failures: tuple[CaseFailure, ...] = ()
        try:
            require_names(placed, plan)
            trial = _Trial(placed=placed, plan=plan, place=place, folder=Path(folder))
            rows_quarantined, failures = trial.failures()
        except DeltaworksError as error:
            failures = (CaseFailure(what="test", message=_told(error)),)
    return CaseResult(
        name=placed.case.name,
        pipeline=placed.pipeline,
        file=placed.file,
        line=placed.line,
        duration_s=place.clock.monotonic() - start,
        rows_quarantined=rows_quarantined,
        failures=failures,
    )


@dataclass(kw_only=True)
class _Trial:
    """One test on its way: a plan that touches nothing of the project, and what it left."""

    placed: LocatedCase
    plan: Plan
    place: RunEnv
    folder: Path

    def failures(self) -> tuple[int | None, tuple[CaseFailure, ...]]:
        """Run the plan, and compare what is expected with what came."""
        from deltaworks.engines.spark.session.connect import held

        config = replace(
            self.place.config, root=self.folder, warehouse=str(self.folder / "warehouse")
        )
        place = replace(self.place, config=config, bus=Bus())
        trial = self._trial_plan()
        result = run_plan(trial, place, RunOptions(new_sinks="from-now"))
        aside = sum(batch.rows_quarantined or 0 for batch in result.batches)
        if result.error is not None or self.placed.case.expect_error:
            return aside, _error_failures(self.placed.case.expect_error, result)
        failures = [*self._aside_failures(aside)]
        with held(place.spark.session(None)) as spark:
            for name, rows in self.placed.case.expect.items():
                load = self._load(trial, name)
                seen = _seen(load, place, spark, file=self.plan.pipeline.origin.file)
                failures.extend(_row_failures(name or load.name, rows, seen, spark))
        return aside, tuple(failures)

    def _trial_plan(self) -> Plan:
        stages: list[Stage] = []
        for stage in self.plan.stages:
            if isinstance(stage, Extract):
                stages.append(self._given(stage))
            elif isinstance(stage, Load):
                stages.append(replace(stage, plugin=self._harmless(stage)))
            else:
                stages.append(stage)
        sinks = {load.name for load in self.plan.loads} | {ONLY_SINK}
        for name in self.placed.case.expect:
            if name not in sinks:
                label = _step_label(name)
                stages.append(Load(name=label, plugin=SeenSink(name=label), inputs=(name,)))
        return replace(self.plan, stages=tuple(stages))

    def _given(self, stage: Extract) -> Extract:
        source = stand_in(
            stage.plugin,
            self.placed.case.given[stage.name],
            name=stage.name,
            root=self.place.config.root,
            folder=self.folder / "given",
        )
        return replace(stage, plugin=source)

    def _harmless(self, load: Load) -> Sink:
        """A Delta table in the folder of the test; any other sink is only looked at."""
        if load.plugin.plugin_type() != "delta":
            return SeenSink(name=load.name)
        if getattr(load.plugin, "path", ""):
            path = self.folder / "paths" / load.name.strip("/").replace("/", "_")
            return load.plugin.model_copy(update={"path": str(path)})
        return load.plugin

    def _load(self, trial: Plan, name: str) -> Load:
        wanted = (name, _step_label(name)) if name else (trial.loads[0].name,)
        found = [load for label in wanted for load in trial.loads if load.name == label]
        return found[0]

    def _aside_failures(self, aside: int) -> list[CaseFailure]:
        wanted = self.placed.case.expect_quarantined
        if wanted is None or wanted == aside:
            return []
        message = f"expected {_rows(wanted)} quarantined, found {aside:,}"
        return [CaseFailure(what="expect_quarantined", message=message)]


def _step_label(name: str) -> str:
    return f"step {name}"


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _told(error: DeltaworksError) -> str:
    return "\n".join(problem.text() for problem in error.problems)


def _error_failures(wanted: str, result: RunResult) -> tuple[CaseFailure, ...]:
    error = result.error
    if error is None:
        message = f'expected the error "{wanted}", but the run succeeded'
        return (CaseFailure(what="expect_error", message=message),)
    if not wanted:
        return (CaseFailure(what="run", message=f"the run failed: {_told(error)}"),)
    if wanted == error.code or wanted.lower() in _told(error).lower():
        return ()
    message = f'expected the error "{wanted}", found "{error.code}": {_told(error)}'
    return (CaseFailure(what="expect_error", message=message),)


def _seen(load: Load, place: RunEnv, spark: SparkSession, *, file: str) -> Seen | None:
    """What a sink has after the run; None when it got no rows and was not made."""
    from deltaworks.engines.spark.delta.tables import SparkEngine
    from deltaworks.engines.spark.frames.json_rows import plain_rows

    if isinstance(load.plugin, SeenSink):
        return load.plugin.seen()
    if not load.plugin.state(place.project_ctx, "").exists:
        return None
    with step_boundary(load, file):
        frame = SparkEngine(spark).read(load.plugin.target(place.project_ctx).location)
        return frame.schema, plain_rows(frame)


def _row_failures(
    what: str, wanted: tuple[Row, ...], seen: Seen | None, spark: SparkSession
) -> list[CaseFailure]:
    """What is missing and what is too much; rows may come in any order."""
    try:
        expected, found = _comparable(wanted, seen, spark)
    except DeltaworksError as error:
        return [CaseFailure(what=what, message=_told(error))]
    missing, unexpected = _left_over(expected, found), _left_over(found, expected)
    if not missing and not unexpected:
        return []
    parts = [f"{_rows(len(missing))} missing"] if missing else []
    parts += [f"{_rows(len(unexpected))} not expected"] if unexpected else []
    return [
        CaseFailure(
            what=what,
            message=", ".join(parts),
            missing=tuple(missing),
            unexpected=tuple(unexpected),
        )
    ]


def _comparable(
    wanted: tuple[Row, ...], seen: Seen | None, spark: SparkSession
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Both sides with the columns that are expected, and the types that came."""
    from pyspark.sql.types import StructType

    from deltaworks.engines.spark.frames.json_rows import frame_of, plain_rows

    names = expected_columns(wanted)
    if seen is None:
        return [dict(row) for row in wanted], []
    schema, rows = seen
    if not wanted:
        return [], rows
    fields = {field.name.lower(): field for field in schema.fields}
    for name in names:
        if name.lower() not in fields:
            hint = did_you_mean(name, schema.fieldNames())
            raise ConfigError(f'there is no column "{name}" to expect', hint=hint)
    chosen = StructType([fields[name.lower()] for name in names])
    given = [{fields[k.lower()].name: value for k, value in row.items()} for row in wanted]
    expected = plain_rows(frame_of(spark, given, chosen, strict=False))
    _refuse_other_types(given, expected, chosen)
    kept = chosen.fieldNames()
    return expected, [{name: row[name] for name in kept} for row in rows]


def _refuse_other_types(
    given: Sequence[Mapping[str, Any]], typed: Sequence[Mapping[str, Any]], columns: StructType
) -> None:
    for before, after in zip(given, typed, strict=True):
        for field in columns.fields:
            if before[field.name] is not None and after[field.name] is None:
                kind = field.dataType.simpleString()
                raise ConfigError(
                    f'"{before[field.name]}" is expected in column "{field.name}", '
                    f"whose values are {kind}"
                )


def _left_over(
    rows: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows that have no partner among the others, in an order that stays the same."""
    partners = Counter(json.dumps(row, sort_keys=True) for row in others)
    alone = []
    for row in rows:
        key = json.dumps(row, sort_keys=True)
        if partners[key]:
            partners[key] -= 1
        else:
            alone.append(row)
    return sorted(alone, key=lambda row: json.dumps(row, sort_keys=True))
