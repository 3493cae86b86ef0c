"""What every run of a project needs, and how runs are named."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from deltaworks.clock import Clock
from deltaworks.config.project import ProjectConfig
from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import FILES
from deltaworks.model.events import EngineStarted, EngineStarting, StageStarted
from deltaworks.model.table_ref import OWN_FOLDER, is_url
from deltaworks.observe.bus import Bus
from deltaworks.pipeline.locations import places_of
from deltaworks.pipeline.stages import Extract, Load, Plan, Stage, Verify
from deltaworks.runtime.cancellation import CancellationToken
from deltaworks.runtime.ledger.table import Ledger
from deltaworks.runtime.quarantine.table import Quarantine
from deltaworks.runtime.run_records import RunRecords
from deltaworks.runtime.source_bounds import take_bounds
from deltaworks.runtime.spark import SparkStarter


@dataclass(frozen=True, kw_only=True)
class RunEnv:
    """A project at work: its settings, its clock, its listeners and its Spark."""

    config: ProjectConfig
    clock: Clock
    bus: Bus
    spark: SparkStarter
    notify: Callable[[str], None]
    halt: CancellationToken = field(default_factory=CancellationToken)
    """Stops the run that works here."""
    plans: tuple[Plan, ...] = ()
    """All that this process will run, where that is known; it ends afterwards."""

    def input_bytes(self) -> int | None:
        """How much this process will read in all; None when that is not known."""
        return input_bytes(self.plans, self.config)

    @property
    def project_ctx(self) -> ProjectContext:
        """Where the project's paths and tables are."""
        return ProjectContext.of(self.config)

    def quarantine(self, pipeline: str, *, project: str = "") -> Quarantine:
        """What a pipeline has quarantined."""
        config = self.config
        return Quarantine.of(
            config.warehouse,
            project=project or config.project_id,
            pipeline=pipeline,
            stores=config.stores,
            spark=lambda location: self.spark.at(location, config.stores),
        )

    def records(self) -> RunRecords:
        """The project's runs."""
        config = self.config
        return RunRecords(config.warehouse, config.project_id, stores=config.stores)

    def ledger(self, pipeline: str) -> Ledger:
        """The batches of a pipeline."""
        config = self.config
        return Ledger.open(
            config.warehouse, project=config.project_id, pipeline=pipeline, stores=config.stores
        )


def was_streamed(warehouse: str) -> bool:
    """Whether `stream run` ever read files or messages here; never so on an object store.

    There a table has one committer, so that a pipeline and a stream do not share one.
    """
    books = ("streams", "message_streams")
    home = Path(warehouse, OWN_FOLDER)
    return not is_url(warehouse) and any((home / name).is_dir() for name in books)


@dataclass(frozen=True, kw_only=True)
class RunName:
    """Which run of which pipeline something belongs to."""

    run_id: str
    pipeline: str
    now: datetime


def new_run(pipeline: str, place: RunEnv) -> RunName:
    """A name that sorts by time and is never given twice."""
    now = place.clock.now()
    return RunName(run_id=f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}", pipeline=pipeline, now=now)


def start_engine(
    place: RunEnv, run: RunName, *, connectors: frozenset[str], keep_log: bool
) -> RunContext:
    """A session for one run, with its connectors; Spark is started if it is not up yet."""
    from deltaworks.engines.spark.errors.lost_jvm import reaching_jvm
    from deltaworks.engines.spark.session.jobs import rows_so_far

    if not place.spark.started:
        place.bus.tell(EngineStarting(run_id=run.run_id, pipeline=run.pipeline))
    with reaching_jvm():
        spark = place.spark.session(
            run.run_id if keep_log else None,
            connectors=connectors,
            input_bytes=place.input_bytes,
        )
    place.bus.tell(
        EngineStarted(
            run_id=run.run_id, pipeline=run.pipeline, rows_so_far=lambda: rows_so_far(spark)
        )
    )
    return RunContext(project_ctx=place.project_ctx, spark=spark, run_id=run.run_id, now=run.now)


def tell_stage(place: RunEnv, run: RunName, stage: Stage) -> None:
    """Say which stage begins, unless the run is to stop."""
    place.halt.enter(stage)
    place.bus.tell(
        StageStarted(run_id=run.run_id, pipeline=run.pipeline, stage=stage.name, kind=stage.kind)
    )


def input_bytes(plans: Sequence[Plan], config: ProjectConfig) -> int | None:
    """Bytes of all files and tables that pipelines look into; None when some are not known."""
    try:
        sizes = [size for plan in plans for size in _sizes(plan, config)]
    except DeltaworksError:
        return None  # the run itself says what is wrong
    known = [size for size in sizes if size is not None]
    return sum(known) if sizes and len(known) == len(sizes) else None


def _sizes(plan: Plan, config: ProjectConfig) -> Iterator[int | None]:
    project_ctx = ProjectContext.of(config)
    if plan.connectors or any(map(is_url, places_of(plan, project_ctx))):
        yield None  # asking a server takes longer than it could save
        return
    ledger = Ledger.open(config.warehouse, project=config.project_id, pipeline=plan.pipeline.name)
    bounds = take_bounds(plan, project_ctx, ledger.state())
    for stage in plan.stages:
        if isinstance(stage, Extract) and bounds[stage.name].kind == FILES:
            yield bounds[stage.name].size_bytes
        elif isinstance(stage, Extract | Verify):
            tables = stage.plugin.tables_read(project_ctx)
            yield from map(_table_bytes, tables)
            if isinstance(stage, Extract) and not tables:
                yield None
        elif isinstance(stage, Load) and stage.plugin.needs_cached_input():
            yield _table_bytes(stage.plugin.target(project_ctx).location)


def _table_bytes(location: str) -> int | None:
    found = DeltaRsEngine().info(location)
    return 0 if found is None else found.size_bytes
