"""Frames on their way through a plan: counted, kept, and split from what was refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltaworks.contracts.plugin import REJECTED
from deltaworks.engines.spark.lost_jvm import letting_go
from deltaworks.engines.spark.measure import RowCounter
from deltaworks.engines.spark.rejects import accepted, is_marked, refused
from deltaworks.errors import InternalError
from deltaworks.pipeline.stages import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class Rejects:
    """Rows one stage refused."""

    frame: DataFrame
    stage: str
    kind: str
    """What refused them: the stage as it read or changed rows, or a check of its result."""
    rows: int


@dataclass(kw_only=True)
class StepFrame:
    """A step's rows: lazily, with a count that is known now, later or never."""

    frame: DataFrame
    kept: bool = False
    known_rows: int | None = None
    counter: RowCounter | None = None
    holds_rows: bool = False
    """Whether there surely is a row."""

    def rows(self) -> int | None:
        """How many rows; None when nobody could count them."""
        if self.known_rows is None and self.counter is not None:
            self.known_rows = self.counter.rows()
        return self.known_rows


@dataclass(kw_only=True)
class Keeper:
    """Keeps frames that are read more than once, and lets them go at the end."""

    kept: list[DataFrame] = field(default_factory=list)

    def keep(self, frame: DataFrame) -> DataFrame:
        """The same rows, evaluated once."""
        held = frame.persist()
        self.kept.append(held)
        return held

    def release(self) -> None:
        """Free what was kept."""
        for frame in self.kept:
            with letting_go():
                frame.unpersist()
        self.kept.clear()


def split(step: StepFrame, stage: Stage, keeper: Keeper) -> tuple[StepFrame, Rejects | None]:
    """Part the rows a stage accepted from those it marked."""
    from pyspark.sql import functions as F

    if not is_marked(step.frame):
        return step, None
    marked = keeper.keep(step.frame)
    row = marked.agg(
        F.count(F.lit(1)),
        F.count_if(F.col(REJECTED).isNull()),
        F.count_if(F.col(REJECTED).isNotNull()),
    ).collect()[0]
    rows_in, rows_out, rows_refused = int(row[0]), int(row[1]), int(row[2])
    balance(stage.name, rows_in, rows_out + rows_refused)
    if step.known_rows is not None:
        balance(stage.name, step.known_rows, rows_in)
    step.known_rows = rows_in  # a sink that counts for all steps sees only those that passed
    passed = StepFrame(frame=accepted(marked), kept=True, known_rows=rows_out)
    rejects = Rejects(frame=refused(marked), stage=stage.name, kind=stage.kind, rows=rows_refused)
    return passed, rejects


def balance(stage: str, rows_in: int, rows_out: int) -> None:
    """No row may vanish: every one is passed on, set aside or dropped by name."""
    if rows_in != rows_out:
        raise InternalError(
            f'step "{stage}" took {rows_in:,} rows and accounts for {rows_out:,}; '
            "nothing was written",
            hint="please report this with the pipeline file",
        )
