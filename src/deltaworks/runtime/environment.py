"""What every run of a project needs, and how runs are named."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from deltaworks.clock import Clock
from deltaworks.config.project import ProjectConfig
from deltaworks.contracts.context import RunContext, Site
from deltaworks.model.events import EngineStarted, EngineStarting, StageStarted
from deltaworks.model.table_ref import OWN_FOLDER, is_url
from deltaworks.observe.bus import Bus
from deltaworks.pipeline.stages import Plan, Stage
from deltaworks.runtime.cancellation import Halt
from deltaworks.runtime.ledger.table import Ledger
from deltaworks.runtime.quarantine.table import Quarantine
from deltaworks.runtime.run_records import RunRecords
from deltaworks.runtime.spark import SparkStarter


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """A project at work: its settings, its clock, its listeners and its Spark."""

    config: ProjectConfig
    clock: Clock
    bus: Bus
    spark: SparkStarter
    notify: Callable[[str], None]
    halt: Halt = field(default_factory=Halt)
    """Stops the run that works here."""
    plans: tuple[Plan, ...] = ()
    """All that this process will run, where that is known; it ends afterwards."""

    def input_bytes(self) -> int | None:
        """How much this process will read in all; None when that is not known."""
        from deltaworks.runtime.input_size import input_bytes

        return input_bytes(self.plans, self.config)

    @property
    def site(self) -> Site:
        """Where the project's paths and tables are."""
        return Site.of(self.config)

    def quarantine(self, pipeline: str, *, project: str = "") -> Quarantine:
        """What a pipeline has set aside."""
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


def new_run(pipeline: str, place: Workplace) -> RunName:
    """A name that sorts by time and is never given twice."""
    now = place.clock.now()
    return RunName(run_id=f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}", pipeline=pipeline, now=now)


def start_engine(
    place: Workplace, run: RunName, *, connectors: frozenset[str], keep_log: bool
) -> RunContext:
    """A session for one run, with its connectors; Spark is started if it is not up yet."""
    from deltaworks.engines.spark.errors.lost_jvm import reaching_jvm
    from deltaworks.engines.spark.session.progress import rows_so_far

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
    return RunContext(site=place.site, spark=spark, run_id=run.run_id, now=run.now)


def tell_stage(place: Workplace, run: RunName, stage: Stage) -> None:
    """Say which stage begins, unless the run is to stop."""
    place.halt.enter(stage)
    place.bus.tell(
        StageStarted(run_id=run.run_id, pipeline=run.pipeline, stage=stage.name, kind=stage.kind)
    )
